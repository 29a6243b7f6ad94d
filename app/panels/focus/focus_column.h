// One map with what is said about it: contributions, attention or rollout, of A, of B, or A − B. The Focus
// panel shows any of them side by side.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/panels/focus/focus_canvas.h"
#include "app/panels/panel.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

void add_map_keys(const Document& document, QuantityKeys& keys);

struct ColumnMap {
  const RunResult* run = nullptr; // that knows query and target
  TokenMap map;
  std::vector<float> raw; // focus: contributions as they are, one a token
  std::string flags;      // "untrained", "derived, signed"; empty if there is nothing to say
};

// nullopt as long as the side has not delivered it.
std::optional<ColumnMap> find_column_map(const SideResults& results, const Document& document, MapKind kind);

FocusOptions focus_options(const Document& document);

class FocusColumn {
public:
  FocusColumn(PanelServices services, MapKind kind) : services_(services), kind_(kind) {}

  // The last good picture stays while there is no newer one.
  void prepare(const Snapshot& snapshot);
  void subtract(const FocusColumn& a, const FocusColumn& b, const Snapshot& snapshot);
  void clear();
  MapKind kind() const { return kind_; }
  bool empty() const { return picture_.empty() && sentence_.empty(); }
  const RunResult* run() const { return found_.run; }            // null before the first one
  const std::string& nothing() const { return found_.map.note; } // why the map is empty
  bool has_nothing() const { return found_.run != nullptr && found_.map.empty; }
  const Figure& figure() const { return figure_; }

  // Caption, map and note at the cursor, `size` in all; takes hovering and clicks.
  void draw(ImVec2 size, float brightness);

  // What the pointer was over when the panel's menu was opened.
  const std::optional<ShownToken>& menu_token() const { return menu_token_; }
  std::string name_of(const ShownToken& token) const;

private:
  void show(const Document& document);
  void describe(const Document& document, const std::string& side, const RunResult* other);
  void draw_caption(float width) const;
  void draw_map(ImVec2 size, float brightness);
  ShownToken token_at(int cell) const;
  void react(const CanvasInput& input);
  std::string value_text(const ShownToken& token, int cell) const;
  std::string hint_of(const ShownToken& token) const;

  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }

  PanelServices services_;
  MapKind kind_;
  bool newest_ = false;                                // found_ is what the results have now
  std::vector<std::shared_ptr<const RunResult>> keep_; // what found_ points into
  ColumnMap found_;
  Figure figure_;
  PictureCanvas picture_;
  SentenceCanvas sentence_;
  PaintedPicture painted_;
  std::optional<ShownToken> menu_token_;
  std::string error_;  // why there is nothing new
  std::string side_;   // its name where it has to be said
  std::string kernel_; // "" for rollout, which is of all layers
  std::string caption_, query_;
  bool narrow_ = false; // others stand beside it: two lines above the map
};

} // namespace hydrascope::app
