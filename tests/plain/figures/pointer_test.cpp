// What lies at a point of a figure, and figures that fill a room.
#include <gtest/gtest.h>

#include "engine/figures/canvas.h"
#include "engine/figures/layout.h"

namespace hydrascope {
namespace {

Point middle(const Box& box) { return {box.x + box.width / 2, box.y + box.height / 2}; }

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

TEST(Pointer, LinesAreCutAtTheAxesThatAreShown) {
  class Extremes final : public Canvas {
  public:
    double left = 1e9, right = -1e9;
    int points = 0;
    void fill(const Box&, const Colour&, double) override {}
    void outline(const Box&, const Colour&, double, double) override {}
    void line(std::span<const Point> path, const Colour& colour, double) override {
      if (colour.red != 1) return;
      for (const Point& point : path) {
        left = std::min(left, point.x);
        right = std::max(right, point.x);
        ++points;
      }
    }
    void polygon(std::span<const Point>, const Colour&) override {}
    void circle(Point, double, const Colour&, double) override {}
    void image(const Pixels&, const Box&, bool) override {}
    void text(std::string_view, Point, const TextStyle&, double) override {}
  };
  Figure figure;
  LinesPanel plot;
  plot.lines.push_back({.name = {}, .x = {0, 1, 2, 3}, .y = {0, 1, 2, 3}, .colour = {1, 0, 0, 1}});
  plot.x_axis = Axis{0.5, 2.5, false};
  figure.panels = {plot};
  const Layout layout = lay_out(figure, {});
  Recording recording; // and what is recorded is drawn
  draw_figure(recording, figure, layout);
  Extremes canvas;
  recording.replay(canvas);
  const Box body = layout.panels[0].body;
  EXPECT_NEAR(canvas.left, body.x, 1e-6);
  EXPECT_NEAR(canvas.right, body.right(), 1e-6);
  EXPECT_GE(canvas.points, 4);
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
