// Where the panels are: the built-in layouts, the user's own, and going from one to another.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/document/editor.h"

namespace hydrascope::app {

// Builds one of the layouts of window.md in a dock space of this size. Panels that the layout does not name
// are docked as tabs, so that opening one never covers the others.
void build_layout(std::string_view layout, ImGuiID dock_space, ImVec2 size,
                  const std::vector<std::string>& panels);
// The panels that are to be in front where several share a place; the last one is in front of all.
std::vector<std::string> front_panels(std::string_view layout);

// Keeps where the panels stand now under this name of the user's, and goes over to it.
void save_layout(Editor& editor, const std::string& name);

// Follows the document's layout.
class Arrangement {
public:
  explicit Arrangement(std::vector<std::string> panels) : panels_(std::move(panels)) {}

  // What the next frames show. Panels come to the front one a frame, in the order of the calls.
  void focus(std::string panel) { to_front_.push_back(std::move(panel)); }
  void reset() { reset_ = true; }
  void restore_at_next_frame(std::string arrangement) {
    given_ = std::move(arrangement);
    reset_ = false;
    to_front_.clear(); // what is asked to the front from now on comes after the arrangement's own
  }
  // Whether this panel comes to the front in this frame; once.
  bool take_focus(const std::string& panel);

  // Between frames: takes up a layout that was saved, or that was left and is come back to.
  void before_frame(Editor& editor);
  // Within a frame: builds a built-in layout where it is wanted. Returns whether it did.
  bool arrange(ImGuiID dock_space, ImVec2 size, Editor& editor);

private:
  void restore(const std::string& arrangement);

  std::vector<std::string> panels_;
  std::string shown_;                       // the layout the panels stand by; empty before the first frame
  std::map<std::string, std::string> left_; // how layouts were left in this session
  std::vector<std::string> to_front_;       // one a frame, from the first on
  std::string focused_;                     // comes to the front when it is drawn
  std::optional<std::string> given_;        // to be restored
  bool build_ = false, reset_ = false;
};

// As Dear ImGui writes it.
std::string present_arrangement();

} // namespace hydrascope::app
