#include "app/views/focus_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/error.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

std::string scale_label(const FocusOptions& options) {
  const std::string signed_text = options.with_sign ? "signed contribution" : "contribution";
  switch (options.normalise) {
    case Normalisation::max: return signed_text + ", 1 = largest";
    case Normalisation::l1: return signed_text + ", share of the sum";
    case Normalisation::l2: return signed_text + ", L2 norm 1";
    case Normalisation::none: return signed_text + " to the target";
  }
  return signed_text;
}

Scale focus_scale(const Array& values, const FocusOptions& options) {
  Scale scale;
  scale.map = options.with_sign ? ColourMap::blue_white_red : options.map;
  scale.label = scale_label(options);
  scale.shared = options.normalise == Normalisation::max;
  double high = 1;
  if (options.normalise != Normalisation::max) {
    high = 0;
    for (const float value : values.values) high = std::max(high, std::abs(static_cast<double>(value)));
  }
  scale.high = high > 0 ? high : 1;
  scale.low = options.with_sign ? -scale.high : 0;
  return scale;
}

double divisor_of(std::span<const float> drawn, Normalisation normalise) {
  double largest = 0, sum = 0, squares = 0;
  for (const float each : drawn) {
    const auto value = static_cast<double>(each);
    largest = std::max(largest, std::abs(value));
    sum += std::abs(value);
    squares += value * value;
  }
  switch (normalise) {
    case Normalisation::max: return largest;
    case Normalisation::l1: return sum;
    case Normalisation::l2: return std::sqrt(squares);
    case Normalisation::none: return 1;
  }
  return 1;
}

std::string focus_note(const RunResult& run, const FocusResult& focus, const TokenMap& map) {
  std::vector<std::string> parts;
  if (focus.zero_gradient) {
    const bool last = focus.layer > 0 && focus.layer + 1 == static_cast<int>(run.layers.size());
    const std::string where = last ? fmt::format("layer {}", focus.layer - 1) : "an earlier layer";
    parts.push_back(fmt::format("this {} cannot affect the prediction here; try {} or attention",
                                run.rows > 0 ? "patch" : "token", where));
  } else if (map.empty) {
    parts.emplace_back("no contribution is positive: the map is empty");
  }
  for (std::size_t index = 0; !focus.zero_gradient && index < map.prefix.size(); ++index) {
    parts.push_back(prefix_name(run, index) + " itself " + amount_text(map.prefix[index]));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string focus_details(const RunResult& run, const FocusResult& focus) {
  if (!run.query || !std::isfinite(focus.share) || std::abs(focus.share - 1) <= 0.005) return {};
  return fmt::format("This query carries {} of the target's sum over all queries.",
                     percent_text(focus.share));
}

// Warnings that stand beside the name of the layer's kernel.
std::string layer_flags(const RunResult& run, int layer) {
  const auto& ran = run.layers.at(static_cast<std::size_t>(layer));
  std::string flags = ran.untrained ? "untrained" : "";
  if (ran.other_resolution) flags += flags.empty() ? "other resolution" : ", other resolution";
  return flags;
}

std::string item_title(const FocusItem& item) {
  const std::string flags = layer_flags(*item.run, item.layer);
  if (item.title.empty()) {
    const auto kernel_of = [&](const RunResult& run) {
      return run.layers.at(static_cast<std::size_t>(item.layer)).kernel.label();
    };
    const std::string kernel =
        kernel_of(*item.run) + (item.minus == nullptr ? "" : " − " + kernel_of(*item.minus));
    return fmt::format("layer {}\n{}{}{}", item.layer, kernel, flags.empty() ? "" : ", ", flags);
  }
  if (flags.empty()) return item.title;
  return item.title + (item.title.find('\n') == std::string::npos ? "\n" : ", ") + flags;
}

std::string figure_title(std::span<const FocusItem> items, const ImageInput* image) {
  const bool one_layer = std::all_of(
      items.begin(), items.end(), [&](const FocusItem& item) { return item.layer == items.front().layer; });
  return map_title(*items.front().run, image, one_layer ? std::optional(items.front().layer) : std::nullopt);
}

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
  const std::vector<int> heads = shown_heads(choice, static_cast<int>(weights.extent(0)));
  std::vector<float> fused, column(heads.size());
  for (std::size_t token = 0; token < static_cast<std::size_t>(weights.extent(1)); ++token) {
    for (std::size_t i = 0; i < heads.size(); ++i) column[i] = weights.slice(heads[i])[token];
    fused.push_back(fuse(column, choice.fusion));
  }
  return fused;
}

// The weights of the prefix tokens, and the rows over which the map was averaged.
std::string attention_note(const RunResult& run, const TokenMap& map, bool averaged) {
  std::vector<std::string> parts;
  if (map.empty) parts.emplace_back("every weight is zero");
  for (std::size_t index = 0; !map.empty && index < map.prefix.size(); ++index)
    parts.push_back("weight on the " + prefix_name(run, index) + " " + amount_text(map.prefix[index]));
  if (averaged) parts.push_back(fmt::format("mean over the rows of {} tokens", query_tokens(run).size()));
  return fmt::format("{}", fmt::join(parts, "; "));
}

void set_attention_scale(TokenMap& map, bool with_sign, std::string label) {
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

std::string focus_subtitle(const RunResult& run) {
  const std::string target = run.target.empty() ? "the target" : "the target (" + run.target + ")";
  return "Focus map: each token's contribution to " + target + "; " + query_text(run, run.query) + "; " +
         run_text(run);
}

Normalisation parse_normalisation(std::string_view text) {
  if (text == "max") return Normalisation::max;
  if (text == "l1") return Normalisation::l1;
  if (text == "l2") return Normalisation::l2;
  if (text == "none") return Normalisation::none;
  throw UsageError("--normalise", "unknown value '" + std::string(text) + "'", "use max, l1, l2 or none");
}

TokenMap focus_map(const RunResult& run, const FocusResult& focus, const FocusOptions& options) {
  TokenMap map = token_map(run, focus.contributions.values, options.tokens);
  std::vector<float>& drawn = map.values.values;
  if (!options.with_sign) {
    for (float& value : drawn) value = std::max(0.0f, value);
  }
  const bool something = std::ranges::any_of(drawn, [](float value) { return value != 0; });
  map.empty = focus.zero_gradient || !something;
  map.divisor = map.empty ? 1 : divisor_of(drawn, options.normalise);
  for (double& value : map.prefix) value /= map.divisor;
  for (float& value : drawn) value = static_cast<float>(static_cast<double>(value) / map.divisor);
  map.scale = focus_scale(map.values, options);
  map.note = focus_note(run, focus, map);
  map.details = focus_details(run, focus);
  return map;
}

Figure focus_figure(std::span<const FocusItem> items, const ImageInput* image, const FocusOptions& options) {
  Figure figure;
  if (items.empty() || items.front().run == nullptr) return figure;
  const auto& run = *items.front().run;
  figure.title = figure_title(items, image);
  figure.subtitle = focus_subtitle(run);
  if (image != nullptr && options.photograph) figure.panels.emplace_back(photograph_panel(run, *image));
  for (const auto& item : items) {
    const FocusResult* const focus = item.run->quantities.find(FocusKey{item.layer});
    if (focus == nullptr) continue;
    TokenMap map = focus_map(*item.run, *focus, options);
    if (item.minus != nullptr) {
      const FocusResult* const other = item.minus->quantities.find(FocusKey{item.layer});
      if (other == nullptr) continue;
      map = map_difference(std::move(map), focus_map(*item.minus, *other, options));
    }
    figure.panels.push_back(
        map_panel(*item.run, item.run->query, image, std::move(map), item_title(item), options.look));
  }
  figure.columns = image == nullptr ? 1 : figure.panels.size() > 5 ? 4 : 0;
  return figure;
}

Figure focus_figure(const RunResult& run, const ImageInput* image, const std::vector<int>& layers,
                    const FocusOptions& options) {
  std::vector<FocusItem> items;
  if (layers.empty()) {
    for (const auto& focus : run.quantities.all<FocusKey>()) items.push_back({&run, focus.key.layer, {}});
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.layer < b.layer; });
  }
  for (const int layer : layers) items.push_back({&run, layer, {}});
  return focus_figure(items, image, options);
}

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
  require_heads(head, static_cast<int>(row.weights.extent(0)),
                fmt::format("the kernel of layer {}", row.key.layer));
  TokenMap map = token_map(run, fused_heads(row.weights, head), display);
  const bool negative = std::ranges::any_of(map.values.values, [](float value) { return value < 0; });
  const bool with_sign = row.derived_signed || negative;
  set_attention_scale(map, with_sign, with_sign ? "weight, signed" : "attention weight");
  map.note = attention_note(run, map, !row.key.query.has_value());
  return map;
}

