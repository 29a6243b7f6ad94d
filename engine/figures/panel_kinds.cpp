// What all panels have, by their kind.
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {

const Scale* scale_of(const FigurePanel& panel) {
  return std::visit(
      [](const auto& value) -> const Scale* {
        using Kind = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Kind, BarsPanel> || std::is_same_v<Kind, LinesPanel> ||
                      std::is_same_v<Kind, TablePanel>) {
          return nullptr;
        } else {
          return value.values.empty() ? nullptr : &value.scale;
        }
      },
      panel);
}

Backdrop backdrop_of(const FigurePanel& panel) {
  if (const auto* const overlay = std::get_if<OverlayPanel>(&panel)) return backdrop_of(overlay->mode);
  return std::holds_alternative<TokensPanel>(panel) ? Backdrop::words : Backdrop::matrix;
}

const std::string& title_of(const FigurePanel& panel) {
  return std::visit([](const auto& value) -> const std::string& { return value.title; }, panel);
}

Surround surround(const FigurePanel& panel, const Ink& ink, const Placement& placement, const Extent& body) {
  return std::visit([&](const auto& value) { return surround(value, ink, placement, body); }, panel);
}

std::optional<PanelItem> item_at(const FigurePanel& panel, const Ink& ink, const Box& body, Point point) {
  return std::visit([&](const auto& value) { return item_at(value, ink, body, point); }, panel);
}

std::optional<Box> box_of(const FigurePanel& panel, const Ink& ink, const Box& body, const PanelItem& item) {
  return std::visit([&](const auto& value) { return box_of(value, ink, body, item); }, panel);
}

double body_height(const FigurePanel& panel, const Ink& ink, double width) {
  return std::visit([&](const auto& value) { return body_height(value, ink, width); }, panel);
}

void draw_panel(Canvas& canvas, const FigurePanel& panel, const Ink& ink, const Placement& placement,
                const Box& body) {
  std::visit([&](const auto& value) { draw(canvas, value, ink, placement, body); }, panel);
}

} // namespace hydrascope
