// What lies at a point of a figure, and figures that fill a room.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/figures/canvas.h"
#include "engine/figures/layout.h"

namespace hydrascope {
namespace {

Point middle(const Box& box) { return {box.x + box.width / 2, box.y + box.height / 2}; }

// Notes the points of red lines, and all texts.
class Strokes final : public Canvas {
public:
  std::vector<Point> points;
  std::vector<std::string> texts;

  void fill(const Box&, const Colour&, double) override {}
  void outline(const Box&, const Colour&, double, double) override {}
  void line(std::span<const Point> path, const Colour& colour, double) override {
    if (colour.red == 1) points.insert(points.end(), path.begin(), path.end());
  }
  void polygon(std::span<const Point>, const Colour&) override {}
  void circle(Point, double, const Colour&, double) override {}
  void image(const Pixels&, const Box&, bool) override {}
  void text(std::string_view text, Point, const TextStyle&, double) override { texts.emplace_back(text); }
};

Figure one_of_each() {
  HeatMapPanel map;
  map.values.shape = {3, 4};
  for (int i = 0; i < 12; ++i) map.values.values.push_back(static_cast<float>(i));
  map.scale.high = 11;
  TokensPanel words;
  words.tokens = {"a", "longer", "sentence", "with", "##out", "end"};
  words.values = {0, 0.1, 0.2, 0.3, 0.4, 0.5};
  BarsPanel bars;
  bars.labels = {"first", "second", "third"};
  bars.values = {1, 3, 2};
  LinesPanel lines;
  lines.lines.push_back({.name = "up", .x = {0, 1, 2}, .y = {0, 1, 4}, .colour = {}});
  lines.lines.push_back({.name = "down", .x = {0, 1, 2}, .y = {4, 3, 1}, .colour = {}});
  TablePanel table;
  table.row_name = "kernel";
  table.rows = {"softmax", "elu"};
  table.columns = {{.name = "KL"}, {.name = "entropy"}};
  table.values = {{0, 1}, {2, 3}};
  Figure figure;
  figure.columns = 2;
  figure.panels = {map, words, bars, lines, table};
  return figure;
}

TEST(Pointer, FindsWhatWasDrawnThere) {
  const Figure figure = one_of_each();
  for (const Layout& layout : {lay_out(figure, {}), lay_out_within(figure, Ink{}, {500, 400})}) {
    const std::vector<FigureItem> items{{0, {2, 1}}, {0, {0, 3}}, {1, {2, 0}}, {1, {5, 0}}, {2, {0, 0}},
                                        {2, {2, 0}}, {3, {0, 1}}, {3, {1, 2}}, {4, {1, 0}}, {4, {0, 1}}};
    for (const FigureItem& item : items) {
      const auto box = box_of(figure, layout, item);
      ASSERT_TRUE(box) << item.panel;
      const auto found = item_at(figure, layout, middle(*box));
      ASSERT_TRUE(found) << item.panel << " " << item.item.index << " " << item.item.within;
      EXPECT_TRUE(*found == item) << item.panel << " " << item.item.index << " " << item.item.within;
    }
    EXPECT_FALSE(box_of(figure, layout, {0, {3, 0}}));
    EXPECT_FALSE(box_of(figure, layout, {3, {2, 0}}));
    EXPECT_FALSE(box_of(figure, layout, {9, {0, 0}}));
    EXPECT_FALSE(item_at(figure, layout, {-5, -5}));
  }
}

TEST(Pointer, APlotSaysWhichValueLiesThere) {
  LinesPanel plot;
  plot.log_x = true;
  plot.lines.push_back({.name = "line", .x = {1, 10, 100}, .y = {1, 2, 3}, .colour = {}});
  const PlotAxes axes = plot_axes(plot, {10, 20, 200, 100});
  const Point at = axes.at(10, 2);
  EXPECT_NEAR(at.x, 110, 1e-9);
  EXPECT_NEAR(axes.value(at).x, 10, 1e-9);
  EXPECT_NEAR(axes.value(at).y, 2, 1e-9);
}

TEST(Pointer, ALogarithmicAxisHasNoPlaceForZero) {
  LinesPanel plot;
  plot.log_y = true;
  plot.lines.push_back({.name = "line", .x = {0, 1, 2, 3, 4}, .y = {1, 2, 0, -1, 8}, .colour = {1, 0, 0, 1}});
  plot.lines.back().labels = {"a", "b", "c", "d", "e"};
  Figure figure;
  figure.panels = {plot};
  const Layout layout = lay_out(figure, {});
  Strokes canvas;
  draw_figure(canvas, figure, layout);
  const Box body = layout.panels[0].body;
  const PlotAxes axes = plot_axes(plot, body);
  for (const Point& point : canvas.points) // the line from 1 to 2, and a dot at 8
    EXPECT_TRUE(point.x <= axes.at(1, 2).x + 1e-6 || point.x > axes.at(3, 1).x) << point.x;
  EXPECT_EQ(std::ranges::count(canvas.texts, std::string("c")), 0);
  EXPECT_EQ(std::ranges::count(canvas.texts, std::string("d")), 0);
  EXPECT_EQ(std::ranges::count(canvas.texts, std::string("2 values ≤ 0 left out")), 1);
  EXPECT_TRUE(box_of(figure, layout, {0, {0, 1}}));
  EXPECT_FALSE(box_of(figure, layout, {0, {0, 2}}));
  EXPECT_FALSE(item_at(figure, layout, {axes.at(2, 1).x, body.bottom()}));
}

TEST(Pointer, LinesAreCutAtTheAxesThatAreShown) {
  Figure figure;
  LinesPanel plot;
  plot.lines.push_back({.name = {}, .x = {0, 1, 2, 3}, .y = {0, 1, 2, 3}, .colour = {1, 0, 0, 1}});
  plot.x_axis = Axis{0.5, 2.5, false};
  figure.panels = {plot};
  const Layout layout = lay_out(figure, {});
  Recording recording; // and what is recorded is drawn
  draw_figure(recording, figure, layout);
  Strokes canvas;
  recording.replay(canvas);
  const Box body = layout.panels[0].body;
  const auto [left, right] = std::ranges::minmax(canvas.points, {}, &Point::x);
  EXPECT_NEAR(left.x, body.x, 1e-6);
  EXPECT_NEAR(right.x, body.right(), 1e-6);
  EXPECT_GE(canvas.points.size(), 4u);
}

TEST(Room, PanelsFillItAndTakeMoreWhereTheyNeedIt) {
  Figure figure;
  LinesPanel plot;
  plot.lines.push_back({.name = "line", .x = {0, 1}, .y = {0, 1}, .colour = {}});
  plot.x_label = "x";
  figure.panels = {plot};
  const Layout layout = lay_out_within(figure, Ink{}, {300, 200});
  EXPECT_EQ(layout.page.height, 200);
  const Box body = layout.panels[0].body;
  EXPECT_GT(body.width, 200);
  EXPECT_GT(body.height, 150);
  EXPECT_LT(body.bottom(), 200);
  BarsPanel bars;
  for (int i = 0; i < 24; ++i) {
    bars.labels.push_back(std::to_string(i));
    bars.values.push_back(i);
  }
  figure.panels = {bars};
  const Layout tall = lay_out_within(figure, Ink{}, {300, 100});
  EXPECT_GT(tall.page.height, 200);
  EXPECT_LE(tall.panels[0].body.bottom(), tall.page.height);
}

} // namespace
} // namespace hydrascope
