// The focus maps of all layers as small multiples, of A, of B, as A − B or all three: a click selects a
// layer.
#include <array>
#include <cmath>
#include <ranges>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/head_marks.h"
#include "app/panels/layers/layer_maps.h"
#include "app/panels/panels.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

constexpr float gap = 6;
constexpr float within = 2; // between the maps of one layer

class LayersPanel final : public Panel {
public:
  explicit LayersPanel(PanelServices services) : Panel("layers", "Layers", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    for (int layer = 0; layer < document.scene().model->layers; ++layer) requested.then.add(FocusKey{layer});
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    image_ = document.kind == InputKind::image;
    if (snapshot.shown().any() == nullptr) {
      for (LayerMaps& side : sides_) side.clear();
      return;
    }
    constexpr std::array<Shown, 3> each = {Shown::a, Shown::b, Shown::difference};
    const Shown shown = document.view.shown;
    count_ = shown == Shown::all ? each.size() : 1;
    for (std::size_t i = 0; i < count_; ++i)
      sides_[i].prepare(snapshot, shown == Shown::all ? each[i] : shown);
  }

  void draw() override {
    if (sides_[0].empty()) {
      empty_notice(graphics(), "Focus maps of every layer, once the model has run.");
      return;
    }
    pointed_.reset();
    if (image_) {
      draw_pictures();
    } else {
      draw_sentences();
    }
    menu_.point_layer(pointed_);
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    if (sides_[0].empty()) return std::nullopt;
    Figure figure = sides_[0].figure();
    for (const LayerMaps& side : sides_ | std::views::take(count_) | std::views::drop(1)) {
      const auto& panels = side.figure().panels;
      figure.panels.insert(figure.panels.end(), panels.begin(), panels.end());
    }
    return figure;
  }

private:
  // Side by side where the panel is wide, else one below the other.
  void draw_sentences() {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const auto count = static_cast<float>(count_);
    const bool beside = room.x > room.y * 1.5f;
    const ImVec2 size{beside ? (room.x - gap * 2 * (count - 1)) / count : room.x,
                      beside ? room.y : (room.y - gap * (count - 1)) / count};
    for (std::size_t i = 0; i < count_; ++i) {
      const auto place = static_cast<float>(i);
      ImVec2 at{beside ? from.x + place * (size.x + gap * 2) : from.x,
                beside ? from.y : from.y + place * (size.y + gap)};
      float height = size.y;
      if (count_ > 1) {
        ImGui::SetCursorScreenPos(at);
        small_text(graphics(), sides_[i].title());
        const float line = ImGui::GetCursorScreenPos().y - at.y;
        at.y += line;
        height -= line;
      }
      if (i > 0) ImGui::PushID(static_cast<int>(i));
      draw_rows(sides_[i], at, {size.x, height});
      if (i > 0) ImGui::PopID();
    }
  }

  void draw_rows(LayerMaps& side, ImVec2 from, ImVec2 size) {
    HeatMapView::Marks marks;
    marks.row = document().scene().layer;
    marks.hovered_column = shown_index(side.shown(), editor().hovered_token());
    HeatMapView& rows = side.rows();
    const auto input =
        rows.draw("rows", graphics(), from, {size.x - colour_bar_width, size.y}, marks, brightness());
    colour_bar(graphics(), rows.panel().scale, {input.to.x + 10, input.from.y}, input.to.y - input.from.y);
    if (input.hovered && static_cast<std::size_t>(input.hovered->column) < side.shown().size()) {
      const ShownToken& token = side.shown()[static_cast<std::size_t>(input.hovered->column)];
      editor().hover(token.first, token.count);
      text_tooltip(fmt::format("{}layer {}, “{}”\n{} {}", count_ > 1 ? side.title() + std::string(", ") : "",
                               input.hovered->row, token.text, rows.panel().scale.label,
                               number_text(rows.value(input.hovered->row, input.hovered->column))));
    }
    if (input.hovered) pointed_ = input.hovered->row;
    if (input.clicked) select_layer(editor(), input.clicked->row);
  }

