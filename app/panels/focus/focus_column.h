// A map of the Focus panel with its caption: contributions, attention or rollout, of A, of B, or A − B.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/panels/focus/focus_canvas.h"
#include "app/panels/panel.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

// Adds the keys of all maps that are shown.
void add_map_keys(const Document& document, QuantityKeys& keys);

struct ColumnMap {
  const RunResult* run = nullptr; // has the query and the target
  TokenMap map;
  std::vector<float> raw; // focus: the contributions of the tokens before normalisation
  std::string flags;      // "untrained", "implied weights, signed"; may be empty
  std::string heads = {}; // attention, rollout: "head 3"; of a kernel without the selected one another
};

// nullopt if the results do not contain the map.
std::optional<ColumnMap> find_column_map(const SideResults& results, const Document& document, MapKind kind);

// The document's options for drawing focus maps.
FocusOptions focus_options(const Document& document);

class FocusColumn {
public:
  FocusColumn(PanelServices services, MapKind kind) : services_(services), kind_(kind) {}

  // Keeps the last map while there is no newer one.
  void prepare(const Snapshot& snapshot);
  void subtract(const FocusColumn& a, const FocusColumn& b, const Snapshot& snapshot);
  void clear();
  MapKind kind() const { return kind_; }
  bool empty() const { return picture_.empty() && sentence_.empty(); }
  const RunResult* run() const { return found_.run; }                 // null before the first run
  const std::string& empty_reason() const { return found_.map.note; } // why the map is empty
  bool has_empty_map() const { return found_.run != nullptr && found_.map.empty; }
  const Figure& figure() const { return figure_; }

  // Draws caption, map and note at the cursor, `size` in all, and handles the pointer.
  // The size of the photograph if the column has this one; zero for a sentence.
  ImVec2 picture_within(ImVec2 size) const;
  void draw(ImVec2 size, float brightness);

  // The token under the pointer when the context menu was opened.
  const std::optional<ShownToken>& menu_token() const { return menu_token_; }
  std::string name_of(const ShownToken& token) const;

private:
  void show(const Document& document);
  void set_caption(const Document& document, const std::string& side, const RunResult* other);
  void draw_caption(float width) const;
  float caption_height() const;
  void draw_map(ImVec2 size, float brightness);
  ShownToken token_at(int cell) const;
  void handle_input(const CanvasInput& input);
  bool is_query(const ShownToken& token) const; // it was chosen
  std::string value_text(const ShownToken& token, int cell) const;
  std::string hint_of(const ShownToken& token) const;

  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }

  PanelServices services_;
  MapKind kind_;
  bool newest_ = false;                                // found_ is from the newest results
  std::vector<std::shared_ptr<const RunResult>> runs_; // the runs that found_ points into
  ColumnMap found_;
  Figure figure_;
  PictureCanvas picture_;
  SentenceCanvas sentence_;
  PaintedPicture painted_;
  std::optional<ShownToken> menu_token_;
  std::string error_;  // why there is no newer map
  std::string side_;   // its name; empty if it is shown alone
  std::string kernel_; // empty for rollout, which uses all layers
  std::string caption_;
  std::vector<std::string> explained_;
  bool narrow_ = false; // other maps are beside it: the caption has two lines
};

} // namespace hydrascope::app
