#include "engine/figures/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

// Notes what is drawn, with the box that every text takes.
class Recorder final : public Canvas {
public:
  struct Text {
    std::string text;
    double x, y, size, width, angle;
  };
  std::vector<Text> texts;
  std::vector<Box> images;
  std::vector<std::pair<Box, Colour>> fills;

  void fill(const Box& box, const Colour& colour, double) override { fills.emplace_back(box, colour); }
  void outline(const Box&, const Colour&, double, double) override {}
  void line(std::span<const Point>, const Colour&, double) override {}
  void polygon(std::span<const Point>, const Colour&) override {}
  void circle(Point, double, const Colour&, double) override {}
  void image(const Pixels&, const Box& box, bool) override { images.push_back(box); }
  void text(std::string_view text, Point at, const TextStyle& style, double angle) override {
    texts.push_back({std::string(text), at.x, at.y, style.size, text_width(text, style), angle});
  }
};

HeatMapPanel panel_of(int side, const std::string& title) {
  HeatMapPanel panel;
  panel.title = title;
  panel.values.shape = {side, side};
  panel.values.values.assign(static_cast<std::size_t>(side) * static_cast<std::size_t>(side), 0.25f);
  panel.scale = {ColourMap::viridis, 0, 0.37, false, true, "attention weight"};
  for (int index = 0; index < side; ++index) {
    panel.x_ticks.push_back("token" + std::to_string(index));
    panel.y_ticks.push_back("token" + std::to_string(index));
  }
  panel.x_label = "key";
  panel.y_label = "query";
  return panel;
}

Figure three(int side) {
  Figure figure;
  figure.title =
      "A title that is long enough to need more than a single line when the figure is as narrow as one "
      "column";
  figure.subtitle = "a subtitle";
  figure.panels = {panel_of(side, "softmax"), panel_of(side, "hedgehog\nentropy 1.25, KL 0.31 nats"),
                   panel_of(side, "elu\nuntrained")};
  return figure;
}

class LayoutWidths : public testing::TestWithParam<std::tuple<double, int>> {};