TokenMap rollout_map(const RunResult& run, const RolloutResult& rollout, std::optional<std::int64_t> query,
                     const TokenDisplay& display) {
  const auto tokens = static_cast<std::size_t>(rollout.weights.extent(2));
  std::vector<float> row(tokens, 0.0f);
  const std::vector<std::int64_t> queries = query ? std::vector{*query} : query_tokens(run);
  for (const std::int64_t each : queries) {
    const std::size_t first = static_cast<std::size_t>(each) * tokens;
    for (std::size_t key = 0; key < tokens; ++key)
      row[key] += rollout.weights.values[first + key] / static_cast<float>(queries.size());
  }
  TokenMap map = token_map(run, row, display);
  set_attention_scale(map, false, "rollout");
  map.note = attention_note(run, map, !query.has_value());
  return map;
}

RolloutKey rollout_key(const HeadChoice& head, double discard) {
  RolloutKey key{
      .fusion = head.head ? HeadFusion::mean : head.fusion, .heads = head.subset, .discard = discard};
  if (head.head) key.heads = {*head.head};
  return key;
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
  return kernel_info(kernel).implied_weights ? "implied weights, signed" : "signed";
}

std::string rollout_flags(const RolloutResult& rollout) {
  std::vector<std::string> flags;
  if (rollout.magnitudes) flags.emplace_back("absolute weights in signed layers");
  if (std::string lacking = lacking_layers_text(rollout); !lacking.empty())
    flags.push_back(std::move(lacking));
  return fmt::format("{}", fmt::join(flags, ", "));
}

std::string lacking_layers_text(const RolloutResult& rollout) {
  const RolloutKey& key = rollout.key;
  const HeadChoice all{.head = std::nullopt, .fusion = key.fusion};
  HeadChoice chosen = all;
  chosen.subset = key.heads;
  const auto layers = std::ranges::count_if(
      rollout.kernel_heads, [&](const int heads) { return shown_heads(chosen, heads).empty(); });
  if (layers == 0) return {};
  return fmt::format("{} in {} layer{} without head{} {}", all.text(), layers, layers == 1 ? "" : "s",
                     key.heads.size() == 1 ? "" : "s", fmt::join(key.heads, ", "));
}

std::string discard_text(double share) {
  return fmt::format("lowest {:.0f} % of weights dropped", 100 * share);
}

} // namespace hydrascope::app
