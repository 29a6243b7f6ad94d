#include "app/state/requests.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/plain/error.h"

namespace hydrascope::app {

namespace {

WeightsAsk* find_ask(std::vector<WeightsAsk>& asks, int layer, bool teacher_forced) {
  const auto found = std::ranges::find_if(asks, [&](const WeightsAsk& ask) {
    return ask.layer == layer && ask.teacher_forced == teacher_forced;
  });
  return found == asks.end() ? nullptr : &*found;
}

bool holds(const std::vector<WeightsAsk>& asks, int layer, const KernelSpec& kernel, bool teacher_forced) {
  return std::ranges::any_of(asks, [&](const WeightsAsk& ask) {
    return ask.layer == layer && ask.teacher_forced == teacher_forced &&
           std::ranges::count(ask.kernels, kernel) > 0;
  });
}

std::string input_key(const RunInput& input) {
  if (const auto* image = std::get_if<ImageInput>(&input)) {
    return fmt::format("image {} {}", static_cast<const void*>(image->image.get()), image->path.string());
  }
  const auto& text = std::get<TextInput>(input);
  return fmt::format("text {}:{} {}", text.text.size(), text.text, text.pair.value_or("\x01"));
}

} // namespace

void add_focus(Asks& asks, int layer) {
  if (std::ranges::count(asks.focus_layers, layer) == 0) asks.focus_layers.push_back(layer);
}

void add_weights(Asks& asks, int layer, const KernelSpec& kernel, bool teacher_forced) {
  if (holds(asks.weights, layer, kernel, teacher_forced)) return;
  WeightsAsk* ask = find_ask(asks.weights, layer, teacher_forced);
  if (ask == nullptr) {
    asks.weights.push_back({.layer = layer, .kernels = {}, .rows = {}, .teacher_forced = teacher_forced});
    ask = &asks.weights.back();
  }
  ask->kernels.push_back(kernel);
}

void add_teacher_forced(Asks& asks, const KernelSpec& kernel) {
  if (std::ranges::count(asks.teacher_forced_kernels, kernel) == 0)
    asks.teacher_forced_kernels.push_back(kernel);
}

void add_asks(Asks& to, const Asks& more) {
  to.pixels |= more.pixels;
  to.hidden |= more.hidden;
  to.rollout |= more.rollout;
  to.entropy |= more.entropy;
  to.kl |= more.kl;
  to.change |= more.change;
  for (const int layer : more.focus_layers) add_focus(to, layer);
  for (const WeightsAsk& ask : more.weights) {
    for (const KernelSpec& kernel : ask.kernels) add_weights(to, ask.layer, kernel, ask.teacher_forced);
  }
  for (const KernelSpec& kernel : more.teacher_forced_kernels) add_teacher_forced(to, kernel);
}

Asks missing_asks(const Asks& wanted, const Asks& delivered) {
  Asks missing;
  missing.pixels = wanted.pixels && !delivered.pixels;
  missing.hidden = wanted.hidden && !delivered.hidden;
  missing.rollout = wanted.rollout && !delivered.rollout;
  missing.entropy = wanted.entropy && !delivered.entropy;
  missing.kl = wanted.kl && !delivered.kl;
  missing.change = wanted.change && !delivered.change;
  for (const int layer : wanted.focus_layers) {
    if (std::ranges::count(delivered.focus_layers, layer) == 0) add_focus(missing, layer);
  }
  for (const WeightsAsk& ask : wanted.weights) {
    for (const KernelSpec& kernel : ask.kernels) {
      if (!holds(delivered.weights, ask.layer, kernel, ask.teacher_forced)) {
        add_weights(missing, ask.layer, kernel, ask.teacher_forced);
      }
    }
  }
  for (const KernelSpec& kernel : wanted.teacher_forced_kernels) {
    if (std::ranges::count(delivered.teacher_forced_kernels, kernel) == 0)
      add_teacher_forced(missing, kernel);
  }
  return missing;
}

bool any_ask(const Asks& asks) {
  return asks.pixels || asks.hidden || asks.rollout || asks.entropy || asks.kl || asks.change ||
         !asks.focus_layers.empty() || !asks.weights.empty() || !asks.teacher_forced_kernels.empty();
}

bool can_run(const Document& document) {
  const Scene& scene = document.scene();
  if (!scene.input || scene.model == nullptr) return false;
  const auto* text = std::get_if<TextInput>(&*scene.input);
  return text == nullptr || text->text.find_first_not_of(" \t\n") != std::string::npos;
}

std::string request_key(const Document& document, Side side) {
  const Scene& scene = document.scene();
  std::string key =
      fmt::format("{}\n{}\n", scene.model_folder.string(), scene.input ? input_key(*scene.input) : "");
  key += fmt::format("without {}\n", fmt::join(scene.hidden_tokens, ","));
  key += scene.adapters.automatic ? "automatic" : "explicit";
  for (const auto& file : scene.adapters.files) key += "\n" + file.string();
  for (const KernelSpec& kernel : scene.schedules[static_cast<std::size_t>(side)].layers)
    key += "\n" + kernel.text();
  key += fmt::format("\ntarget {} {} {}\nquery {} {}\n", static_cast<int>(scene.target.kind),
                     scene.target.index, scene.target.text, scene.default_query, scene.query.value_or(-1));
  const ExecutionOptions& execution = document.execution;
  key += fmt::format("{} {} {} {}", execution.device, execution.dtype, execution.image_size.value_or(0),
                     execution.seed);
  return key;
}

RunRequest make_run_request(const Document& document, Side side, const Asks& asks, std::uint64_t generation) {
  if (!can_run(document))
    throw Error("window", "there is no input or no model", "open a picture or a sentence");
  const Scene& scene = document.scene();
  RunRequest request;
  request.generation = generation;
  request.model_folder = scene.model_folder;
  request.adapters = scene.adapters;
  request.input = *scene.input;
  request.hidden_tokens = scene.hidden_tokens;
  request.schedule = schedule_text(scene.schedules[static_cast<std::size_t>(side)]);
  request.target = scene.target;
  request.default_query = scene.default_query;
  request.query = scene.query;
  request.asks = asks;
  request.execution = document.execution;
  return request;
}

} // namespace hydrascope::app
