// The focus maps of all layers as small multiples, of A, B or A − B. A click selects a layer.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/layers/layer_maps.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

constexpr float map_gap = 6;
constexpr float stack_gap = 2; // between the maps of one layer

class LayersPanel final : public Panel {
public:
  explicit LayersPanel(PanelServices services) : Panel("layers", "Layers", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    for (int layer = 0; layer < document.scene().model->layers; ++layer) requested.then.add(FocusKey{layer});
  }

  void prepare(const Snapshot& snapshot) override {
    image_ = snapshot.document->kind == InputKind::image;
    columns_.prepare(snapshot);
  }

  void draw() override {
    if (columns_.empty()) {
      empty_notice(graphics(), "Focus maps of every layer, once the model has run.");
      return;
    }
    hovered_.reset();
    const auto shown = columns_.shown();
    if (std::ranges::all_of(shown, &LayerMaps::empty)) return empty_notice(graphics(), columns_.failure());
    if (shown.size() == 1 && shown.front().same()) return empty_notice(graphics(), same_note);
    if (image_) {
      draw_pictures();
    } else {
      draw_sentences();
    }
    menu_.set_hovered_layer(hovered_);
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const LayerMaps& side) { return side.figure(); });
  }

private:
  // The name of a side, if several are shown.
  static const char* title(std::size_t place) { return side_name(static_cast<Shown>(place)); }

  // Side by side in a wide panel, otherwise one below the other.
  void draw_sentences() {
    const auto shown = columns_.shown();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImVec2 room = ImGui::GetContentRegionAvail();
    const auto sides = static_cast<float>(shown.size());
    const bool beside = room.x > room.y * 1.5f;
    constexpr float least_height = 60; // else the panel scrolls
    room.y = std::max(room.y, beside ? least_height : least_height * sides);
    const ImVec2 size{beside ? (room.x - map_gap * 2 * (sides - 1)) / sides : room.x,
                      beside ? room.y : (room.y - map_gap * (sides - 1)) / sides};
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const auto place = static_cast<float>(i);
      ImVec2 at{beside ? from.x + place * (size.x + map_gap * 2) : from.x,
                beside ? from.y : from.y + place * (size.y + map_gap)};
      float height = size.y;
      if (shown.size() > 1) {
        ImGui::SetCursorScreenPos(at);
        small_text(graphics(), title(i));
        const float line = ImGui::GetCursorScreenPos().y - at.y;
        at.y += line;
        height -= line;
      }
      if (i > 0) ImGui::PushID(static_cast<int>(i));
      draw_rows(i, at, {size.x, height});
      if (i > 0) ImGui::PopID();
    }
    ImGui::SetCursorScreenPos({from.x, from.y + room.y}); // the labels below the cells are no item
    ImGui::Dummy({0, 0});
  }

  void draw_rows(std::size_t place, ImVec2 from, ImVec2 size) {
    const auto shown = columns_.shown();
    LayerMaps& side = shown[place];
    if (side.empty() || side.same()) {
      ImGui::SetCursorScreenPos(from);
      ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
      small_text(graphics(), side.empty() ? columns_.why_empty(place) : same_note);
      return ImGui::PopTextWrapPos();
    }
    HeatMapView::Marks marks;
    marks.row = document().scene().layer;
    marks.hovered_column = shown_index(side.shown(), editor().hovered_token());
    HeatMapView& rows = side.rows();
    const auto input =
        rows.draw("rows", graphics(), from, {size.x - colour_bar_width, size.y}, marks, brightness());
    colour_bar(graphics(), rows.panel().scale, {input.to.x + 10, input.from.y}, input.to.y - input.from.y);
    draw_empty_reasons(side, input.from, input.to);
    if (input.hovered && static_cast<std::size_t>(input.hovered->column) < side.shown().size()) {
      const ShownToken& token = side.shown()[static_cast<std::size_t>(input.hovered->column)];
      editor().hover(token.first, token.count);
      const std::string& reason = side.maps().at(static_cast<std::size_t>(input.hovered->row)).empty_reason;
      text_tooltip(fmt::format("{}layer {}, “{}”\n{} {}{}{}",
                               shown.size() > 1 ? title(place) + std::string(", ") : "", input.hovered->row,
                               token.text, rows.panel().scale.label,
                               number_text(rows.value(input.hovered->row, input.hovered->column)),
                               reason.empty() ? "" : "\n", reason));
    }
    if (input.hovered) hovered_ = input.hovered->row;
    if (input.clicked) select_layer(editor(), input.clicked->row);
  }

  // In the rows themselves, where they are high enough for text.
  void draw_empty_reasons(LayerMaps& side, ImVec2 from, ImVec2 to) const {
    const float row = (to.y - from.y) / static_cast<float>(side.maps().size());
    ImGui::PushFont(graphics().fonts().regular, 11.0f);
    const float line = ImGui::GetTextLineHeight(), width = to.x - from.x - 12;
    for (std::size_t layer = 0; layer < side.maps().size() && row >= line; ++layer) {
      const std::string& reason = side.maps()[layer].empty_reason;
      if (reason.empty()) continue;
      const float y = from.y + (static_cast<float>(layer) + 0.5f) * row - line / 2;
      ImGui::GetWindowDrawList()->AddText({from.x + 6, y}, theme::packed(theme::quiet),
                                          fitted(reason, width).c_str());
    }
    ImGui::PopFont();
  }

  void draw_pictures() {
    const auto shown = columns_.shown();
    const auto full = std::ranges::find_if_not(shown, &LayerMaps::empty);
    const auto layers = static_cast<int>(full->maps().size());
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const float line = ImGui::GetTextLineHeight() + 3;
    const float titles = shown.size() > 1 ? ImGui::CalcTextSize(side_name(Shown::difference)).x + map_gap : 0;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 from{corner.x + titles, corner.y};
    const float bar = full->scale() == nullptr ? 0 : colour_bar_width;
    const ImVec2 room{ImGui::GetContentRegionAvail().x - titles - bar, ImGui::GetContentRegionAvail().y};
    const auto stacked = static_cast<float>(shown.size());
    // The number of rows that gives the largest maps.
    int per_row = layers;
    float side = 0;
    for (int rows = 1; rows <= 4; ++rows) {
      const int columns = (layers + rows - 1) / rows;
      const float height = (room.y - map_gap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
      const float fit =
          std::min((room.x - map_gap * static_cast<float>(columns - 1)) / static_cast<float>(columns),
                   (height - line - stack_gap * (stacked - 1)) / stacked);
      if (fit > side) {
        side = fit;
        per_row = columns;
      }
    }
    constexpr float least = 12; // smaller maps would say nothing: the panel scrolls instead
    side = std::floor(side);
    if (side < least) {
      side = least;
      per_row = std::clamp(static_cast<int>((room.x + map_gap) / (least + map_gap)), 1, layers);
    }
    const float height = line + stacked * side + (stacked - 1) * stack_gap;
    for (int layer = 0; layer < layers; ++layer) {
      const int row = layer / per_row, column = layer % per_row;
      const ImVec2 at{from.x + static_cast<float>(column) * (side + map_gap),
                      from.y + static_cast<float>(row) * (height + map_gap)};
      draw_layer(layer, full->maps()[static_cast<std::size_t>(layer)].kernel, at, line, side);
      if (column == 0 && shown.size() > 1) draw_titles({corner.x, at.y + line}, side);
    }
    const float right = from.x + static_cast<float>(per_row) * (side + map_gap) - map_gap;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const float y = from.y + line + static_cast<float>(i) * (side + stack_gap);
      if (const Scale* const scale = shown[i].scale()) colour_bar(graphics(), *scale, {right + 10, y}, side);
      if (!shown[i].empty()) continue;
      // Across the places of its maps, whose tooltips have the whole text.
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      ImGui::GetWindowDrawList()->AddText({from.x, y}, theme::packed(theme::quiet),
                                          fitted(columns_.why_empty(i), room.x).c_str());
      ImGui::PopFont();
    }
    ImGui::PopFont();
  }

  void draw_titles(ImVec2 at, float side) {
    for (std::size_t i = 0; i < columns_.shown().size(); ++i) {
      const float middle = (side - ImGui::GetTextLineHeight()) / 2;
      ImGui::GetWindowDrawList()->AddText({at.x, at.y + static_cast<float>(i) * (side + stack_gap) + middle},
                                          theme::packed(theme::quiet), title(i));
    }
  }

  // The number of the layer and the colour of its kernel, and below it the map of each side.
  void draw_layer(int layer, const std::string& kernel, ImVec2 at, float line, float side) {
    const auto shown = columns_.shown();
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto index = static_cast<std::size_t>(layer);
    const bool selected = layer == document().scene().layer;
    const std::string number = fmt::format("{}", layer);
    const float square = 12;
    const bool has_square = square + ImGui::CalcTextSize(number.c_str()).x <= side;
    if (has_square) kernel_square(list, {at.x + 4, at.y + line / 2 - 1}, 7, kernel);
    bool untrained = false;
    std::string tooltip = fmt::format("layer {}", layer);
    float y = at.y + line;
    for (std::size_t i = 0; i < shown.size(); ++i, y += side + stack_gap) {
      if (index >= shown[i].maps().size()) { // no results
        tooltip += fmt::format("\n{}: {}", title(i), columns_.why_empty(i));
        continue;
      }
      LayerMaps::Map& map = shown[i].maps()[index];
      list->AddRectFilled({at.x, y}, {at.x + side, y + side}, theme::packed(theme::raised));
      map.texture.draw(graphics(), list, {at.x, y}, {at.x + side, y + side}, brightness());
      list->AddRect({at.x, y}, {at.x + side, y + side}, theme::packed(theme::line)); // zero is the ground
      if (map.same) {
        const ImVec2 sign = ImGui::CalcTextSize("=");
        list->AddText({at.x + (side - sign.x) / 2, y + (side - sign.y) / 2}, theme::packed(theme::quiet),
                      "=");
      }
      untrained |= map.untrained;
      tooltip += fmt::format("\n{}{}{}{}", shown.size() > 1 ? title(i) + std::string(": ") : "", map.name,
                             map.untrained ? ", untrained" : "",
                             map.empty_reason.empty() ? "" : "\n" + map.empty_reason);
    }
    if (const std::string muted = muted_words(document(), layer); !muted.empty()) {
      tooltip += "\n" + muted;
      draw_muted(layer, at, {side, y - stack_gap - at.y - line});
    }
    list->AddText({at.x + (has_square ? square : 0), at.y},
                  theme::packed(selected ? theme::text : (untrained ? theme::amber : theme::quiet)),
                  number.c_str());
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(layer);
    if (ImGui::InvisibleButton("thumbnail", {side, y - stack_gap - at.y})) select_layer(editor(), layer);
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      hovered_ = layer;
      text_tooltip(tooltip);
    }
    if (selected || ImGui::IsItemHovered()) {
      list->AddRect({at.x - 1, at.y + line - 1}, {at.x + side + 1, y - stack_gap + 1},
                    theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
    }
  }

  // A cross over a muted layer, or the number of its muted heads above it.
  void draw_muted(int layer, ImVec2 at, ImVec2 size) const {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float line = ImGui::GetTextLineHeight() + 3;
    if (layer_is_muted(document(), layer))
      return muted_cross(list, {at.x, at.y + line}, {at.x + size.x, at.y + line + size.y});
    const std::string text = fmt::format("×{}", muted_in_layer(document(), layer));
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    constexpr float number = 28; // width of the layer's number
    const float below =
        width + number <= size.x ? 0 : line; // on the map if it does not fit beside the number
    list->AddText({at.x + size.x - width, at.y + below}, theme::packed(theme::amber), text.c_str());
  }

  std::optional<int> hovered_; // the layer under the pointer
  HeadMenu menu_;
  SideColumns<LayerMaps> columns_;
  bool image_ = true;
};

} // namespace

std::unique_ptr<Panel> make_layers_panel(PanelServices services) {
  return std::make_unique<LayersPanel>(services);
}

} // namespace hydrascope::app
