#include "engine/attention/interface/parameters.h"

#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {

ParameterInfo heads_info() {
  return {.name = "heads",
          .kind = ParameterInfo::Kind::divisor,
          .meaning = "heads that the D features are cut into, d = D/heads",
          .initial = "the model's own",
          .range = [](const LayerShape& shape) {
            return ParameterRange{.least = 1, .most = shape.width(), .initial = shape.heads};
          }};
}

ParameterInfo seed_info() {
  return {.name = "seed",
          .kind = ParameterInfo::Kind::number,
          .meaning = "of the random numbers, which every layer draws for itself",
          .initial = "0",
          .range = [](const LayerShape&) { return ParameterRange{.least = 0, .most = 100, .initial = 0}; }};
}

ParameterInfo shared_info() {
  return {.name = "shared",
          .kind = ParameterInfo::Kind::flag,
          .meaning = "one trained map serves queries and keys, instead of one each",
          .initial = "0"};
}

ParameterInfo bias_info() {
  return {.name = "bias",
          .kind = ParameterInfo::Kind::flag,
          .meaning = "the trained map adds b after W",
          .initial = "1"};
}

ParameterInfo choice_info(std::string name, std::string meaning, std::vector<std::string> choices) {
  std::string first = choices.front();
  return {.name = std::move(name),
          .kind = ParameterInfo::Kind::choice,
          .meaning = std::move(meaning),
          .initial = std::move(first),
          .choices = std::move(choices)};
}

std::optional<std::int64_t> positive_parameter(const KernelSpec& spec, std::string_view key,
                                               const std::int64_t most) {
  const auto found = spec.parameters.find(std::string(key));
  if (found == spec.parameters.end()) return std::nullopt;
  const std::optional<int> value = whole_number(found->second);
  if (!value || *value == 0 || *value > most)
    throw UsageError(spec.text(),
                     fmt::format("{} is \"{}\", not a whole number from 1{}", key, found->second,
                                 most == most_of_any_parameter ? "" : fmt::format(" to {}", most)),
                     fmt::format("write {}:{}=n", spec.name, key));
  return *value;
}

std::uint64_t seed_parameter(const KernelSpec& spec) {
  const auto found = spec.parameters.find("seed");
  if (found == spec.parameters.end()) return 0;
  std::uint64_t value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, failure] = std::from_chars(found->second.data(), end, value);
  if (failure != std::errc() || stop != end)
    throw UsageError(spec.text(), fmt::format("seed is \"{}\", not a whole number", found->second),
                     fmt::format("write {}:seed=n", spec.name));
  return value;
}

std::uint64_t layer_seed(std::uint64_t seed, int layer) {
  constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15ULL; // spreads neighbouring layers over all seeds
  return seed + golden_ratio * static_cast<std::uint64_t>(layer);
}

bool flag_parameter(const KernelSpec& spec, std::string_view key, bool otherwise) {
  const auto found = spec.parameters.find(std::string(key));
  if (found == spec.parameters.end()) return otherwise;
  if (found->second != "0" && found->second != "1")
    throw UsageError(spec.text(), fmt::format("{} is \"{}\"", key, found->second),
                     fmt::format("write {}=0 or {}=1", key, key));
  return found->second == "1";
}

} // namespace hydrascope
