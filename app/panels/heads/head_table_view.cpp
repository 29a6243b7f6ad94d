#include "app/panels/heads/head_table_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/head_marks.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

void HeadTableView::set(HeatMapPanel table, std::vector<std::string> layer_kernels) {
  kernels = std::move(layer_kernels);
  table.decimals = 2;
  for (const std::string& kernel : kernels) table.row_colours.push_back(kernel_colour(kernel));
  panel = table;
  table.note.clear(); // the pointer says why a cell is hatched, and the map has its room
  Figure figure;
  figure.panels.emplace_back(std::move(table));
  map_.set(std::move(figure));
}

void HeadTableView::clear() {
  panel = {};
  kernels.clear();
  map_.clear();
}

std::optional<HeadIndex> HeadTableView::draw(Editor& editor, const Graphics& graphics, ImVec2 from,
                                             ImVec2 room, float brightness) {
  ImGui::SetCursorScreenPos(from);
  const DrawnFigure::Input input = map_.draw("table", graphics, room, brightness);
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto place_of = [&](HeadIndex head) {
    return map_.place_of({0, {static_cast<std::size_t>(head.layer), static_cast<std::size_t>(head.head)}});
  };
  const auto layers = static_cast<int>(panel.values.extent(0)),
             heads = static_cast<int>(panel.values.extent(1));
  for (int layer = 0; layer < layers; ++layer) {
    for (int head = 0; head < heads; ++head) {
      if (of_layers || !is_muted(document, {layer, head})) continue;
      if (const auto place = place_of({layer, head})) muted_cross(list, place->from, place->to);
    }
  }
  const auto outline = [&](HeadIndex head, const ImVec4& colour) {
    if (const auto place = place_of(head))
      list->AddRect(place->from, place->to, theme::packed(colour), 0, 2.0f);
  };
  std::optional<HeadIndex> hovered;
  if (input.item) {
    hovered = HeadIndex{static_cast<int>(input.item->item.index), static_cast<int>(input.item->item.within)};
    outline(*hovered, theme::text);
    if (input.clicked && of_layers) select_layer(editor, hovered->layer);
    if (input.clicked && !of_layers) select_cell(editor, hovered->layer, hovered->head);
    const float value = panel.values.values.at(input.item->item.index * static_cast<std::size_t>(heads) +
                                               input.item->item.within);
    std::string shown = std::isnan(value) ? undefined : number_text(static_cast<double>(value), 4);
    if (!std::isnan(value) && !unit.empty()) shown += " " + unit;
    const bool muted = !of_layers && is_muted(document, *hovered);
    ImGui::SetTooltip("layer %d%s%s\n%s", hovered->layer,
                      of_layers ? "" : fmt::format(", head {}", hovered->head).c_str(),
                      muted ? ", muted" : "", shown.c_str());
    if (!of_layers) editor.hover_head(*hovered);
  }
  if (of_layers) outline({scene.layer, 0}, theme::accent);
  if (scene.head.head && !of_layers) outline({scene.layer, *scene.head.head}, theme::accent);
  return hovered;
}

std::vector<KernelSpread> kernel_spreads(const HeatMapPanel& panel, const std::vector<std::string>& kernels) {
  std::vector<KernelSpread> spreads;
  for (std::size_t layer = 0; layer < kernels.size(); ++layer) {
    for (const float value : panel.values.slice(static_cast<std::int64_t>(layer))) {
      if (std::isnan(value)) continue;
      auto found = std::ranges::find(spreads, kernels[layer], &KernelSpread::kernel);
      if (found == spreads.end()) found = spreads.insert(spreads.end(), KernelSpread{kernels[layer], {}});
      found->values.push_back(value);
    }
  }
  for (KernelSpread& spread : spreads) std::ranges::sort(spread.values);
  return spreads;
}

namespace {
constexpr float spread_row = 18;
}

std::optional<HeadIndex> HeadTableView::draw_with_spreads(Editor& editor, const Graphics& graphics,
                                                          ImVec2 from, ImVec2 room, float brightness) {
  const float height = spreads_height();
  constexpr float least_table = 120; // lower than this the table needs all of the room
  constexpr float least_width = 160; // of the spreads with their names
  const bool both = height > 0 && room.y - height > least_table && room.x - colour_bar_width >= least_width;
  if (both) room.y -= height;
  const auto pointed = draw(editor, graphics, from, room, brightness);
  if (both) draw_spreads(graphics, {from.x, from.y + room.y}, room.x, brightness);
  return pointed;
}

float HeadTableView::spreads_height() const {
  return spreads.empty() ? 0 : 6 + spread_row * static_cast<float>(spreads.size());
}

void HeadTableView::draw_spreads(const Graphics& graphics, ImVec2 from, float width, float brightness) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr float name_width = 120;
  const float left = from.x + name_width, room = width - name_width - colour_bar_width;
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  float y = from.y + 6;
  for (const KernelSpread& spread : spreads) {
    const ImU32 colour = theme::packed(theme::kernel(spread.kernel), brightness);
    const auto x_of = [&](float value) {
      return left + static_cast<float>(scale_position(panel.scale, static_cast<double>(value))) * room;
    };
    kernel_square(list, {from.x + 5, y + spread_row / 2}, 7, spread.kernel);
    list->AddText({from.x + 13, y + 2}, theme::packed(theme::quiet),
                  fitted(spread.kernel, name_width - 20).c_str());
    list->AddLine({left, y + spread_row / 2}, {left + room, y + spread_row / 2}, theme::packed(theme::line));
    for (const float value : spread.values)
      list->AddLine({x_of(value), y + 5}, {x_of(value), y + spread_row - 5}, colour, 1.0f);
    list->AddLine({x_of(spread.median()), y + 1}, {x_of(spread.median()), y + spread_row - 1}, colour, 3.0f);
    ImGui::SetCursorScreenPos({from.x, y});
    ImGui::PushID(spread.kernel.c_str());
    ImGui::InvisibleButton("spread", {width - colour_bar_width, spread_row});
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      const auto number = [](float value) { return number_text(static_cast<double>(value)); };
      ImGui::SetTooltip("%s", fmt::format("{}: {} heads, median {}, from {} to {} {}", spread.kernel,
                                          spread.values.size(), number(spread.median()),
                                          number(spread.values.front()), number(spread.values.back()), unit)
                                  .c_str());
    }
    y += spread_row;
  }
  ImGui::PopFont();
}

} // namespace hydrascope::app
