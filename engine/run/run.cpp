#include "engine/run/run.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

int number_below(std::string_view text, std::string_view part, int limit, const char* what) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError(fmt::format("--mute {}", part), "not understood",
                     "write LAYER:HEAD, or LAYER for all of its heads, separated by commas");
  if (number < 0 || number >= limit)
    throw UsageError(fmt::format("--mute {}", part), fmt::format("there is no {} {}", what, number),
                     fmt::format("use 0 to {}", limit - 1));
  return number;
}

void sort_once(auto& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

} // namespace

std::vector<HeadIndex> parse_muted_heads(std::string_view text, int layers, int heads) {
  std::vector<HeadIndex> muted;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    const int layer = number_below(part.substr(0, colon), part, layers, "layer");
    if (colon != std::string_view::npos)
      muted.push_back({layer, number_below(part.substr(colon + 1), part, heads, "head")});
    else
      for (int head = 0; head < heads; ++head) muted.push_back({layer, head});
  }
  sort_once(muted);
  return muted;
}

std::string muted_heads_text(std::span<const HeadIndex> muted, int heads) {
  std::string text;
  for (auto first = muted.begin(); first != muted.end();) {
    const auto last =
        std::find_if(first, muted.end(), [&](const HeadIndex& each) { return each.layer != first->layer; });
    if (last - first == heads) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", first->layer);
      first = last;
    }
    for (; first != last; ++first)
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", first->layer, first->head);
  }
  return text;
}

void check_muted_heads(std::span<const HeadIndex> muted, int layers, int heads) {
  for (const HeadIndex& each : muted) {
    if (each.layer < 0 || each.layer >= layers)
      throw UsageError(fmt::format("muted head {} of layer {}", each.head, each.layer),
                       fmt::format("there are {} layers", layers), fmt::format("use 0 to {}", layers - 1));
    if (each.head < 0 || each.head >= heads)
      throw UsageError(fmt::format("muted head {} of layer {}", each.head, each.layer),
                       fmt::format("the layer has {} heads", heads), fmt::format("use 0 to {}", heads - 1));
  }
}

std::vector<std::vector<int>> muted_by_layer(std::span<const HeadIndex> muted, int layers) {
  std::vector<std::vector<int>> by_layer(static_cast<std::size_t>(layers));
  for (const HeadIndex& each : muted) by_layer.at(static_cast<std::size_t>(each.layer)).push_back(each.head);
  for (std::vector<int>& heads : by_layer) sort_once(heads);
  return by_layer;
}

Target parse_target(std::string_view text) {
  Target target;
  if (text == "norm") {
    target.kind = Target::Kind::norm;
  } else if (text == "predicted") {
    target.kind = Target::Kind::predicted;
  } else if (text.starts_with("similarity:")) {
    target.kind = Target::Kind::similarity;
    target.text = text.substr(std::string_view("similarity:").size());
  } else if (text.starts_with("class:") && text.size() > std::string_view("class:").size()) {
    const std::string_view name = text.substr(std::string_view("class:").size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), target.index);
    const bool number = error == std::errc{} && end == name.data() + name.size();
    target.kind = number ? Target::Kind::class_index : Target::Kind::class_name;
    if (!number) {
      target.index = 0;
      target.text = name;
    }
  } else {
    throw UsageError(fmt::format("--target {}", text), "unknown target",
                     "use class:NAME, class:INDEX, similarity:TEXT or norm");
  }
  return target;
}

std::optional<std::int64_t> default_query(const CaptureInfo& capture) {
  constexpr std::int64_t few = 600; // the mean takes every row
  if (capture.prefix > 0) return 0;
  const std::int64_t queries = capture.queries > 0 ? capture.queries : capture.tokens;
  return queries <= few ? std::nullopt : std::optional(queries - 1);
}

KernelSpec seeded(KernelSpec spec, std::uint64_t seed) {
  if (seed != 0 && kernel_info(spec).parameter("seed") != nullptr)
    spec.parameters.try_emplace("seed", std::to_string(seed));
  return spec;
}

Schedule seeded(Schedule schedule, std::uint64_t seed) {
  for (KernelSpec& spec : schedule.layers) spec = seeded(std::move(spec), seed);
  return schedule;
}

ThreadCount::ThreadCount(int threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(threads);
}

ThreadCount::~ThreadCount() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

} // namespace hydrascope