  void draw_pictures() {
    const auto layers = static_cast<int>(sides_[0].maps().size());
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const float line = ImGui::GetTextLineHeight() + 3;
    const float titles = count_ > 1 ? ImGui::CalcTextSize("A − B").x + gap : 0;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 from{corner.x + titles, corner.y};
    const float bar = sides_[0].scale() == nullptr ? 0 : colour_bar_width;
    const ImVec2 room{ImGui::GetContentRegionAvail().x - titles - bar, ImGui::GetContentRegionAvail().y};
    const auto stacked = static_cast<float>(count_);
    // As few rows as let the maps be as large as possible.
    int per_row = layers;
    float side = 0;
    for (int rows = 1; rows <= 4; ++rows) {
      const int columns = (layers + rows - 1) / rows;
      const float height = (room.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
      const float fit =
          std::min((room.x - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns),
                   (height - line - within * (stacked - 1)) / stacked);
      if (fit > side) {
        side = fit;
        per_row = columns;
      }
    }
    side = std::floor(side);
    const float height = line + stacked * side + (stacked - 1) * within;
    for (int layer = 0; layer < layers && side > 8; ++layer) {
      const int row = layer / per_row, column = layer % per_row;
      const ImVec2 at{from.x + static_cast<float>(column) * (side + gap),
                      from.y + static_cast<float>(row) * (height + gap)};
      draw_layer(layer, at, line, side);
      if (column == 0 && count_ > 1) draw_titles({corner.x, at.y + line}, side);
    }
    const float right = from.x + static_cast<float>(per_row) * (side + gap) - gap;
    for (std::size_t i = 0; i < count_ && side > 8; ++i) {
      const float y = from.y + line + static_cast<float>(i) * (side + within);
      if (const Scale* const scale = sides_[i].scale()) colour_bar(graphics(), *scale, {right + 10, y}, side);
    }
    ImGui::PopFont();
  }

  void draw_titles(ImVec2 at, float side) {
    for (std::size_t i = 0; i < count_; ++i) {
      const float middle = (side - ImGui::GetTextLineHeight()) / 2;
      ImGui::GetWindowDrawList()->AddText({at.x, at.y + static_cast<float>(i) * (side + within) + middle},
                                          theme::packed(theme::quiet), sides_[i].title());
    }
  }

  // One layer: its number, and below it the map of each side.
  void draw_layer(int layer, ImVec2 at, float line, float side) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto index = static_cast<std::size_t>(layer);
    const LayerMaps::Map& first = sides_[0].maps()[index];
    const bool selected = layer == document().scene().layer;
    kernel_square(list, {at.x + 4, at.y + line / 2 - 1}, 7, first.kernel);
    bool untrained = false;
    std::string about = fmt::format("layer {}", layer);
    float y = at.y + line;
    for (std::size_t i = 0; i < count_; ++i) {
      if (index >= sides_[i].maps().size()) continue; // has not run yet
      LayerMaps::Map& map = sides_[i].maps()[index];
      list->AddRectFilled({at.x, y}, {at.x + side, y + side}, theme::packed(theme::raised));
      map.texture.draw(graphics(), list, {at.x, y}, {at.x + side, y + side}, brightness());
      untrained |= map.untrained;
      about += fmt::format("\n{}{}{}{}", count_ > 1 ? sides_[i].title() + std::string(": ") : "", map.name,
                           map.untrained ? ", untrained" : "", map.nothing.empty() ? "" : "\n" + map.nothing);
      y += side + within;
    }
    if (const std::string muted = muted_words(document(), layer); !muted.empty()) {
      about += "\n" + muted;
      draw_muted(layer, at, {side, y - within - at.y - line});
    }
    list->AddText({at.x + 12, at.y},
                  theme::packed(selected ? theme::text : (untrained ? theme::amber : theme::quiet)),
                  fmt::format("{}", layer).c_str());
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(layer);
    if (ImGui::InvisibleButton("thumbnail", {side, y - within - at.y})) select_layer(editor(), layer);
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      pointed_ = layer;
      ImGui::SetTooltip("%s", about.c_str());
    }
    if (selected || ImGui::IsItemHovered()) {
      list->AddRect({at.x - 1, at.y + line - 1}, {at.x + side + 1, y - within + 1},
                    theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
    }
  }

  // A layer that is muted is crossed; of one that is not wholly, the number of its muted heads stands above
  // it.
  void draw_muted(int layer, ImVec2 at, ImVec2 size) const {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float line = ImGui::GetTextLineHeight() + 3;
    if (layer_is_muted(document(), layer))
      return muted_cross(list, {at.x, at.y + line}, {at.x + size.x, at.y + line + size.y});
    const std::string text = fmt::format("×{}", muted_in_layer(document(), layer));
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    constexpr float number = 28;                             // what the layer's own takes
    const float below = width + number <= size.x ? 0 : line; // on the map where it does not fit beside that
    list->AddText({at.x + size.x - width, at.y + below}, theme::packed(theme::amber), text.c_str());
  }

  std::optional<int> pointed_; // the layer under the pointer
  HeadMenu menu_;
  std::array<LayerMaps, 3> sides_; // A, B, A − B where all are shown, else the first alone
  std::size_t count_ = 1;
  bool image_ = true;
};

} // namespace

std::unique_ptr<Panel> make_layers_panel(PanelServices services) {
  return std::make_unique<LayersPanel>(services);
}

} // namespace hydrascope::app
