// Where the target's evidence comes from: each token's contribution at the selected layer (Hydra paper, Eq.
// 15–17).
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/focus/focus_column.h"
#include "app/panels/focus/focus_toolbar.h"
#include "app/panels/panels.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr std::array kinds = {MapKind::focus, MapKind::attention, MapKind::rollout};

class FocusPanel final : public Panel {
public:
  explicit FocusPanel(PanelServices services) : Panel("focus", "Focus map", services) {
    for (const MapKind kind : kinds) columns_.emplace_back(services, kind);
  }
  bool exports() const override { return true; }

  void ask(const Document& document, Requested& requested) const override {
    add_map_keys(document, requested.first);
  }

  // A grid: the maps below each other and their sides beside each other, or all maps of one side beside each
  // other.
  void prepare(const Snapshot& snapshot) override {
    const ViewOptions& view = snapshot.document->view;
    visible_.clear();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (!view.maps.contains(kinds[i])) {
        columns_[i].clear(); // what it shows would be old when it comes back
        continue;
      }
      columns_[i].prepare(snapshot);
      for (FocusColumn& column : columns_[i].shown()) visible_.push_back(&column);
    }
    across_ = view.shown == Shown::all ? 3 : visible_.size();
  }

  void draw() override {
    draw_focus_toolbar(editor(), visible_.empty() ? nullptr : visible_.front()->run());
    if (empty()) {
      const std::string waiting = document().scene().input
                                      ? "The focus map appears here as soon as the model has run."
                                      : "Open a picture or a sentence (Ctrl+O), or drop one on the window.";
      const bool nothing = !visible_.empty() && visible_.front()->has_nothing();
      empty_notice(graphics(), nothing ? visible_.front()->nothing() : waiting);
      return;
    }
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    constexpr float gap = theme::grid * 2;
    const auto share = [&](float whole, std::size_t count) {
      return (whole - gap * static_cast<float>(count - 1)) / static_cast<float>(count);
    };
    const ImVec2 size{share(room.x, across_), share(room.y, visible_.size() / across_)};
    for (std::size_t i = 0; i < visible_.size(); ++i) {
      const std::size_t row = i / across_, column = i % across_;
      ImGui::SetCursorScreenPos({from.x + static_cast<float>(column) * (size.x + gap),
                                 from.y + static_cast<float>(row) * (size.y + gap)});
      if (i > 0) ImGui::PushID(static_cast<int>(i));
      visible_[i]->draw(size, brightness());
      if (i > 0) ImGui::PopID();
    }
  }

  std::optional<Figure> figure() const override {
    if (empty()) return std::nullopt;
    std::optional<Figure> figure;
    MapKind last = MapKind::focus;
    for (const FocusColumn* column : visible_) {
      const Figure& one = column->figure();
      if (one.panels.empty()) continue; // has not come yet
      if (!figure) {
        figure = one;
      } else {
        figure->panels.insert(figure->panels.end(), one.panels.begin(), one.panels.end());
        if (column->kind() != last) figure->subtitle += "\n" + one.subtitle; // one for each kind of map
      }
      last = column->kind();
    }
    if (figure) figure->columns = document().kind == InputKind::text ? 1 : static_cast<int>(across_);
    return figure;
  }

private:
  bool empty() const { return std::ranges::all_of(visible_, &FocusColumn::empty); }

  void draw_menu() override {
    const auto column = std::ranges::find_if(
        visible_, [](const FocusColumn* each) { return each->menu_token().has_value() && !each->empty(); });
    if (column != visible_.end()) {
      const ShownToken& token = *(*column)->menu_token();
      const bool image = document().kind == InputKind::image;
      const bool hidden = is_hidden(document(), token.first);
      const std::string reason = why_not_hidden(document(), token.first);
      const std::string label = fmt::format(
          "{} {}###hide", hidden ? "Show" : (image ? "Hide patch" : "Mask token"), (*column)->name_of(token));
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

  std::vector<SideColumns<FocusColumn>> columns_; // by map
  std::vector<FocusColumn*> visible_;
  std::size_t across_ = 1;
};

} // namespace

std::unique_ptr<Panel> make_focus_panel(PanelServices services) {
  return std::make_unique<FocusPanel>(services);
}

} // namespace hydrascope::app