TEST_P(LayoutWidths, NothingLeavesThePage) {
  const auto [width, side] = GetParam();
  const Figure figure = three(side);
  FigureStyle style;
  style.width_mm = width;
  const Layout layout = lay_out(figure, style);
  EXPECT_NEAR(layout.page.width, width / 25.4 * 72, 1e-9);
  Recorder canvas;
  draw_figure(canvas, figure, layout);
  ASSERT_FALSE(canvas.texts.empty());
  for (const auto& text : canvas.texts) {
    EXPECT_GE(text.x, 0) << text.text;
    EXPECT_LE(text.y, layout.page.height) << text.text;
    if (text.angle == 0) {
      EXPECT_LE(text.x + text.width, layout.page.width + 0.01) << text.text;
      EXPECT_GE(text.y - 0.7 * text.size, 0) << text.text;
    } else {
      EXPECT_LE(text.x, layout.page.width + 0.01) << text.text;
      EXPECT_GE(text.y - text.width, 0) << text.text;
    }
  }
  for (const auto& box : canvas.images) {
    EXPECT_GT(box.width, 0);
    EXPECT_LE(box.right(), layout.page.width + 0.01);
    EXPECT_LE(box.bottom(), layout.page.height + 0.01);
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, LayoutWidths,
                         testing::Combine(testing::Values(85.0, 170.0), testing::Values(1, 5, 20, 60)));

TEST(Layout, BodiesOfARowLineUp) {
  const Figure figure = three(12);
  const Layout layout = lay_out(figure, {});
  ASSERT_EQ(layout.panels.size(), 3u);
  for (const auto& placed : layout.panels) {
    EXPECT_DOUBLE_EQ(placed.body.y, layout.panels[0].body.y);
    EXPECT_DOUBLE_EQ(placed.body.height, layout.panels[0].body.height);
    EXPECT_DOUBLE_EQ(placed.body.width, layout.panels[0].body.width);
  }
}

TEST(Layout, ASharedScaleHasOneBar) {
  const Figure figure = three(12);
  EXPECT_NE(lay_out(figure, {}).shared_bar, nullptr);
  Figure own = three(12);
  std::get<HeatMapPanel>(own.panels[1]).scale.high = 0.5;
  const Layout layout = lay_out(own, {});
  EXPECT_EQ(layout.shared_bar, nullptr);
  Recorder shared_canvas, own_canvas;
  draw_figure(shared_canvas, figure, lay_out(figure, {}));
  draw_figure(own_canvas, own, layout);
  EXPECT_EQ(own_canvas.images.size(), shared_canvas.images.size() + 2);
}

TEST(Layout, ARowTooWideForThePageIsRefused) {
  Figure figure;
  for (int kernel = 0; kernel < 17; ++kernel) figure.panels.emplace_back(panel_of(12, "softmax"));
  try {
    lay_out(figure, paper_style("single"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("17 panels do not fit beside each other into 85 mm"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(lay_out_within(figure, Ink{}, {240, 200}).panels.size(), 17u); // the window scrolls
  figure.columns = 3;
  EXPECT_NO_THROW(lay_out(figure, paper_style("single")));
}

LinesPanel plot_named(const std::string& name) {
  LinesPanel plot;
  plot.title = "Time of a token";
  plot.x_label = "tokens before";
  plot.y_label = "ms, whisker: slowest round";
  plot.log_x = true;
  for (const char* const kernel : {"softmax", "hedgehog", "hydra-cosine"})
    plot.lines.push_back({.name = kernel + name, .x = {128, 512, 2048}, .y = {1, 1100, 4250}, .colour = {}});
  return plot;
}

TEST(Lines, APageHasAsManyColumnsAsLeaveRoomForThePlots) {
  const Figure two{.title = {}, .subtitle = {}, .panels = {plot_named(""), plot_named("")}, .provenance = {}};
  const Layout wide = lay_out(two, paper_style("double"));
  EXPECT_EQ(wide.panels[0].body.y, wide.panels[1].body.y);
  for (const char* const name : {"", ", in all layers but the first and the last, untrained"}) {
    Figure figure;
    for (int index = 0; index < 4; ++index) figure.panels.emplace_back(plot_named(name));
    const FigureStyle style = paper_style("single");
    const Layout layout = lay_out(figure, style);
    Recorder canvas;
    draw_figure(canvas, figure, layout);
    for (const PlacedPanel& placed : layout.panels)
      EXPECT_GE(placed.body.width, 10 * style.font_points) << name;
    for (const auto& text : canvas.texts) {
      if (text.angle != 0) continue;
      EXPECT_LE(text.x + text.width, layout.page.width + 0.01) << text.text;
      for (const auto& other : canvas.texts) {
        if (&other == &text || other.angle != 0 || std::abs(other.y - text.y) > 0.7 * text.size) continue;
        EXPECT_TRUE(text.x + text.width <= other.x || other.x + other.width <= text.x)
            << text.text << " and " << other.text;
      }
    }
  }
}

TEST(Lines, ALabelThatStraysLeadsBackToItsPoint) {
  class Strokes final : public Canvas {
  public:
    std::vector<Colour> texts;
    std::vector<std::pair<Point, Point>> lines; // coloured ones
    void fill(const Box&, const Colour&, double) override {}
    void outline(const Box&, const Colour&, double, double) override {}
    void line(std::span<const Point> path, const Colour& colour, double) override {
      if (colour.green < 0.3f) lines.emplace_back(path.front(), path.back());
    }
    void polygon(std::span<const Point>, const Colour&) override {}
    void circle(Point, double, const Colour&, double) override {}
    void image(const Pixels&, const Box&, bool) override {}
    void text(std::string_view text, Point, const TextStyle& style, double) override {
      if (text == "elu" || text == "relu" || text == "hedgehog") texts.push_back(style.colour);
    }
  };
  const Colour red{0.7f, 0, 0, 1}, blue{0, 0, 0.7f, 1};
  LinesPanel plot;
  plot.lines.push_back({.name = {}, .x = {1}, .y = {50}, .colour = red, .labels = {"elu"}});
  plot.lines.push_back({.name = {}, .x = {3}, .y = {90}, .colour = red, .labels = {"hedgehog"}});
  plot.lines.push_back({.name = {}, .x = {1.01}, .y = {50.1}, .colour = blue, .labels = {"relu"}});
  for (auto& line : plot.lines) line.style = LinesPanel::Style::points;
  Figure figure;
  figure.panels = {plot};
  const Layout layout = lay_out(figure, {});
  Strokes canvas;
  draw_figure(canvas, figure, layout);
  ASSERT_FALSE(canvas.lines.empty());
  const PlotAxes axes = plot_axes(plot, layout.panels[0].body);
  for (const auto& [from, to] : canvas.lines) {
    EXPECT_TRUE(std::abs(from.x - axes.at(1, 50).x) < 1e-6 ||
                std::abs(from.x - axes.at(1.01, 50.1).x) < 1e-6);
    EXPECT_GT(std::abs(to.y - from.y), 1);
  }
  ASSERT_EQ(canvas.texts.size(), 3u);
  EXPECT_EQ(std::ranges::count(canvas.texts, red.red, &Colour::red), 2);

  std::get<LinesPanel>(figure.panels[0]).lines.pop_back(); // room for both
  Strokes plain;
  draw_figure(plain, figure, lay_out(figure, {}));
  EXPECT_TRUE(plain.lines.empty());
  for (const Colour& colour : plain.texts) EXPECT_EQ(colour.red, layout.ink.muted.red);
}

TEST(Lines, APageNamesEveryLine) {
  for (const std::size_t count : {3U, 17U, 40U}) {
    LinesPanel plot;
    for (std::size_t index = 0; index < count; ++index)
      plot.lines.push_back(
          {.name = "kernel " + std::to_string(index), .x = {0, 1}, .y = {0, 1}, .colour = {}});
    Figure figure;
    figure.panels = {plot, plot};
    const Layout layout = lay_out(figure, {});
    Recorder canvas;
    draw_figure(canvas, figure, layout);
    for (const LinesPanel::Line& line : plot.lines)
      EXPECT_EQ(std::ranges::count(canvas.texts, line.name, &Recorder::Text::text), 2) << line.name;
    // The name of the axis is empty, and takes no room.
    for (const auto& text : canvas.texts)
      if (!text.text.empty()) {
        EXPECT_LE(text.y, layout.page.height) << text.text;
      }
    const Box& body = layout.panels.front().body;
    EXPECT_GE(body.height, 0.6 * body.width - 1e-9);
    if (count == 3) {
      EXPECT_NEAR(body.height, 0.6 * body.width, 1e-9);
    }
  }
}

TEST(HeatMap, AxesWithoutNamesHaveTheNumbersOfCells) {
  for (const double width : {85.0, 170.0, 340.0}) {
    for (int side = 2; side <= 60; ++side) {
      SCOPED_TRACE(testing::Message() << side << " cells, " << width << " mm");
      HeatMapPanel panel = panel_of(side, "softmax");
      panel.x_ticks.clear();
      panel.y_ticks.clear();
      Figure figure;
      figure.panels = {panel};
      FigureStyle style;
      style.width_mm = width;
      const Layout layout = lay_out(figure, style);
      Recorder canvas;
      draw_figure(canvas, figure, layout);
      const Box body = layout.panels.front().body;
      int across = 0, down = 0;
      for (const auto& text : canvas.texts) { // the colour bar's numbers have decimals
        if (text.text.empty() || text.text.find_first_not_of("0123456789") != std::string::npos) continue;
        if (text.x + text.width < body.x) {
          ++down;
          continue;
        }
        ++across;
        const int cell = std::stoi(text.text);
        EXPECT_LT(cell, side);
        EXPECT_NEAR(text.x + text.width / 2, body.x + (cell + 0.5) * body.width / side, 1e-6);
      }
      EXPECT_GE(across, 2);
      EXPECT_GE(down, 2);
    }
  }
}

// A weight of 0 has the colour of the ground, on a light one and in a difference.
TEST(HeatMap, KeysAfterTheQueryHaveNotTheColourOfZero) {
  for (const bool dark : {false, true}) {
    for (const ColourMap map : {ColourMap::viridis, ColourMap::cividis, ColourMap::blue_white_red}) {
      SCOPED_TRACE(testing::Message() << colour_map_name(map) << (dark ? ", dark" : ", light"));
      HeatMapPanel panel = panel_of(2, "softmax");
      panel.values.values[1] = std::numeric_limits<float>::quiet_NaN();
      panel.scale.map = map;
      panel.missing = MissingCells::grey;
      Figure figure;
      figure.panels = {panel};
      FigureStyle style;
      style.dark = dark;
      const Layout layout = lay_out(figure, style);
      const Box body = layout.panels.front().body;
      Recorder canvas;
      draw_figure(canvas, figure, layout);
      const auto under = std::ranges::find_if(canvas.fills, [&](const auto& fill) {
        return fill.first.x == body.x && fill.first.y == body.y && fill.first.width == body.width &&
               fill.first.height == body.height;
      });
      ASSERT_NE(under, canvas.fills.end());
      const auto apart = [&](const Colour& other) {
        const Colour& grey = under->second;
        return std::max({std::abs(grey.red - other.red), std::abs(grey.green - other.green),
                         std::abs(grey.blue - other.blue)});
      };
      constexpr float visible = 0.03f;
      EXPECT_GT(apart(layout.ink.ground), visible);
      const ColourTable colours = colours_on(layout.ink.ground, map, Backdrop::matrix);
      EXPECT_GT(apart(colour_at(colours, is_diverging(map) ? 0.5 : 0.0)), visible);
    }
  }
}

TEST(ShortenedText, KeepsBothEnds) {
  const TextStyle style;
  EXPECT_EQ(shortened_text("hydra-cosine", style, 500), "hydra-cosine");
  const std::string shorter = shortened_text("softmax, ‖v‖ in two layers", style, 60);
  EXPECT_LE(text_width(shorter, style), 60);
  EXPECT_TRUE(shorter.starts_with("soft") && shorter.ends_with("yers")) << shorter;
  EXPECT_NE(shorter.find("…"), std::string::npos);
  EXPECT_EQ(shortened_text("hydra-cosine", style, 0), "…");
}

TEST(WrapText, BreaksAtSpacesAndKeepsEveryLetter) {
  const TextStyle style;
  const std::string text = "one two three four five six seven";
  const auto lines = wrap_text(text, style, 40);
  ASSERT_GT(lines.size(), 1u);
  std::string joined;
  for (const auto& line : lines) {
    EXPECT_LE(text_width(line, style), 40) << line;
    joined += (joined.empty() ? "" : " ") + line;
  }
  EXPECT_EQ(joined, text);
  const auto broken = wrap_text(std::string(200, 'w'), style, 40);
  std::size_t letters = 0;
  for (const auto& line : broken) {
    EXPECT_LE(text_width(line, style), 40);
    letters += line.size();
  }
  EXPECT_EQ(letters, 200u);
}

} // namespace
} // namespace hydrascope
