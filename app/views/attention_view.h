// Attention itself beside the focus map: the query's weights in one layer, and rollout through all. Plain
// header.
#pragma once

#include <optional>
#include <string>

#include "app/views/token_map.h"
#include "app/views/weights_view.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/rollout.h"

namespace hydrascope::app {

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
