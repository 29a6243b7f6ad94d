// A figure's shapes in a Dear ImGui draw list, in the window's fonts.
#pragma once

#include <map>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "engine/figures/canvas.h"
#include "engine/figures/panel_drawing.h"

namespace hydrascope::app {

// What is worked out when a recorded shape is first drawn, by its address. Clear it with the recording.
struct CanvasCache {
  std::map<const Pixels*, Texture> textures;
  std::map<const char*, double> text_widths;   // as the figure's layout measures them
  std::map<const ImFont*, float> line_heights; // of Dear ImGui's sizes, in the figure's, which are of an em
};

class ImGuiCanvas final : public Canvas {
public:
  // A figure's point is `figure_scale` points of the window; (0, 0) lies at `origin`.
  ImGuiCanvas(const Graphics& graphics, ImDrawList* list, ImVec2 origin, CanvasCache& cache,
              float opacity = 1)
      : graphics_(graphics), list_(list), origin_(origin), cache_(cache), opacity_(opacity) {}

  void fill(const hydrascope::Box& box, const Colour& colour, double radius) override;
  void outline(const hydrascope::Box& box, const Colour& colour, double line_width, double radius) override;
  void line(std::span<const Point> points, const Colour& colour, double line_width) override;
  void polygon(std::span<const Point> points, const Colour& colour) override;
  void circle(Point centre, double radius, const Colour& colour, double line_width) override;
  void image(const Pixels& pixels, const hydrascope::Box& box, bool smooth) override;
  void text(std::string_view text, Point baseline, const TextStyle& style, double angle) override;

private:
  ImVec2 at(Point point) const;
  void push_font(const TextStyle& style);
  ImU32 packed(const Colour& colour) const { return theme::packed(colour, opacity_); }

  const Graphics& graphics_;
  ImDrawList* list_;
  ImVec2 origin_;
  CanvasCache& cache_;
  float opacity_;
};

// Labels of a figure, which are written in 8 points, are as large as the window's small text. Dear ImGui's
// size of a font is its line's height, a figure's is its em.
inline constexpr float line_of_em = 1.21f; // of Inter
inline constexpr float figure_scale = theme::size_small / 8 / line_of_em;
// A figure's ink in the current theme.
Ink theme_ink();

} // namespace hydrascope::app
