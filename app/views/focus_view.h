// Focus maps, and attention itself: the query's weights in one layer, and rollout through all layers. Plain
// header.
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

// The divisor of drawn contributions: their maximum, L1 norm or L2 norm (of positive parts; of magnitudes for
// a signed map), or none.
enum class Normalisation { max, l1, l2, none };
// Parses `max|l1|l2|none`. Throws UsageError.
Normalisation parse_normalisation(std::string_view text);

struct FocusOptions {
  Normalisation normalise = Normalisation::max;
  bool with_sign = false;           // the signed map instead of its positive part
  MapLook look = {};                // over the photograph
  bool photograph = true;           // figures: first the bare photograph
  TokenDisplay tokens = {};         // of sentences
  ColourMap map = ColourMap::magma; // of maps without signs
};

// The contributions of one layer, ready to draw.
TokenMap focus_map(const RunResult& run, const FocusResult& focus, const FocusOptions& options = {});

// The subtitle of a figure of focus maps.
std::string focus_subtitle(const RunResult& run);

// One panel of a focus figure: a layer of a run, or the difference of two runs.
struct FocusItem {
  const RunResult* run = nullptr;
  int layer = 0;
  std::string title = {};           // empty: layer and kernel, or both kernels of a difference
  const RunResult* minus = nullptr; // the run to subtract; null: none
};

// One panel per item: an overlay on `image`, or shaded tokens if it is null. The scale is shared if the
// normalisation fixes it. Items without a focus result are left out.
Figure focus_figure(std::span<const FocusItem> items, const ImageInput* image,
                    const FocusOptions& options = {});
// The same for some layers of one run; empty: every layer with a focus result.
Figure focus_figure(const RunResult& run, const ImageInput* image, const std::vector<int>& layers = {},
                    const FocusOptions& options = {});

// The maps of one input that can stand side by side.
enum class MapKind {
  focus,     // what each token contributes to the target (Hydra paper, Eq. 15–17)
  attention, // the query's row of the layer's weights
  rollout    // Abnar & Zuidema 2020
};
inline constexpr std::size_t map_kinds = 3;
const char* map_name(MapKind kind); // "focus", "attention", "rollout"

// The query's weight of each token, heads fused as chosen. The scale runs from 0 to the largest weight, and
// diverges around 0 for signed weights. Throws UsageError if the kernel has none of the chosen heads.
TokenMap attention_map(const RunResult& run, const AttentionRowResult& row, const HeadChoice& head,
                       const TokenDisplay& display);

// The query's row of rollout; nullopt: the mean over the rows of all query_tokens().
TokenMap rollout_map(const RunResult& run, const RolloutResult& rollout, std::optional<std::int64_t> query,
                     const TokenDisplay& display);

// The key of rollout with heads fused as chosen.
RolloutKey rollout_key(const HeadChoice& head, double discard);

// The subtitle of a figure of such a map; `query` nullopt: all queries.
std::string map_subtitle(const RunResult& run, MapKind kind, std::optional<std::int64_t> query);

// Warnings that stand beside the kernel's name: "implied weights, signed"; empty if there is none.
std::string attention_flags(const AttentionRowResult& row, const KernelSpec& kernel);
std::string rollout_flags(const RolloutResult& rollout);
// "mean of heads in 2 layers without head 5": those whose kernels have none of the chosen heads; empty if
// there is none.
std::string lacking_layers_text(const RolloutResult& rollout);
// "lowest 25 % of weights dropped", of a share of each row's weights.
std::string discard_text(double share);

} // namespace hydrascope::app
