#include "app/views/writing_view.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "engine/figures/scale.h"
#include "engine/measure/quantiles.h"

namespace hydrascope::app {
namespace {

using Number = std::function<double(const WrittenToken&)>;

// A point for each token, or the mean of some of a long text.
LinesPanel::Line line_of(const Writing& writing, const Side which, const bool brief, const Number& number) {
  const WrittenSide& side = writing.side(which);
  constexpr std::size_t most_points = 128;
  const std::size_t each = (side.tokens.size() + most_points - 1) / most_points;
  LinesPanel::Line line;
  line.name = brief ? std::string(side_name(which)) : fmt::format("{} {}", side_name(which), side.schedule);
  line.colour = kernel_colour(side.kernel);
  if (which == Side::b) line.style = LinesPanel::Style::dashed; // A's line is seen below it
  for (std::size_t first = 0; first < side.tokens.size(); first += each) {
    const std::size_t end = std::min(first + each, side.tokens.size());
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) sum += number(side.tokens[i]);
    line.x.push_back(static_cast<double>(side.prompt_tokens) + static_cast<double>(first + end + 1) / 2);
    line.y.push_back(sum / static_cast<double>(end - first));
  }
  return line;
}

std::vector<Side> written_sides(const Writing& writing) {
  if (writing.alike) return {Side::a};
  return {Side::a, Side::b};
}

LinesPanel plot(const Writing& writing, const bool brief, std::string title, std::string y_label,
                const Number& number) {
  LinesPanel panel;
  panel.title = std::move(title);
  panel.x_label = "tokens so far";
  panel.y_label = std::move(y_label);
  std::vector<double> all;
  for (const Side side : written_sides(writing)) {
    LinesPanel::Line line = line_of(writing, side, brief, number);
    if (line.x.empty()) continue;
    all.insert(all.end(), line.y.begin(), line.y.end());
    panel.lines.push_back(std::move(line));
  }
  if (all.empty()) return panel;
  // A token that the system kept waiting must not flatten the others: it ends at the edge, and the axis says
  // so.
  std::ranges::sort(all);
  constexpr double share = 0.95, most_above = 1.6;
  const double usual = quantile(all, share);
  const double high = std::min(all.back(), most_above * usual);
  if (high > 0) panel.y_axis = Axis{0, 1.08 * high, false};
  const auto above = std::ranges::count_if(all, [&](double value) { return value > 1.08 * high; });
  if (above > 0)
    panel.x_label += fmt::format("; {} above, {}{} {}", above, above > 1 ? "up to " : "",
                                 number_text(all.back()), panel.y_label);
  return panel;
}

TokensPanel text_panel(const Writing& writing, const Side which, const double high) {
  const WrittenSide& side = writing.side(which);
  TokensPanel panel;
  panel.own_spaces = true;
  panel.title = fmt::format("{}  {}", writing.alike ? "A and B" : side_name(which), side.schedule);
  double sum = 0;
  for (const WrittenToken& token : side.tokens) {
    panel.tokens.push_back(token.name);
    panel.values.push_back(-token.logprob);
    sum -= token.logprob;
  }
  panel.scale.map = ColourMap::magma;
  panel.scale.high = high;
  panel.scale.shared = !writing.alike;
  panel.scale.label = "loss (nats)";
  if (!side.tokens.empty())
    panel.note =
        fmt::format("{} tokens, mean loss {} nats; {}", side.tokens.size(),
                    number_text(sum / static_cast<double>(side.tokens.size())), writing_speed_text(side));
  return panel;
}

} // namespace

std::string telling_kernel(const Schedule& schedule) {
  for (const KernelSpec& kernel : schedule.layers)
    if (!kernel_info(kernel).exact_softmax) return kernel.name;
  return schedule.layers.empty() ? KernelSpec().name : schedule.layers.front().name;
}

std::string state_text(const std::int64_t bytes) {
  constexpr double mega = 1e6, kilo = 1e3;
  const auto number = static_cast<double>(bytes);
  return number < mega ? number_text(number / kilo) + " kB" : number_text(number / mega) + " MB";
}

std::size_t common_tokens(const WrittenSide& a, const WrittenSide& b) {
  const auto [one, other] =
      std::ranges::mismatch(a.tokens, b.tokens, {}, &WrittenToken::id, &WrittenToken::id);
  return static_cast<std::size_t>(one - a.tokens.begin());
}

std::string writing_speed_text(const WrittenSide& side) {
  if (side.tokens.empty()) return {};
  constexpr std::size_t last = 15;
  const std::size_t first = side.tokens.size() > last ? side.tokens.size() - last : 0;
  std::vector<double> times;
  for (std::size_t i = first; i < side.tokens.size(); ++i) times.push_back(side.tokens[i].ms);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return fmt::format("{} ms a token, state {}", number_text(*middle),
                     state_text(side.tokens.back().state_bytes));
}

std::string writing_progress_text(const Writing& writing, const Side which) {
  const WrittenSide& side = writing.side(which);
  if (!side.problem.empty()) return {};
  const std::string count = fmt::format("{} token{}", side.tokens.size(), side.tokens.size() == 1 ? "" : "s");
  if (side.ended == "positions") return "all positions of the model are used after " + count;
  if (!side.ended.empty()) return side.ended + " after " + count;
  if (!writing.running) return count;
  if (side.prompt_tokens == 0) return "reading the text …";
  return fmt::format("{} of {} tokens", side.tokens.size(), writing.wanted[static_cast<std::size_t>(which)]);
}

Figure writing_speed_figure(const Writing& writing, const bool brief) {
  Figure figure;
  figure.columns = 2;
  double most_bytes = 0;
  bool any = false;
  for (const Side side : written_sides(writing)) {
    for (const WrittenToken& token : writing.side(side).tokens) {
      most_bytes = std::max(most_bytes, static_cast<double>(token.state_bytes));
      any = true;
    }
  }
  if (!any) return figure;
  constexpr double mega = 1e6, kilo = 1e3;
  const bool large = most_bytes >= mega;
  figure.panels.emplace_back(
      plot(writing, brief, "Time of a token", "ms", [](const WrittenToken& token) { return token.ms; }));
  figure.panels.emplace_back(
      plot(writing, brief, "State of all layers", large ? "MB" : "kB", [large](const WrittenToken& token) {
        return static_cast<double>(token.state_bytes) / (large ? mega : kilo);
      }));
  return figure;
}

Figure writing_figure(const Writing& writing) {
  Figure figure = writing_speed_figure(writing);
  std::vector<FigurePanel> texts;
  double high = 1;
  for (const Side side : written_sides(writing))
    for (const WrittenToken& token : writing.side(side).tokens) high = std::max(high, -token.logprob);
  for (const Side side : written_sides(writing))
    if (!writing.side(side).tokens.empty()) texts.emplace_back(text_panel(writing, side, high));
  if (texts.size() == 1 && !figure.panels.empty()) figure.columns = 1;
  figure.panels.insert(figure.panels.begin(), texts.begin(), texts.end());
  figure.title = writing.model + " · written after a text";
  figure.subtitle = "After: " + writing.prompt;
  return figure;
}

} // namespace hydrascope::app
