#include "app/views/token_map.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope::app {
namespace {

OverlayPanel overlay_panel(const RunResult& run, std::optional<std::int64_t> query, const ImageInput& image,
                           TokenMap map, const MapLook& look) {
  OverlayPanel panel = photograph_panel(run, image);
  panel.values = std::move(map.values);
  panel.scale = std::move(map.scale);
  panel.note = std::move(map.note);
  panel.mode = look.mode;
  panel.opacity = look.opacity;
  panel.interpolation = look.interpolation;
  if (query && *query >= run.prefix_tokens && run.columns > 0) {
    const auto patch = static_cast<int>(*query) - run.prefix_tokens;
    panel.query_row = patch / run.columns;
    panel.query_column = patch % run.columns;
  }
  return panel;
}

TokensPanel tokens_panel(const RunResult& run, std::optional<std::int64_t> query, TokenMap map) {
  TokensPanel panel;
  panel.own_spaces = run.model.causal;
  for (const ShownToken& token : map.shown) panel.tokens.push_back(spaced_text(run, token));
  panel.values.assign(map.values.values.begin(), map.values.values.end());
  if (panel.values.empty())
    panel.values.assign(panel.tokens.size(), std::numeric_limits<double>::quiet_NaN());
  panel.scale = std::move(map.scale);
  panel.note = std::move(map.note);
  panel.query = shown_index(map.shown, query);
  for (std::size_t index = 0; index < map.shown.size(); ++index) {
    if (contains_any(map.shown[index], run.hidden_tokens))
      panel.values[index] = std::numeric_limits<double>::quiet_NaN(); // it is masked
  }
  return panel;
}

} // namespace

Interpolation parse_interpolation(std::string_view text) {
  for (const Interpolation each : {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic}) {
    if (text == interpolation_name(each)) return each;
  }
  throw UsageError("--interpolation", "unknown value '" + std::string(text) + "'",
                   "use nearest, bilinear or bicubic");
}

const char* interpolation_name(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::bilinear: return "bilinear";
    case Interpolation::bicubic: return "bicubic";
    case Interpolation::nearest: break;
  }
  return "nearest";
}

OverlayMode parse_overlay(std::string_view text) {
  if (text == "value") return OverlayMode::value;
  if (text == "dimmed") return OverlayMode::dimmed;
  throw UsageError("--overlay", "unknown value '" + std::string(text) + "'", "use value or dimmed");
}

TokenMap token_map(const RunResult& run, std::span<const float> values, const TokenDisplay& display) {
  TokenMap map;
  const bool image = run.rows > 0;
  const auto first = std::min(values.size(), image ? static_cast<std::size_t>(run.prefix_tokens) : 0);
  for (const float value : values.first(first)) map.prefix.push_back(static_cast<double>(value));
  if (image) {
    const auto patches = values.subspan(first);
    map.values = {{run.rows, run.columns}, {patches.begin(), patches.end()}};
    return map;
  }
  map.shown = shown_tokens(run, display);
  map.values.shape = {1, static_cast<std::int64_t>(map.shown.size())};
  for (const double sum : shown_sums(map.shown, values)) map.values.values.push_back(static_cast<float>(sum));
  return map;
}

TokenMap map_difference(TokenMap a, const TokenMap& b) {
  const bool nothing = a.empty && b.empty; // both are zero everywhere
  a.same = !nothing && same_values(a.values, b.values);
  if (a.values.shape == b.values.shape && !a.same)
    std::ranges::transform(a.values.values, b.values.values, a.values.values.begin(), std::minus{});
  else
    a.values = {};
  a.empty = nothing || a.values.empty();
  // The difference of two maps with a fixed range has a fixed range too; otherwise the scale ends at the
  // largest difference.
  double high = a.scale.high * (a.scale.low < 0 ? 2 : 1);
  if (!a.scale.shared) {
    high = 0;
    for (const float value : a.values.values) high = std::max(high, std::abs(static_cast<double>(value)));
    if (!(high > 0)) high = 1;
  }
  a.scale = {.map = ColourMap::blue_white_red,
             .low = -high,
             .high = high,
             .logarithmic = false,
             .shared = a.scale.shared,
             .label = std::string(side_name(Shown::difference)) + ", " +
                      (a.scale.shared ? "each divided by its own maximum" : a.scale.label)};
  if (!a.empty) a.note = difference_note(side_name(Side::a), side_name(Side::b));
  if (a.same) a.note = same_note;
  a.prefix.clear();
  a.details.clear();
  return a;
}

std::string difference_note(const std::string& a, const std::string& b) {
  return fmt::format("{}: red where {} is larger, blue where {} is", side_name(Shown::difference), a, b);
}

FigurePanel map_panel(const RunResult& run, std::optional<std::int64_t> query, const ImageInput* image,
                      TokenMap map, std::string title, const MapLook& look) {
  if (image != nullptr) {
    OverlayPanel panel = overlay_panel(run, query, *image, std::move(map), look);
    panel.title = std::move(title);
    return panel;
  }
  TokensPanel panel = tokens_panel(run, query, std::move(map));
  panel.title = std::move(title);
  return panel;
}

OverlayPanel photograph_panel(const RunResult& run, const ImageInput& image) {
  OverlayPanel panel;
  panel.image = image.image;
  panel.crop_x = run.crop_x;
  panel.crop_y = run.crop_y;
  panel.crop_width = run.crop_width;
  panel.crop_height = run.crop_height;
  panel.title = image.name.empty() ? "input" : image.name;
  return panel;
}

std::string map_title(const RunResult& run, const ImageInput* image, std::optional<int> layer) {
  std::string title = run.model.name;
  if (image != nullptr && !image->name.empty()) title += " · " + image->name;
  return layer ? fmt::format("{} · layer {}", title, *layer) : title;
}

std::string run_text(const RunResult& run) {
  std::string text = run.schedule.summary();
  for (const auto& note : run.notes) text += "; " + note;
  return text;
}

std::string prefix_name(const RunResult& run, std::size_t index) {
  if (index == 0) return "class token";
  if (index == 1 && has_distillation_token(run.prefix_tokens)) return "distillation token";
  return index < run.tokens.size() ? token_text(run, index) : fmt::format("token {}", index);
}

std::string query_text(const RunResult& run, std::optional<std::int64_t> query) {
  if (!query) return "all queries";
  const auto index = static_cast<std::size_t>(*query);
  if (run.rows > 0 && *query < run.prefix_tokens) return "query: " + prefix_name(run, index);
  return "query: " + (index < run.tokens.size() ? token_text(run, index) : fmt::format("token {}", *query));
}

} // namespace hydrascope::app
