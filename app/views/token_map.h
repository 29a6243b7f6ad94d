// One value per token, drawn over the patches of a photograph or as shaded words. Plain header.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/selection.h"
#include "engine/figures/figure.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// Parses `nearest|bilinear|bicubic`. Throws UsageError.
Interpolation parse_interpolation(std::string_view text);
const char* interpolation_name(Interpolation interpolation);

// Parses `value|dimmed`. Throws UsageError.
OverlayMode parse_overlay(std::string_view text);

struct TokenMap {
  Array values;                  // images: (rows, columns) of patches; text: (1, shown tokens)
  std::vector<ShownToken> shown; // text
  Scale scale;
  std::vector<double> prefix; // images: the prefix tokens' own values on the same scale (class token first)
  double divisor = 1;         // what the values were divided by
  bool empty = false;         // nothing to draw: `note` says why
  bool same = false;          // a difference of equal maps
  std::string note;           // shown beside the map: "class token itself 0.31"
  std::string details;        // more of that, for a tooltip; may be empty
};

// The map of N values, one per token: of patches without the prefix tokens, or of words as `display` shows
// them.
TokenMap token_map(const RunResult& run, std::span<const float> values, const TokenDisplay& display);

// A − B of two maps as they are drawn, on a diverging scale; an empty map counts as zero. Empty if both are
// or if their shapes differ; without values if they are equal, which `note` says. The tokens are A's.
TokenMap map_difference(TokenMap a, const TokenMap& b);
// How to read the colours of a difference between `a` and `b`, two sides by name.
std::string difference_note(const std::string& a, const std::string& b);

// How a map lies over a photograph.
struct MapLook {
  OverlayMode mode = OverlayMode::value;
  float opacity = OverlayPanel().opacity;
  Interpolation interpolation = Interpolation::nearest;
  bool operator==(const MapLook&) const = default;
};
// A map as a figure's panel: over the picture, or as words if `image` is null. `query` is ringed.
FigurePanel map_panel(const RunResult& run, std::optional<std::int64_t> query, const ImageInput* image,
                      TokenMap map, std::string title, const MapLook& look);
// The bare photograph with the model's crop.
OverlayPanel photograph_panel(const RunResult& run, const ImageInput& image);

// A figure's title: model, picture, layer.
std::string map_title(const RunResult& run, const ImageInput* image, std::optional<int> layer);
// The schedule and the notes of a run, for the subtitle of a figure.
std::string run_text(const RunResult& run);

// "class token", "distillation token", or the token's text ("[register 1]").
std::string prefix_name(const RunResult& run, std::size_t index);
// "query: class token", "all queries".
std::string query_text(const RunResult& run, std::optional<std::int64_t> query);

} // namespace hydrascope::app
