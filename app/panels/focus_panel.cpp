// Where the target's evidence comes from: each token's contribution at the selected layer (Hydra paper, Eq.
// 15–17).
#include <algorithm>
#include <array>
#include <ranges>

#include <fmt/format.h>

#include "app/panels/focus_column.h"
#include "app/panels/focus_toolbar.h"
#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

class FocusPanel final : public Panel {
public:
  explicit FocusPanel(PanelServices services)
      : Panel("focus", "Focus map", services),
        columns_{FocusColumn(services), FocusColumn(services), FocusColumn(services)} {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    add_focus(wants.first, document.scene().layer);
  }

  void prepare(const Snapshot& snapshot) override {
    const Shown shown = snapshot.document->view.shown;
    constexpr std::array<Shown, 3> each = {Shown::a, Shown::b, Shown::difference};
    count_ = shown == Shown::all ? each.size() : 1;
    for (std::size_t i = 0; i < count_; ++i)
      columns_[i].prepare(snapshot, shown == Shown::all ? each[i] : shown);
  }

  void draw() override {
    draw_focus_toolbar(editor(), columns_[0].run());
    if (empty()) {
      const std::string waiting = document().scene().input
                                      ? "The focus map appears here as soon as the model has run."
                                      : "Open a picture or a sentence (Ctrl+O), or drop one on the window.";
      empty_notice(graphics(), columns_[0].has_nothing() ? columns_[0].nothing() : waiting);
      return;
    }
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float gap = theme::grid * 2;
    const float width = (room.x - gap * static_cast<float>(count_ - 1)) / static_cast<float>(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      ImGui::SetCursorScreenPos({from.x + static_cast<float>(i) * (width + gap), from.y});
      if (i > 0) ImGui::PushID(static_cast<int>(i));
      columns_[i].draw({width, room.y}, brightness());
      if (i > 0) ImGui::PopID();
    }
  }

  std::optional<Figure> figure() const override {
    if (empty()) return std::nullopt;
    Figure figure = columns_[0].figure();
    for (const FocusColumn& column : columns_ | std::views::take(count_) | std::views::drop(1)) {
      const auto& panels = column.figure().panels;
      figure.panels.insert(figure.panels.end(), panels.begin(), panels.end());
    }
    return figure;
  }

private:
  bool empty() const { return columns_[0].empty(); }

  void draw_menu() override {
    const auto shown = columns_ | std::views::take(count_);
    const auto column = std::ranges::find_if(
        shown, [](const FocusColumn& each) { return each.menu_token().has_value() && !each.empty(); });
    if (column != shown.end()) {
      const ShownToken& token = *column->menu_token();
      const bool image = document().kind == InputKind::image;
      const bool hidden = is_hidden(document(), token.first);
      const std::string reason = why_not_hidden(document(), token.first);
      const std::string label = fmt::format(
          "{} {}###hide", hidden ? "Show" : (image ? "Hide patch" : "Mask token"), column->name_of(token));
      if (ImGui::MenuItem(label.c_str(), "H", false, reason.empty()))
        hide_tokens(editor(), token.first, token.count, !hidden);
      if (!reason.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
        ImGui::SetTooltip("%s", reason.c_str());
    }
    if (ImGui::MenuItem("Show all that is hidden", "Shift+H", false,
                        !document().scene().hidden_tokens.empty()))
      show_all_tokens(editor());
    ImGui::Separator();
  }

  std::array<FocusColumn, 3> columns_; // A, B, A − B where all are shown, else the first alone
  std::size_t count_ = 1;
};

} // namespace

std::unique_ptr<Panel> make_focus_panel(PanelServices services) {
  return std::make_unique<FocusPanel>(services);
}

} // namespace hydrascope::app
