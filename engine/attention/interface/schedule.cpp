#include "engine/attention/interface/schedule.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/parameters.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

struct Replacement {
  Strategy strategy = Strategy::front;
  int k = 0;
  KernelSpec kernel;
};

Replacement parse_replacement(std::string_view text) {
  constexpr std::string_view option = "--replace",
                             form = "write front:k=KERNEL, back:k=KERNEL or interleave:k=KERNEL";
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.find('=');
  if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon)
    throw UsageError(option, fmt::format("\"{}\" is not of the form STRATEGY:k=KERNEL", text), form);
  const std::string_view name = trimmed(text.substr(0, colon));
  Strategy strategy = Strategy::front;
  if (name == "back")
    strategy = Strategy::back;
  else if (name == "interleave")
    strategy = Strategy::interleave;
  else if (name != "front")
    throw UsageError(option, fmt::format("there is no strategy \"{}\"", name), form);
  const std::string_view count = trimmed(text.substr(colon + 1, equals - colon - 1));
  const std::optional<int> k = whole_number(count);
  if (!k) throw UsageError(option, fmt::format("\"{}\" is not a number of layers", count), form);
  return {strategy, *k, parse_kernel_spec(text.substr(equals + 1), option)};
}

// "0-9,11" → 0, 1, … 9, 11. Throws if one is out of range or `taken` already.
std::vector<int> parse_layer_numbers(std::string_view text, int layer_count, std::vector<bool>& taken) {
  constexpr std::string_view option = "--layers";
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<int> first = whole_number(trimmed(part.substr(0, dash)));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : whole_number(trimmed(part.substr(dash + 1)));
    if (!first || !last || *last < *first)
      throw UsageError(option, fmt::format("\"{}\" is neither a layer nor a range of layers", trimmed(part)),
                       "write them as in \"0-9=softmax;10,11=hydra-cosine\"");
    if (*last >= layer_count)
      throw UsageError(option, fmt::format("there is no layer {}", *last),
                       fmt::format("the model has {} layers, 0 to {}", layer_count, layer_count - 1));
    for (int layer = *first; layer <= *last; ++layer) {
      const auto index = static_cast<std::size_t>(layer);
      if (taken[index])
        throw UsageError(option, fmt::format("layer {} is named twice", layer), "name each layer once");
      taken[index] = true;
      numbers.push_back(layer);
    }
  }
  return numbers;
}

void apply_layers(std::string_view text, std::vector<KernelSpec>& layers) {
  std::vector<bool> taken(layers.size());
  std::vector<std::string_view> groups = split(text, ';');
  if (groups.size() > 1 && trimmed(groups.back()).empty())
    groups.pop_back(); // a trailing semicolon is allowed
  for (const std::string_view group : groups) {
    const std::size_t equals = group.find('=');
    if (equals == std::string_view::npos)
      throw UsageError("--layers", fmt::format("\"{}\" is not of the form LAYERS=KERNEL", trimmed(group)),
                       "write it as in \"0-9=softmax;10,11=hydra-cosine\"");
    const auto numbers = parse_layer_numbers(group.substr(0, equals), static_cast<int>(layers.size()), taken);
    const KernelSpec kernel = parse_kernel_spec(group.substr(equals + 1), "--layers");
    for (const int layer : numbers) layers[static_cast<std::size_t>(layer)] = kernel;
  }
}

} // namespace

bool Schedule::all_exact_softmax() const {
  // Another number of heads is another function of the same weights.
  return std::ranges::all_of(layers, [](const KernelSpec& kernel) {
    return kernel_info(kernel).exact_softmax && !kernel.parameters.contains("heads");
  });
}

std::string Schedule::summary() const {
  std::vector<std::pair<std::string, int>> counts;
  for (const KernelSpec& kernel : layers) {
    const std::string text = kernel.label();
    const auto found = std::ranges::find(counts, text, &std::pair<std::string, int>::first);
    if (found == counts.end())
      counts.emplace_back(text, 1);
    else
      ++found->second;
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} ×{}", text, count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<int> replaced_layers(Strategy strategy, int k, int layer_count) {
  if (k < 0 || k > layer_count)
    throw UsageError("--replace", fmt::format("{} layers cannot be replaced", k),
                     fmt::format("the model has {} layers", layer_count));
  std::vector<int> order;
  if (strategy == Strategy::front) {
    for (int layer = 0; layer < layer_count; ++layer) order.push_back(layer);
  } else if (strategy == Strategy::back) {
    for (int layer = layer_count - 1; layer >= 0; --layer) order.push_back(layer);
  } else {
    for (int layer = layer_count - 1; layer >= 0; layer -= 2) order.push_back(layer);
    for (int layer = layer_count - 2; layer >= 0; layer -= 2) order.push_back(layer);
  }
  order.resize(static_cast<std::size_t>(k));
  return order;
}

Schedule parse_schedule(const ScheduleText& text, int layer_count) {
  Schedule schedule;
  schedule.layers.assign(static_cast<std::size_t>(layer_count), parse_kernel_spec(text.kernel, "--kernel"));
  for (const std::string& written : text.replace) {
    const Replacement replacement = parse_replacement(written);
    for (const int layer : replaced_layers(replacement.strategy, replacement.k, layer_count))
      schedule.layers[static_cast<std::size_t>(layer)] = replacement.kernel;
  }
  for (const std::string& written : text.layers) apply_layers(written, schedule.layers);
  return schedule;
}

Schedule resolved(const ScheduleChoice& choice, int layer_count) {
  if (const auto* text = std::get_if<ScheduleText>(&choice)) return parse_schedule(*text, layer_count);
  const Schedule& schedule = std::get<Schedule>(choice);
  if (std::ssize(schedule.layers) != layer_count)
    throw UsageError(fmt::format("a schedule of {} layers", schedule.layers.size()),
                     fmt::format("the model has {}", layer_count), "name one kernel for each layer");
  return schedule;
}

ScheduleText written_text(const ScheduleChoice& choice) {
  if (const auto* text = std::get_if<ScheduleText>(&choice)) return *text;
  const Schedule& schedule = std::get<Schedule>(choice);
  ScheduleText text;
  std::string layers;
  for (std::size_t layer = 0; layer < schedule.layers.size(); ++layer) {
    if (schedule.layers[layer] == KernelSpec{}) continue;
    layers += fmt::format("{}{}={}", layers.empty() ? "" : ";", layer, schedule.layers[layer].text());
  }
  if (!layers.empty()) text.layers.push_back(std::move(layers));
  return text;
}

} // namespace hydrascope
