// Figures in the window: drawn as they would be exported, fitted to the available space, with hit testing and
// zoom.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "engine/figures/canvas.h"
#include "engine/figures/layout.h"

namespace hydrascope::app {

// What drawing computes once for each shape of a recording, by its address. Must be cleared with the
// recording.
struct CanvasCache {
  std::map<const Pixels*, Texture> textures;
  std::map<const char*, double> text_widths;   // as measured by the figure's layout
  std::map<const ImFont*, float> line_heights; // line height / em
};

// Draws the shapes of a figure into a Dear ImGui draw list, in the window's fonts.
class ImGuiCanvas final : public Canvas {
public:
  // A figure's point is `figure_scale` points of the window; (0, 0) lies at `origin`.
  ImGuiCanvas(const Graphics& graphics, ImDrawList* list, ImVec2 origin, CanvasCache& cache,
              float opacity = 1)
      : graphics_(graphics), list_(list), origin_(origin), cache_(cache), opacity_(opacity) {}

  void fill(const Box& box, const Colour& colour, double radius) override;
  void outline(const Box& box, const Colour& colour, double line_width, double radius) override;
  void line(std::span<const Point> points, const Colour& colour, double line_width) override;
  void polygon(std::span<const Point> points, const Colour& colour) override;
  void circle(Point centre, double radius, const Colour& colour, double line_width) override;
  void image(const Pixels& pixels, const Box& box, bool smooth) override;
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

// Makes a figure's labels (8 points) as large as the window's small text. Dear ImGui's font size is the
// line's height, a figure's is the em.
inline constexpr float line_of_em = 1.21f; // of Inter
inline constexpr float figure_scale = theme::size_small / 8 / line_of_em;
// The ink for figures in the current theme.
Ink theme_ink();

class DrawnFigure {
public:
  DrawnFigure() = default;
  DrawnFigure(const DrawnFigure& other) : figure_(other.figure_), zooms_(other.zooms_) {}
  DrawnFigure& operator=(const DrawnFigure& other);
  DrawnFigure(DrawnFigure&&) = default;
  DrawnFigure& operator=(DrawnFigure&&) = default;
  ~DrawnFigure() = default;

  void set(Figure figure);
  void clear() { set({}); }
  bool empty() const { return figure_.panels.empty(); }
  // With the zoomed ranges of its plots.
  const Figure& figure() const { return figure_; }

  // Sets the number of panels per row; 0: all in one row.
  void arrange(int columns);
  // Lets the wheel zoom plots and dragging pan them; a double click shows all data again.
  void let_zoom() { zooms_ = true; }

  struct Input {
    std::optional<FigureItem> item; // under the pointer
    std::optional<Point> point;     // the pointer, on the page
    bool clicked = false, double_clicked = false;
  };
  // Draws at the cursor and advances it.
  Input draw(const char* id, const Graphics& graphics, ImVec2 size, float opacity = 1);

  // Where an item was drawn in this frame; nullopt if it was not.
  struct Place {
    ImVec2 from, to;
  };
  std::optional<Place> place_of(const FigureItem& item) const;
  Place body_of(std::size_t panel) const;
  ImVec2 on_screen(Point point) const;
  const Layout& layout() const { return layout_; }

private:
  // The zoomed range of a plot; nullopt: all of its data.
  struct Range {
    std::optional<Axis> x, y;
  };
  void lay_out(ImVec2 size);
  void zoom(Point pointer);
  void apply_ranges();

  Figure figure_;
  bool zooms_ = false;
  std::vector<Range> ranges_; // by panel
  Layout layout_;             // of `size_` in the theme `mode_`
  Recording recording_;
  CanvasCache cache_;
  // Of the layout: panels mark the same items in every frame, and finding a box measures text.
  mutable std::vector<std::pair<FigureItem, std::optional<Box>>> known_boxes_;
  bool laid_out_ = false;
  ImVec2 size_, origin_;
  theme::Mode mode_ = theme::Mode::dark;
};

} // namespace hydrascope::app
