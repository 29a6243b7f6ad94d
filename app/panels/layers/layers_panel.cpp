// The focus maps of all layers as small multiples, of A, B or A − B. A click selects a layer.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/focus/focus_column.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/focus_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

FocusOptions layer_options(const Document& document) {
  FocusOptions options = focus_options(document);
  if (document.kind == InputKind::text) options.look.interpolation = Interpolation::nearest;
  return options;
}

// The focus maps of all layers for A, B or A − B.
class LayerMaps {
public:
  struct Map {
    MapTexture texture;
    std::string kernel;       // for the colour; A's in a difference
    std::string name;         // "elu", "elu − softmax"
    std::string empty_reason; // why the map is empty; otherwise empty
    bool untrained = false;
    bool same = false; // a difference of equal maps
  };

  // Keeps the maps for which there is no newer one.
  void prepare(const Snapshot& snapshot);
  void subtract(const LayerMaps& a, const LayerMaps& b, const Snapshot& snapshot);
  void clear();

  bool empty() const { return maps_.empty(); }
  std::vector<Map>& maps() { return maps_; }                      // by layer
  HeatMapView& rows() { return rows_; }                           // for sentences: layers × tokens
  const std::vector<ShownToken>& shown() const { return shown_; } // the columns of rows()
  const Figure& figure() const { return figure_; }
  const Scale* scale() const; // of all maps; null if each has its own
  // A difference of which every map is one of equal maps.
  bool same() const { return !maps_.empty() && std::ranges::all_of(maps_, &Map::same); }

private:
  // The newest results of one layer.
  struct Layer {
    std::shared_ptr<const RunResult> run, minus; // `minus` only in a difference
    TokenMap map;
    std::string kernel, name;
    bool untrained = false;
  };

  // `side`: its name in the figure; empty if it is shown alone.
  void show(const Document& document, const std::string& side);
  void gather_rows();

  std::vector<std::optional<Layer>> newest_; // by layer
  std::vector<Map> maps_;
  HeatMapView rows_;
  std::vector<ShownToken> shown_;
  Scale scale_; // the widest, for rows_
  Figure figure_;
};

const Scale* LayerMaps::scale() const { return scale_.shared ? &scale_ : nullptr; }

void LayerMaps::clear() {
  newest_.clear();
  maps_.clear();
  rows_.clear();
  scale_ = {};
  figure_ = {};
}

void LayerMaps::prepare(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  newest_.assign(static_cast<std::size_t>(document.scene().model->layers), std::nullopt);
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    const auto found = find(snapshot.shown(), FocusKey{static_cast<int>(layer)});
    if (!found) continue;
    const LayerRun& ran = found.run->layers.at(layer);
    newest_[layer] = {.run = found.run,
                      .minus = nullptr,
                      .map = focus_map(*found.run, *found.result, layer_options(document)),
                      .kernel = ran.kernel.name,
                      .name = ran.kernel.label(),
                      .untrained = ran.untrained};
  }
  show(document, snapshot.one_of_two ? side_name(document.view.shown) : "");
}

void LayerMaps::subtract(const LayerMaps& a, const LayerMaps& b, const Snapshot& snapshot) {
  newest_ = a.newest_;
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    std::optional<Layer>& own = newest_[layer];
    const std::optional<Layer>& other = b.newest_[layer];
    if (!other) own.reset();
    if (!own) continue;
    own->minus = other->run;
    own->map = map_difference(std::move(own->map), other->map);
    own->name += " − " + other->name;
    own->untrained |= other->untrained;
  }
  const bool alone = snapshot.document->view.shown == Shown::difference;
  show(*snapshot.document, alone ? "" : side_name(Shown::difference));
}

void LayerMaps::show(const Document& document, const std::string& side) {
  const FocusOptions options = layer_options(document);
  std::vector<FocusItem> items;
  Scale scale;
  for (std::size_t layer = 0; layer < newest_.size(); ++layer) {
    if (!newest_[layer]) continue;
    const Layer& newest = *newest_[layer];
    maps_.resize(newest_.size());
    Map& shown = maps_[layer];
    shown.kernel = newest.kernel;
    shown.name = newest.name;
    shown.untrained = newest.untrained;
    shown.empty_reason = newest.map.empty ? newest.map.note : "";
    shown.same = newest.map.same;
    shown.texture.set(newest.map.values, newest.map.scale, {.interpolation = options.look.interpolation});
    if (items.empty() || newest.map.scale.high > scale.high) scale = newest.map.scale;
    shown_ = newest.map.shown;
    items.push_back({.run = newest.run.get(),
                     .layer = static_cast<int>(layer),
                     .title = side.empty() ? "" : fmt::format("{}, layer {}\n{}", side, layer, newest.name),
                     .minus = newest.minus.get()});
  }
  if (items.empty()) return;
  scale_ = std::move(scale);
  const bool image = document.kind == InputKind::image;
  if (!image) gather_rows();
  const auto* input = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
  figure_ = focus_figure(items, input, options);
  if (image) figure_.columns = 6;
}

