#include "app/views/loss_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// By token, the first included, which has none.
std::vector<float> losses_of(const RunResult& run, const TokenLoss& loss) {
  std::vector<float> all(run.tokens.size(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < loss.loss.values.size() && i + 1 < all.size(); ++i)
    all[i + 1] = loss.loss.values[i];
  return all;
}

double largest_of(const LossStrip& strip) {
  double high = 0;
  for (const double value : strip.panel.values)
    if (!std::isnan(value)) high = std::max(high, std::abs(value));
  return high > 0 ? high : 1;
}

std::string summary_text(double mean, std::int64_t tokens) {
  if (std::isnan(mean)) return "one token has nothing to be predicted from";
  return fmt::format("mean {} nats, perplexity {} over {} token{}", number_text(mean),
                     number_text(std::exp(mean)), tokens, tokens == 1 ? "" : "s");
}

} // namespace

LossStrip loss_strip(const RunResult& run, const TokenLoss& loss, const LossOptions& options) {
  LossStrip strip;
  strip.shown = shown_tokens(run, options.tokens);
  const std::vector<float> all = losses_of(run, loss);
  strip.panel.own_spaces = true;
  for (const ShownToken& token : strip.shown) {
    strip.panel.tokens.push_back(spaced_text(run, token));
    double sum = 0;
    bool any = false;
    for (std::int64_t i = token.first; i < token.first + token.count; ++i) {
      const float value = all[static_cast<std::size_t>(i)];
      if (std::isnan(value)) continue;
      sum += static_cast<double>(value);
      any = true;
    }
    strip.panel.values.push_back(any ? sum : not_a_number);
  }
  double sum = 0;
  for (const float value : loss.loss.values) sum += static_cast<double>(value);
  strip.tokens = std::ssize(loss.loss.values);
  strip.mean = strip.tokens > 0 ? sum / static_cast<double>(strip.tokens) : not_a_number;
  strip.summary = summary_text(strip.mean, strip.tokens);
  strip.panel.scale.map = options.map;
  strip.panel.scale.high = largest_of(strip);
  strip.panel.scale.label = "loss (nats)";
  strip.panel.query = shown_index(strip.shown, run.query);
  strip.panel.note = strip.summary;
  return strip;
}

LossStrip loss_difference(const LossStrip& a, const LossStrip& b) {
  if (a.panel.tokens != b.panel.tokens)
    throw UsageError(side_name(Shown::difference), "A's tokens and B's differ",
                     "compare runs of the same text");
  LossStrip strip = a;
  bool same = true;
  for (std::size_t i = 0; i < strip.panel.values.size(); ++i) {
    double& value = strip.panel.values[i];
    constexpr double rounding = 1e-4; // nats
    same = same && !(std::abs(value - b.panel.values[i]) > rounding);
    value -= b.panel.values[i];
  }
  strip.mean = a.mean - b.mean;
  const double high = largest_of(strip);
  strip.panel.scale = {.map = ColourMap::blue_white_red,
                       .low = -high,
                       .high = high,
                       .label = difference_label(a.panel.scale.label)};
  strip.summary = fmt::format("perplexity {} against {}; red: A's loss is larger",
                              number_text(std::exp(a.mean)), number_text(std::exp(b.mean)));
  if (same) {
    strip.panel.tokens.clear();
    strip.panel.values.clear();
    strip.summary = same_note;
  }
  strip.panel.note = strip.summary;
  return strip;
}

void share_scale(const std::span<LossStrip* const> strips) {
  double high = 0;
  for (const LossStrip* strip : strips) high = std::max(high, strip->panel.scale.high);
  for (LossStrip* strip : strips) {
    strip->panel.scale.high = high;
    strip->panel.scale.shared = true;
  }
}

std::string loss_details(const RunResult& run, const TokenLoss& loss, const ShownToken& token) {
  std::string text;
  for (std::int64_t i = token.first; i < token.first + token.count; ++i) {
    if (!text.empty()) text += '\n';
    text += fmt::format("“{}”", token_text(run, static_cast<std::size_t>(i)));
    const auto at = static_cast<std::size_t>(i) - 1;
    if (i == 0 || at >= loss.loss.values.size()) {
      text += ": nothing comes before it";
      continue;
    }
    const auto nats = static_cast<double>(loss.loss.values[at]);
    text += fmt::format("\nloss {} nats, probability {}", number_text(nats), percent_text(std::exp(-nats)));
    if (at < loss.rank.values.size())
      text += fmt::format("\nrank {:.0f} of {} tokens", loss.rank.values[at] + 1, run.model.vocabulary);
  }
  return text;
}

Figure loss_figure(const std::span<const LossItem> items, const LossOptions& options) {
  Figure figure;
  std::vector<LossStrip> strips;
  for (const LossItem& item : items) {
    strips.push_back(loss_strip(*item.run, *item.loss, options));
    strips.back().panel.title = item.title;
  }
  if (strips.size() > 1) {
    std::vector<LossStrip*> all;
    for (LossStrip& strip : strips) all.push_back(&strip);
    share_scale(all);
  }
  for (LossStrip& strip : strips) figure.panels.emplace_back(std::move(strip.panel));
  if (!items.empty()) figure.title = items.front().run->model.name + " · loss of each token";
  figure.subtitle = "−ln p of each token given those before it";
  figure.columns = 1;
  return figure;
}

} // namespace hydrascope::app
