// The arrangement of the panels: built-in layouts, the user's own, and switching between them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/document/editor.h"

namespace hydrascope::app {

// Builds a built-in layout in a dock space of this size. Panels not named by the layout become tabs, so that
// opening one covers no other.
void build_layout(std::string_view layout, ImGuiID dock_space, ImVec2 size,
                  const std::vector<std::string>& panels);
// The panels in front where several share a place, in the order in which they come to the front. `decoder`:
// the document's model is one.
std::vector<std::string> front_panels(std::string_view layout, bool decoder);

// Saves the current arrangement under a name and switches to it.
void save_layout(Editor& editor, const std::string& name);

// Keeps the panels arranged by the document's layout.
class Arrangement {
public:
  explicit Arrangement(std::vector<std::string> panels) : panels_(std::move(panels)) {}

  // For the next frames. Panels come to the front one per frame, in the order of the calls.
  void focus(std::string panel) { to_front_.push_back(std::move(panel)); }
  // Switches to the layout Train, unless the user's own layout shows the training.
  void show_training(Editor& editor) const;
  void reset() {
    reset_ = true;
    to_front_.clear(); // the layout brings its own panels to the front
  }
  void restore_at_next_frame(std::string arrangement) {
    to_restore_ = std::move(arrangement);
    reset_ = false;
    to_front_.clear(); // later calls of focus() follow the arrangement's own panels
  }
  // Whether this panel comes to the front in this frame. Returns true once.
  bool take_focus(const std::string& panel);

  // Between frames: restores a saved arrangement, or that of a layout used before.
  void before_frame(Editor& editor);
  // Within a frame: builds a built-in layout if necessary, also for another size of the window as long as the
  // user has not moved anything in it. Returns whether it did.
  bool arrange(ImGuiID dock_space, ImVec2 size, Editor& editor);

private:
  void restore(const std::string& arrangement);
  bool restore_saved(const std::string& arrangement); // of a file; whether it could be
  bool needs_rebuild(ImGuiID dock_space, ImVec2 size, Editor& editor);

  std::vector<std::string> panels_;
  std::string shown_; // the layout of the current arrangement; empty before the first frame
  std::map<std::string, std::string>
      last_arrangements_;                 // last arrangement of each layout in this run of the program
  std::vector<std::string> to_front_;     // one per frame
  std::string focused_;                   // comes to the front in this frame
  std::optional<std::string> to_restore_; // to be restored
  bool build_ = false, reset_ = false;
  struct Part {
    ImVec2 size;
    std::vector<ImGuiID> panels;
  };
  static std::vector<Part> parts_of(ImGuiID id); // the node and all below it

  // Of a layout as it was built: the size of the window, and its parts once they have settled. built_for_ is
  // 0 once the user has moved something.
  ImVec2 built_for_, size_;
  std::vector<Part> built_parts_;
  int frames_ = 0; // since it was built, or since the window's size changed
};

// The current arrangement, in Dear ImGui's format.
std::string present_arrangement();

} // namespace hydrascope::app
