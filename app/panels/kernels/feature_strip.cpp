#include "app/panels/kernels/feature_strip.h"

#include <algorithm>
#include <cmath>

#include "app/ui/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float strip_label_width = 86;
constexpr float range_width = 46;

// Of the features that a pixel stands for the one furthest from zero.
std::size_t largest_of(const std::vector<double>& values, std::size_t first, std::size_t last) {
  std::size_t largest = first;
  for (std::size_t f = first; f < last; ++f) {
    if (std::abs(values[f]) > std::abs(values[largest])) largest = f;
  }
  return largest;
}

} // namespace

StripInput draw_strip(const char* id, Graphics& graphics, const FeatureStrip& strip, ImVec2 from, ImVec2 size,
                      std::optional<int> marked, const ImVec4& colour, float brightness) {
  StripInput input;
  const std::size_t count = strip.values.size();
  if (count == 0 || size.x < strip_label_width + range_width + 20 || size.y < 8) return input;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(graphics.fonts().mono, theme::size_small);
  const float line = ImGui::GetTextLineHeight();
  list->AddText({from.x, from.y + (size.y - line) / 2}, theme::packed(theme::text),
                fitted(with_known_glyphs(strip.name), strip_label_width - 6).c_str());
  ImGui::PopFont();

  const float width = size.x - strip_label_width - range_width;
  const float left = from.x + strip_label_width, right = left + width;
  double high = 0;
  bool negative = false;
  for (const double value : strip.values) {
    high = std::max(high, std::abs(value));
    negative = negative || value < 0;
  }
  const float zero = negative ? from.y + size.y / 2 : from.y + size.y - 1;
  const float reach = negative ? size.y / 2 - 1 : size.y - 2;
  list->AddRectFilled({left, from.y}, {right, from.y + size.y}, theme::packed(theme::raised, 0.5f));
  const auto bars = std::min(count, static_cast<std::size_t>(width));
  const float step = width / static_cast<float>(bars);
  const auto first_of = [&](std::size_t bar) { return bar * count / bars; };

  ImGui::SetCursorScreenPos({left, from.y});
  const bool clicked = ImGui::InvisibleButton(id, {width, size.y});
  if (ImGui::IsItemHovered()) {
    const auto bar = static_cast<std::size_t>(
        std::clamp((ImGui::GetMousePos().x - left) / step, 0.0f, static_cast<float>(bars - 1)));
    input.hovered = static_cast<int>(largest_of(strip.values, first_of(bar), first_of(bar + 1)));
    if (clicked) input.clicked = input.hovered;
  }
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const std::size_t feature = largest_of(strip.values, first_of(bar), first_of(bar + 1));
    const float x = left + step * static_cast<float>(bar);
    const bool lit = input.hovered == static_cast<int>(feature);
    if (lit || marked == static_cast<int>(feature)) {
      list->AddRectFilled({x, from.y}, {x + std::max(step, 1.0f), from.y + size.y},
                          theme::packed(lit ? theme::raised_more : theme::accent, lit ? 1.0f : 0.35f));
    }
    const double share = high > 0 ? strip.values[feature] / high : 0;
    const float end = zero - reach * static_cast<float>(share);
    const float gap = step > 5 ? 1.0f : 0.0f;
    list->AddRectFilled({x, std::min(zero, end)}, {x + step - gap, std::max(zero, end)},
                        theme::packed(colour, brightness));
  }
  list->AddLine({left, zero}, {right, zero}, theme::packed(theme::faint));
  ImGui::PushFont(graphics.fonts().mono, 11.0f);
  const std::string top = number_text(high, 2);
  list->AddText({right + 4, from.y - 1}, theme::packed(theme::quiet), top.c_str());
  if (negative && size.y > 26) {
    list->AddText({right + 4, from.y + size.y - ImGui::GetTextLineHeight()}, theme::packed(theme::quiet),
                  number_text(-high, 2).c_str());
  }
  ImGui::PopFont();
  return input;
}

} // namespace hydrascope::app