void LayerMaps::gather_rows() {
  HeatMapPanel panel;
  panel.scale = scale_;
  const auto tokens = static_cast<std::int64_t>(shown_.size());
  panel.values.shape = {static_cast<std::int64_t>(maps_.size()), tokens};
  for (std::size_t layer = 0; layer < maps_.size(); ++layer) {
    for (int token = 0; token < static_cast<int>(tokens); ++token)
      panel.values.values.push_back(maps_[layer].same ? 0 : maps_[layer].texture.value(0, token));
    panel.y_ticks.push_back(fmt::format("{}", layer));
  }
  for (const ShownToken& token : shown_) panel.x_ticks.push_back(plain_piece(token.text));
  if (tokens > 0) rows_.set(std::move(panel));
}

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
    if (snapshot.shown().any() == nullptr) return columns_.clear();
    columns_.prepare(snapshot);
  }

  void draw() override {
    if (columns_.shown().front().empty()) {
      empty_notice(graphics(), "Focus maps of every layer, once the model has run.");
      return;
    }
    hovered_.reset();
    const auto shown = columns_.shown();
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
    if (columns_.shown().front().empty()) return std::nullopt;
    return columns_.figure([](const LayerMaps& side) { return side.figure(); });
  }

private:
  // The name of a side, if several are shown.
  static const char* title(std::size_t place) { return side_name(static_cast<Shown>(place)); }

  // Side by side in a wide panel, otherwise one below the other.
  void draw_sentences() {
    const auto shown = columns_.shown();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const auto sides = static_cast<float>(shown.size());
    const bool beside = room.x > room.y * 1.5f;
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
  }

  void draw_rows(std::size_t place, ImVec2 from, ImVec2 size) {
    const auto shown = columns_.shown();
    LayerMaps& side = shown[place];
    if (side.same()) {
      ImGui::SetCursorScreenPos(from);
      return wrapped_small_text(graphics(), same_note);
    }
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
      text_tooltip(fmt::format("{}layer {}, “{}”\n{} {}",
                               shown.size() > 1 ? title(place) + std::string(", ") : "", input.hovered->row,
                               token.text, rows.panel().scale.label,
                               number_text(rows.value(input.hovered->row, input.hovered->column))));
    }
    if (input.hovered) hovered_ = input.hovered->row;
    if (input.clicked) select_layer(editor(), input.clicked->row);
  }

  void draw_pictures() {
    const auto shown = columns_.shown();
    const auto layers = static_cast<int>(shown[0].maps().size());
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const float line = ImGui::GetTextLineHeight() + 3;
    const float titles = shown.size() > 1 ? ImGui::CalcTextSize(side_name(Shown::difference)).x + map_gap : 0;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 from{corner.x + titles, corner.y};
    const float bar = shown[0].scale() == nullptr ? 0 : colour_bar_width;
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
    side = std::max(least, std::floor(side));
    const float height = line + stacked * side + (stacked - 1) * stack_gap;
    for (int layer = 0; layer < layers; ++layer) {
      const int row = layer / per_row, column = layer % per_row;
      const ImVec2 at{from.x + static_cast<float>(column) * (side + map_gap),
                      from.y + static_cast<float>(row) * (height + map_gap)};
      draw_layer(layer, at, line, side);
      if (column == 0 && shown.size() > 1) draw_titles({corner.x, at.y + line}, side);
    }
    const float right = from.x + static_cast<float>(per_row) * (side + map_gap) - map_gap;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const float y = from.y + line + static_cast<float>(i) * (side + stack_gap);
      if (const Scale* const scale = shown[i].scale()) colour_bar(graphics(), *scale, {right + 10, y}, side);
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

  // The number of the layer, and below it the map of each side.
  void draw_layer(int layer, ImVec2 at, float line, float side) {
    const auto shown = columns_.shown();
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto index = static_cast<std::size_t>(layer);
    const LayerMaps::Map& first = shown[0].maps()[index];
    const bool selected = layer == document().scene().layer;
    const std::string number = fmt::format("{}", layer);
    const float square = 12;
    const bool has_square = square + ImGui::CalcTextSize(number.c_str()).x <= side;
    if (has_square) kernel_square(list, {at.x + 4, at.y + line / 2 - 1}, 7, first.kernel);
    bool untrained = false;
    std::string tooltip = fmt::format("layer {}", layer);
    float y = at.y + line;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (index >= shown[i].maps().size()) continue; // no results yet
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
      y += side + stack_gap;
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
