#include "app/views/attention_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/focus_view.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

float fuse(std::span<const float> heads, HeadFusion fusion) {
  switch (fusion) {
    case HeadFusion::min: return std::ranges::min(heads);
    case HeadFusion::max: return std::ranges::max(heads);
    case HeadFusion::mean: break;
  }
  return std::accumulate(heads.begin(), heads.end(), 0.0f) / static_cast<float>(heads.size());
}

// (h,N) → (N)
std::vector<float> fused_heads(const Array& weights, const HeadChoice& choice) {
  const auto count = static_cast<int>(weights.extent(0));
  std::vector<int> heads = shown_heads(choice, count);
  if (heads.empty()) heads.push_back(count - 1);
  std::vector<float> fused, column(heads.size());
  for (std::size_t token = 0; token < static_cast<std::size_t>(weights.extent(1)); ++token) {
    for (std::size_t i = 0; i < heads.size(); ++i) column[i] = weights.slice(heads[i])[token];
    fused.push_back(fuse(column, choice.fusion));
  }
  return fused;
}

// What no cell of the picture shows, and over which rows the map was averaged.
std::string note_of(const RunResult& run, const TokenMap& map, bool averaged) {
  std::vector<std::string> parts;
  if (map.empty) parts.emplace_back("every weight is zero");
  for (std::size_t index = 0; !map.empty && index < map.prefix.size(); ++index)
    parts.push_back("to the " + prefix_name(run, index) + " " + number_text(map.prefix[index], 2));
  if (averaged) {
    const std::size_t hidden = run.rows > 0 ? 0 : run.hidden_tokens.size();
    parts.push_back(fmt::format("mean over the rows of {} tokens", run.tokens.size() - hidden));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void set_scale(TokenMap& map, bool with_sign, std::string label) {
  double high = 0;
  for (const float value : map.values.values) high = std::max(high, std::abs(static_cast<double>(value)));
  map.empty = !(high > 0);
  if (map.empty) high = 1;
  map.scale = {.map = with_sign ? ColourMap::blue_white_red : ColourMap::viridis,
               .low = with_sign ? -high : 0,
               .high = high,
               .logarithmic = false,
               .shared = false,
               .label = std::move(label)};
}

} // namespace

const char* map_name(MapKind kind) {
  switch (kind) {
    case MapKind::attention: return "attention";
    case MapKind::rollout: return "rollout";
    case MapKind::focus: break;
  }
  return "focus";
}

TokenMap attention_map(const RunResult& run, const AttentionRowResult& row, const HeadChoice& head,
                       const TokenDisplay& display) {
  TokenMap map = token_map(run, fused_heads(row.weights, head), display);
  const bool negative = std::ranges::any_of(map.values.values, [](float value) { return value < 0; });
  const bool with_sign = row.derived_signed || negative;
  set_scale(map, with_sign, with_sign ? "weight, signed" : "attention weight");
  map.note = note_of(run, map, !row.key.query.has_value());
  return map;
}

TokenMap rollout_map(const RunResult& run, const RolloutResult& rollout, std::optional<std::int64_t> query,
                     const TokenDisplay& display) {
  const auto tokens = static_cast<std::size_t>(rollout.weights.extent(2));
  std::vector<float> row(tokens, 0.0f);
  std::vector<std::size_t> queries;
  if (query) queries.push_back(static_cast<std::size_t>(*query));
  for (std::size_t token = 0; !query && token < tokens; ++token) {
    const bool masked =
        run.rows == 0 && std::ranges::binary_search(run.hidden_tokens, static_cast<std::int64_t>(token));
    if (!masked) queries.push_back(token);
  }
  for (const std::size_t each : queries) {
    for (std::size_t key = 0; key < tokens; ++key)
      row[key] += rollout.weights.values[each * tokens + key] / static_cast<float>(queries.size());
  }
  TokenMap map = token_map(run, row, display);
  set_scale(map, false, "rollout");
  map.note = note_of(run, map, !query.has_value());
  return map;
}

RolloutKey rollout_key(const HeadChoice& head, double discard) {
  RolloutKey ask{
      .fusion = head.head ? HeadFusion::mean : head.fusion, .heads = head.subset, .discard = discard};
  if (head.head) ask.heads = {*head.head};
  return ask;
}

std::string map_subtitle(const RunResult& run, MapKind kind, std::optional<std::int64_t> query) {
  if (kind == MapKind::focus) return focus_subtitle(run);
  const std::string what = kind == MapKind::attention
                               ? "Attention: the query's weights in the layer"
                               : "Rollout: the weights of all layers multiplied (Abnar & Zuidema 2020)";
  return fmt::format("{}, which are no explanation; {}; {}", what, query_text(run, query), run_text(run));
}

std::string attention_flags(const AttentionRowResult& row, const KernelSpec& kernel) {
  if (!row.derived_signed) return {};
  return kernel_info(kernel.name).family == "hydra" ? "derived, signed" : "signed";
}

std::string rollout_flags(const RolloutResult& rollout) {
  return rollout.magnitudes ? "signed layers as |weight|" : "";
}

} // namespace hydrascope::app
