// One focus map with what is said about it: of A, of B, or A − B. The Focus panel shows one or all three.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/panels/focus_canvas.h"
#include "app/panels/panel.h"
#include "app/views/focus_view.h"

namespace hydrascope::app {

class FocusColumn {
public:
  explicit FocusColumn(PanelServices services) : services_(services) {}

  // `which`: a, b or difference. The last good picture stays while there is no newer one.
  void prepare(const Snapshot& snapshot, Shown which);
  bool empty() const { return picture_.empty() && sentence_.empty(); }
  const RunResult* run() const { return found_.run; }      // null before the first one
  const std::string& nothing() const { return map_.note; } // why the map is empty
  bool has_nothing() const { return found_.run != nullptr && map_.empty; }
  const Figure& figure() const { return figure_; }

  // Caption, map and note at the cursor, `size` in all; takes hovering and clicks.
  void draw(ImVec2 size, float brightness);

  // What the pointer was over when the panel's menu was opened.
  const std::optional<ShownToken>& menu_token() const { return menu_token_; }
  std::string name_of(const ShownToken& token) const;

private:
  void show();
  void clear();
  void describe(const RunResult* other, bool named);
  void draw_caption(float width) const;
  void draw_map(ImVec2 size, float brightness);
  ShownToken token_at(int cell) const;
  void react(const CanvasInput& input);
  std::string hint_of(const ShownToken& token) const;

  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }

  PanelServices services_;
  std::vector<std::shared_ptr<const RunResult>> keep_; // what found_ points into
  FoundFocus found_;
  FocusMap map_;
  Figure figure_;
  PictureCanvas picture_;
  SentenceCanvas sentence_;
  PaintedPicture painted_;
  std::optional<ShownToken> menu_token_;
  Shown which_ = Shown::a;
  std::string side_; // "A" or "B" where it has to be said
  std::string caption_, kernel_, query_;
  bool untrained_ = false;
};

} // namespace hydrascope::app
