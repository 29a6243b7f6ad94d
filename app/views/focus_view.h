// Focus maps, and attention itself beside them (the query's weights in one layer, rollout through all), as
// they are drawn in the window and in exported figures. Plain header.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/selection.h"
#include "app/views/token_map.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// What contributions are divided by before they are drawn: the largest, the sum or the root of the sum of
// squares of what is drawn (positive parts; magnitudes for a signed map), or nothing.
enum class Normalisation { max, l1, l2, none };
// `max|l1|l2|none`. Throws UsageError.
Normalisation parse_normalisation(std::string_view text);

struct FocusOptions {
  Normalisation normalise = Normalisation::max;
  bool with_sign = false;                               // the signed map instead of its positive part
  float opacity = 0.6f;                                 // of the map over the photograph
  Interpolation interpolation = Interpolation::nearest; // between the patches
  bool photograph = true;                               // figures: the bare photograph as first panel
  TokenDisplay tokens = {};                             // text
  ColourMap map = ColourMap::magma;                     // of maps without signs
};

// One layer's contributions, ready to draw.
TokenMap focus_map(const RunResult& run, const FocusResult& focus, const FocusOptions& options = {});

// What a figure of focus maps says below its title.
std::string focus_subtitle(const RunResult& run);

// One panel of a focus figure: a layer of a run, with the title above it (empty: kernel and layer;
// a difference names both kernels).
struct FocusItem {
  const RunResult* run = nullptr;
  int layer = 0;
  std::string title = {};
  const RunResult* minus = nullptr; // a difference: what is subtracted; null = none
};

// Overlay panels (image given) or shaded tokens (image null), one for each item; the scale is shared where it
// is fixed by the normalisation. Items whose layer has no focus result are left out.
Figure focus_figure(std::span<const FocusItem> items, const ImageInput* image,
                    const FocusOptions& options = {});
// The same for some layers of one run; empty = every layer that has one.
Figure focus_figure(const RunResult& run, const ImageInput* image, const std::vector<int>& layers = {},
                    const FocusOptions& options = {});

// What can stand side by side of one input.
enum class MapKind {
  focus,     // what each token contributes to the target (Hydra paper, Eq. 15–17)
  attention, // the query's row of the layer's weights
  rollout    // Abnar & Zuidema 2020
};
inline constexpr std::size_t map_kinds = 3;
const char* map_name(MapKind kind); // "focus", "attention", "rollout"

// The query's weights towards each token, heads fused as chosen; of a kernel with fewer heads its last one.
// Positive kernels from 0 to the largest weight, others diverging around 0.
TokenMap attention_map(const RunResult& run, const AttentionRowResult& row, const HeadChoice& head,
                       const TokenDisplay& display);

// The query's row of rollout; nullopt: the mean over the rows of all tokens that are not hidden.
TokenMap rollout_map(const RunResult& run, const RolloutResult& rollout, std::optional<std::int64_t> query,
                     const TokenDisplay& display);

// What a run is asked for: its heads fused as the choice says.
RolloutKey rollout_key(const HeadChoice& head, double discard);

// What a figure of such a map says below its title.
// `query`: whose map it is, nullopt = all.
std::string map_subtitle(const RunResult& run, MapKind kind, std::optional<std::int64_t> query);

// What the reader must know beside the kernel's name: "derived, signed"; empty if there is nothing.
std::string attention_flags(const AttentionRowResult& row, const KernelSpec& kernel);
std::string rollout_flags(const RolloutResult& rollout);

} // namespace hydrascope::app
