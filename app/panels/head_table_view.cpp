#include "app/panels/head_table_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/head_marks.h"
#include "app/state/edits.h"
#include "app/state/head_edits.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

std::optional<HeadIndex> HeadTableView::draw(Editor& editor, Graphics& graphics, ImVec2 from, ImVec2 room,
                                             float brightness) const {
  const auto layers = static_cast<int>(panel.values.shape[0]);
  const auto heads = static_cast<int>(panel.values.shape[1]);
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr float left = 36, bottom = 16;
  ImGui::PushFont(graphics.fonts().mono, 11.0f);
  const ImVec2 at{from.x + left, from.y};
  const float width = (room.x - left - colour_bar_width) / static_cast<float>(heads);
  const float height = (room.y - bottom) / static_cast<float>(layers);
  const bool numbers = width > 34 && height > 13;
  const int selected = editor.document().scene().layer;
  std::optional<HeadIndex> hovered;
  for (int layer = 0; layer < layers; ++layer) {
    const float y = at.y + static_cast<float>(layer) * height;
    if (static_cast<std::size_t>(layer) < kernels.size()) {
      kernel_square(list, {from.x + 5, y + height / 2}, std::min(7.0f, height - 1),
                    kernels[static_cast<std::size_t>(layer)]);
    }
    if (height > 10 || layer % 2 == 0) {
      list->AddText({from.x + 13, y + height / 2 - 7},
                    theme::packed(layer == selected ? theme::text : theme::quiet),
                    fmt::format("{:>2}", layer).c_str());
    }
    for (int head = 0; head < heads; ++head) {
      if (draw_cell(editor, list, {at.x + static_cast<float>(head) * width, y}, {width, height},
                    {layer, head}, numbers, brightness))
        hovered = HeadIndex{layer, head};
    }
  }
  // As many numbers as there is room for.
  const float number_width = ImGui::CalcTextSize(std::to_string(heads - 1).c_str()).x + 3;
  const int each = std::max(1, static_cast<int>(std::ceil(number_width / width)));
  for (int head = 0; head < heads; head += each) {
    const std::string text = fmt::format("{}", head);
    list->AddText({at.x + (static_cast<float>(head) + 0.5f) * width - ImGui::CalcTextSize(text.c_str()).x / 2,
                   at.y + height * static_cast<float>(layers) + 2},
                  theme::packed(theme::quiet), text.c_str());
  }
  list->AddText({from.x, at.y + height * static_cast<float>(layers) + 2}, theme::packed(theme::quiet),
                "head");
  ImGui::PopFont();
  colour_bar(graphics, panel.scale, {from.x + room.x - 50, from.y}, room.y - bottom);
  if (hovered) editor.hover_head(*hovered);
  return hovered;
}

bool HeadTableView::draw_cell(Editor& editor, ImDrawList* list, ImVec2 at, ImVec2 size, HeadIndex cell,
                              bool numbers, float brightness) const {
  const auto [layer, head] = cell;
  const auto index = static_cast<std::size_t>(layer) * static_cast<std::size_t>(panel.values.shape[1]) +
                     static_cast<std::size_t>(head);
  const float value = panel.values.values[index];
  const ImVec2 to{at.x + size.x - 1, at.y + size.y - 1};
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(layer * 1000 + head);
  if (ImGui::InvisibleButton("cell", size)) select_cell(editor, layer, head);
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  const bool muted = is_muted(editor.document(), cell);
  if (std::isnan(value)) { // undefined is hatched, never zero-coloured
    list->AddRectFilled(at, to, theme::packed(theme::raised, brightness));
    list->PushClipRect(at, to, true);
    const int lines = static_cast<int>((size.x + size.y) / 6) + 1;
    for (int line = 0; line < lines; ++line) {
      const float x = at.x - size.y + 6 * static_cast<float>(line);
      list->AddLine({x, to.y}, {x + size.y, at.y}, theme::packed(theme::faint, 0.6f));
    }
    list->PopClipRect();
  } else {
    const Colour colour = scale_colour(panel.scale, static_cast<double>(value));
    list->AddRectFilled(at, to, theme::packed(colour, brightness));
    if (muted) muted_cross(list, at, to);
    if (numbers) {
      const std::string text = fmt::format("{:.2f}", value);
      const ImVec2 text_size = ImGui::CalcTextSize(text.c_str());
      const ImVec2 text_at{at.x + (size.x - text_size.x) / 2, at.y + (size.y - text_size.y) / 2};
      if (muted) // no line runs through the number
        list->AddRectFilled({text_at.x - 3, text_at.y},
                            {text_at.x + text_size.x + 3, text_at.y + text_size.y},
                            theme::packed(colour, brightness));
      list->AddText(text_at, theme::packed(theme::ink_on(colour), 0.9f), text.c_str());
    }
  }
  if (muted && std::isnan(value)) muted_cross(list, at, to);
  const Scene& scene = editor.document().scene();
  const bool selected = scene.layer == layer && scene.head.head == head;
  if (selected || hovered) {
    list->AddRect({at.x - 1, at.y - 1}, {to.x + 1, to.y + 1},
                  theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
  }
  if (!hovered) return false;
  std::string shown = std::isnan(value) ? undefined : number_text(static_cast<double>(value), 4);
  if (!std::isnan(value) && !unit.empty()) shown += " " + unit;
  ImGui::SetTooltip("layer %d, head %d%s\n%s", layer, head, muted ? ", muted" : "", shown.c_str());
  return true;
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

std::optional<HeadIndex> HeadTableView::draw_with_spreads(Editor& editor, Graphics& graphics, ImVec2 from,
                                                          ImVec2 room, float brightness) const {
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

void HeadTableView::draw_spreads(Graphics& graphics, ImVec2 from, float width, float brightness) const {
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
