// Bars with a label each.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double bar_gap = 3;

Colour bar_colour(const BarsPanel& panel, const Ink& ink, std::size_t index) {
  return ink.mark(index < panel.colours.size() ? panel.colours[index] : Colour{0, 0.447f, 0.698f, 1});
}

// Bars start at 0: a bar's length is its value.
std::pair<double, double> bar_range(const BarsPanel& panel) {
  double low = 0, high = 0;
  for (const auto* const values : {&panel.values, &panel.marks}) {
    for (const double value : *values) {
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  return {low, high > low ? high : low + 1};
}

// The numbers of bars that have marks stand in a column, with the same decimals: beside a mark far from its
// bar, a number would be read as the mark's.
std::vector<std::string> value_texts(const BarsPanel& panel) {
  double largest = 0;
  for (const double value : panel.values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  const int decimals = decimals_of(largest);
  std::vector<std::string> texts;
  for (const double value : panel.values)
    texts.push_back(panel.marks.empty() || !std::isfinite(value) ? number_text(value)
                                                                 : decimal_text(value, decimals));
  return texts;
}

double widest_text(const std::vector<std::string>& texts, const Ink& ink) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, ink.label()));
  return width;
}

// The lines of a label; long labels are wrapped.
std::vector<std::string> bar_label(const std::string& label, const Ink& ink, double width) {
  return wrap_text(label, ink.label(), std::max(40.0, width));
}

double row_pitch(const Ink& ink, std::size_t lines) {
  return 1.9 * ink.size + static_cast<double>(lines > 0 ? lines - 1 : 0) * line_height(ink.label());
}

// The natural height of each row in a body of this width.
std::vector<double> row_pitches(const BarsPanel& panel, const Ink& ink, double width) {
  std::vector<double> pitches;
  for (const auto& label : panel.labels)
    pitches.push_back(row_pitch(ink, bar_label(label, ink, width * 0.6).size()));
  return pitches;
}

// The tops of the rows and the bottom of the last, stretched to the body's height.
std::vector<double> row_edges(const BarsPanel& panel, const Ink& ink, const Box& body) {
  const std::vector<double> pitches = row_pitches(panel, ink, body.width);
  const double stretch = body.height / std::accumulate(pitches.begin(), pitches.end(), 0.0);
  std::vector<double> edges{body.y};
  for (const double pitch : pitches) edges.push_back(edges.back() + stretch * pitch);
  return edges;
}

} // namespace

Surround surround(const BarsPanel& panel, const Ink& ink, const Placement&, const Extent& body) {
  double widest = 0;
  for (const auto& label : panel.labels) {
    for (const auto& line : bar_label(label, ink, body.width * 0.6)) {
      widest = std::max(widest, text_width(line, ink.label()));
    }
  }
  return {widest + 2 * bar_gap, widest_text(value_texts(panel), ink) + 2 * bar_gap,
          bar_gap + line_height(ink.tick()) + (panel.x_label.empty() ? 0 : line_height(ink.tick()))};
}

double body_height(const BarsPanel& panel, const Ink& ink, double width) {
  const std::vector<double> pitches = row_pitches(panel, ink, width);
  return std::accumulate(pitches.begin(), pitches.end(), 0.0);
}

void draw(Canvas& canvas, const BarsPanel& panel, const Ink& ink, const Placement&, const Box& body) {
  const auto [low, high] = bar_range(panel);
  const auto across = [&, first = low, last = high](double value) {
    return body.x + (value - first) / (last - first) * body.width;
  };
  for (const auto& mark : ticks_across(low, high, false, 5, body.width, ink)) {
    const double x = body.x + mark.position * body.width;
    canvas.line(std::array<Point, 2>{{{x, body.y}, {x, body.bottom()}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {x, body.bottom() + bar_gap + ascent(ink.tick())}, ink.tick(),
                 Align::centre);
  }
  const std::vector<double> edges = row_edges(panel, ink, body);
  const std::vector<std::string> texts = value_texts(panel);
  const double texts_width = widest_text(texts, ink);
  for (std::size_t index = 0; index < panel.labels.size(); ++index) {
    const double value = index < panel.values.size() ? panel.values[index] : std::nan("");
    const auto lines = bar_label(panel.labels[index], ink, body.width * 0.6);
    const double y = edges[index], pitch = edges[index + 1] - y;
    const double thickness = std::min(1.25 * ink.size, 0.85 * pitch);
    if (std::isfinite(value)) {
      const double from = across(std::min(0.0, value)), to = across(std::max(0.0, value));
      canvas.fill({from, y + (pitch - thickness) / 2, std::max(0.3, to - from), thickness},
                  bar_colour(panel, ink, index));
    }
    if (index < panel.marks.size() && std::isfinite(panel.marks[index])) {
      const double x = across(panel.marks[index]);
      canvas.line(std::array<Point, 2>{{{x, y + (pitch - thickness) / 2}, {x, y + (pitch + thickness) / 2}}},
                  ink.rule, 0.8);
    }
    const double baseline = y + pitch / 2 + 0.36 * ink.size;
    const std::string text = index < texts.size() ? texts[index] : number_text(value);
    if (panel.marks.empty()) {
      const double reach = std::isfinite(value) ? std::max(0.0, value) : 0;
      canvas.text(text, {across(reach) + bar_gap, baseline}, ink.label());
    } else {
      draw_aligned(canvas, text, {body.right() + bar_gap + texts_width, baseline}, ink.label(), Align::right);
    }
    const double text_height = line_height(ink.label()) * static_cast<double>(lines.size());
    draw_lines(canvas, lines, {body.x - 2 * bar_gap, y + (pitch - text_height) / 2}, ink.label(),
               Align::right);
  }
  canvas.line(std::array<Point, 2>{{{across(0), body.y}, {across(0), body.bottom()}}}, ink.rule, 0.6);
  draw_aligned(
      canvas, panel.x_label,
      {body.x + body.width / 2, body.bottom() + bar_gap + line_height(ink.tick()) + ascent(ink.tick())},
      ink.tick(), Align::centre);
}

std::optional<PanelItem> item_at(const BarsPanel& panel, const Ink& ink, const Box& body, Point point) {
  const std::vector<double> edges = row_edges(panel, ink, body);
  const auto below = std::ranges::upper_bound(edges, point.y);
  if (below == edges.begin() || below == edges.end()) return {};
  return PanelItem{static_cast<std::size_t>(below - edges.begin()) - 1};
}

std::optional<Box> box_of(const BarsPanel& panel, const Ink& ink, const Box& body, const PanelItem& item) {
  const std::vector<double> edges = row_edges(panel, ink, body);
  if (item.index + 1 >= edges.size()) return {};
  return Box{body.x, edges[item.index], body.width, edges[item.index + 1] - edges[item.index]};
}

} // namespace hydrascope
