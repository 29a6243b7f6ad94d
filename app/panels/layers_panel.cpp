// The focus maps of all layers as small multiples: a click selects a layer.
#include <cmath>

#include <fmt/format.h>

#include "app/panels/heat_map_view.h"
#include "app/panels/panels.h"
#include "app/panels/token_names.h"
#include "app/state/edits.h"
#include "app/views/focus_view.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

struct Thumbnail {
  MapTexture map;
  std::string kernel;
  std::string nothing; // why the map is empty; empty if it is not
  bool untrained = false;
};

class LayersPanel final : public Panel {
public:
  explicit LayersPanel(PanelServices services) : Panel("layers", "Layers", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    if (!document.scene().model) return;
    for (int layer = 0; layer < document.scene().model->layers; ++layer) add_focus(wants.then, layer);
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    if (!document.scene().model) return;
    const RunResult* any = snapshot.shown().any();
    if (any == nullptr) return;
    const bool image = document.kind == InputKind::image;
    if (image != (any->rows > 0)) {
      thumbnails_.clear();
      rows_.clear();
      return;
    }
    const auto layers = static_cast<std::size_t>(document.scene().model->layers);
    thumbnails_.resize(layers);
    const FocusOptions options{.normalise = Normalisation::max,
                               .with_sign = document.view.with_sign,
                               .tokens = document.view.tokens};
    shown_.clear();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const FoundFocus found = find_focus(snapshot.shown(), static_cast<int>(layer));
      if (found.focus == nullptr) continue;
      Thumbnail& thumbnail = thumbnails_[layer];
      const FocusMap map = focus_map(*found.run, *found.focus, options);
      thumbnail.map.set(map.values, map.scale, document.view.smooth && image);
      thumbnail.kernel = found.run->layers.at(layer).kernel.name;
      thumbnail.untrained = found.run->layers.at(layer).untrained;
      thumbnail.nothing = map.empty ? map.note : "";
      run_ = find_part(snapshot.shown(), found.run);
      scale_ = map.scale;
      shown_ = map.shown;
    }
    if (!image) gather_rows();
    rows_visible_ = !image;
    const auto* input = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
    if (run_) {
      figure_ = focus_figure(*run_, input, {}, options);
      figure_.columns = 6;
    }
  }

  void draw() override {
    if (thumbnails_.empty() || !run_) {
      empty_notice(graphics(), "Focus maps of every layer, once the model has run.");
      return;
    }
    if (rows_visible_) {
      draw_rows();
    } else {
      draw_pictures();
    }
  }

  std::optional<Figure> figure() const override {
    if (!run_) return std::nullopt;
    return figure_;
  }

private:
  static std::shared_ptr<const RunResult> find_part(const SideResults& results, const RunResult* run) {
    for (const auto& part : results.parts) {
      if (part.get() == run) return part;
    }
    return nullptr;
  }

  // A sentence's layers: one row of the matrix a layer.
  void gather_rows() {
    HeatMapPanel panel;
    panel.scale = scale_;
    std::int64_t tokens = 0;
    for (const Thumbnail& thumbnail : thumbnails_)
      tokens = std::max<std::int64_t>(tokens, thumbnail.map.columns());
    panel.values.shape = {static_cast<std::int64_t>(thumbnails_.size()), tokens};
    for (std::size_t layer = 0; layer < thumbnails_.size(); ++layer) {
      const MapTexture& map = thumbnails_[layer].map;
      for (std::int64_t token = 0; token < tokens; ++token) {
        panel.values.values.push_back(map.value(0, static_cast<int>(token)));
      }
      panel.y_ticks.push_back(fmt::format("{}", layer));
    }
    for (const ShownToken& token : shown_) panel.x_ticks.push_back(plain_piece(token.text));
    panel.x_ticks.resize(static_cast<std::size_t>(tokens));
    if (tokens > 0) rows_.set(std::move(panel));
  }

  void draw_rows() {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    HeatMapView::Marks marks;
    marks.row = document().scene().layer;
    marks.hovered_column = shown_index(shown_, editor().hovered_token());
    const auto input = rows_.draw("rows", graphics(), from, room, marks, brightness());
    if (input.hovered && static_cast<std::size_t>(input.hovered->column) < shown_.size()) {
      const ShownToken& token = shown_[static_cast<std::size_t>(input.hovered->column)];
      editor().hover(token.first, token.count);
      text_tooltip(fmt::format("layer {}, “{}”\ncontribution {} of the largest", input.hovered->row,
                               token.text,
                               number_text(rows_.value(input.hovered->row, input.hovered->column))));
    }
    if (input.clicked) select_layer(editor(), input.clicked->row);
  }

  void draw_pictures() {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const auto count = static_cast<int>(thumbnails_.size());
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const float line = ImGui::GetTextLineHeight() + 3;
    constexpr float gap = 6;
    // As few rows as let the maps be as large as possible.
    int per_row = count;
    float side = 0;
    for (int rows = 1; rows <= 4; ++rows) {
      const int columns = (count + rows - 1) / rows;
      const float fit =
          std::min((room.x - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns),
                   (room.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows) - line);
      if (fit > side) {
        side = fit;
        per_row = columns;
      }
    }
    side = std::floor(side);
    for (int layer = 0; layer < count && side > 8; ++layer) {
      Thumbnail& thumbnail = thumbnails_[static_cast<std::size_t>(layer)];
      const int row = layer / per_row, column = layer % per_row;
      const ImVec2 at{from.x + static_cast<float>(column) * (side + gap),
                      from.y + static_cast<float>(row) * (side + line + gap)};
      const bool selected = layer == document().scene().layer;
      kernel_square(list, {at.x + 4, at.y + line / 2 - 1}, 7, thumbnail.kernel);
      list->AddText(
          {at.x + 12, at.y},
          theme::packed(selected ? theme::text : (thumbnail.untrained ? theme::amber : theme::quiet)),
          fmt::format("{}", layer).c_str());
      const ImVec2 map_at{at.x, at.y + line};
      const ImVec2 map_to{at.x + side, map_at.y + side};
      list->AddRectFilled(map_at, map_to, theme::packed(theme::raised));
      thumbnail.map.draw(graphics(), list, map_at, map_to, brightness());
      ImGui::SetCursorScreenPos(at);
      ImGui::PushID(layer);
      if (ImGui::InvisibleButton("thumbnail", {side, side + line})) select_layer(editor(), layer);
      ImGui::PopID();
      if (ImGui::IsItemHovered())
        ImGui::SetTooltip("layer %d: %s%s%s%s", layer, thumbnail.kernel.c_str(),
                          thumbnail.untrained ? ", untrained" : "", thumbnail.nothing.empty() ? "" : "\n",
                          thumbnail.nothing.c_str());
      if (selected || ImGui::IsItemHovered()) {
        list->AddRect({map_at.x - 1, map_at.y - 1}, {map_to.x + 1, map_to.y + 1},
                      theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
      }
    }
    ImGui::PopFont();
  }

  std::vector<Thumbnail> thumbnails_;
  HeatMapView rows_;
  bool rows_visible_ = false;
  std::shared_ptr<const RunResult> run_;
  std::vector<ShownToken> shown_; // a sentence's columns
  Scale scale_;
  Figure figure_;
};

} // namespace

std::unique_ptr<Panel> make_layers_panel(PanelServices services) {
  return std::make_unique<LayersPanel>(services);
}

} // namespace hydrascope::app
