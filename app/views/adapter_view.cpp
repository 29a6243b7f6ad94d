#include "app/views/adapter_view.h"

#include <algorithm>

#include <fmt/format.h>

namespace hydrascope::app {

namespace {

std::string described(const FoundAdapter& adapter) {
  const std::string from = adapter.bundled ? "bundled" : "your file";
  const std::string length =
      adapter.info.tokens > 0 ? fmt::format(", trained at {} tokens", adapter.info.tokens) : "";
  return fmt::format("{}, {}{}", adapter.info.name, from, length); // the rest may be left out
}

std::string joined_layers(const std::vector<int>& layers) {
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  for (std::size_t i = 0; i < layers.size(); ++i)
    text += (i == 0 ? "" : i + 1 == layers.size() ? " and " : ", ") + std::to_string(layers[i]);
  return text;
}

// Why an adapter that holds the layer's kernel is not applied, as far as the run says.
std::string why_idle(const FoundAdapter& adapter, const RunResult& run) {
  std::vector<int> layers;
  bool missing = false; // a layer that the adapter was trained with runs another kernel
  for (const AdapterInfo::Layer& trained : adapter.info.layers) {
    const auto index = static_cast<std::size_t>(trained.layer);
    if (kernel_info(trained.kernel).exact_softmax) continue;
    layers.push_back(trained.layer);
    missing |= index >= run.layers.size() || run.layers[index].kernel != trained.kernel;
  }
  if (!missing || layers.size() < 2) return "adapter not in use: " + described(adapter);
  return fmt::format("needs {} in {}: {}", adapter.info.layers.back().kernel.name, joined_layers(layers),
                     described(adapter));
}

} // namespace

std::vector<FoundAdapter> found_adapters(const RunResult& run, int layer, const KernelSpec& kernel) {
  std::vector<FoundAdapter> found;
  const auto add = [&](const AdapterInfo& info, bool bundled, bool applied) {
    const auto known =
        std::ranges::find(found, info.hash, [](const FoundAdapter& each) { return each.info.hash; });
    if (known != found.end()) {
      known->bundled |= bundled;
      return;
    }
    const bool holds = std::ranges::any_of(info.layers, [&](const AdapterInfo::Layer& trained) {
      return trained.layer == layer && trained.kernel == kernel;
    });
    found.push_back({info, bundled, applied, holds});
  };
  for (const AdapterInfo& info : run.adapters) add(info, false, true);
  if (run.available_adapters)
    for (const AdapterInfo& info : *run.available_adapters) add(info, true, false);
  return found;
}

AdapterState adapter_state(const RunResult& run, int layer, const std::vector<FoundAdapter>& found) {
  const auto index = static_cast<std::size_t>(layer);
  if (layer < 0 || index >= run.layers.size()) return {};
  const LayerRun& ran = run.layers[index];
  const auto in_force = std::find_if(found.rbegin(), found.rend(), [](const FoundAdapter& adapter) {
    return adapter.applied && adapter.holds;
  });
  if (in_force != found.rend()) {
    std::string text = described(*in_force);
    if (ran.other_resolution) text = fmt::format("other resolution, {} tokens: {}", run.tokens.size(), text);
    return {text, ran.other_resolution};
  }
  const auto idle = std::ranges::find_if(found, &FoundAdapter::holds);
  const std::string unused = idle == found.end() ? "" : why_idle(*idle, run);
  if (ran.untrained)
    return {unused.empty()
                ? fmt::format("untrained: model not adapted to {} in layer {}", ran.kernel.label(), layer)
                : "untrained: " + unused,
            true};
  if (run.model.capture) return {"a capture has no parameters", false};
  return {unused.empty() ? "the model's own parameters" : "the model's own parameters; " + unused, false};
}

std::vector<std::vector<ParameterMark>> parameter_marks(const RunResult& run, const AdapterChoice& adapters) {
  std::vector<std::vector<ParameterMark>> marks(run.layers.size());
  for (auto& layer : marks) {
    for (const KernelInfo& info : kernel_infos())
      layer.push_back(info.exact_softmax ? ParameterMark::none_needed : ParameterMark::untrained);
  }
  const auto take = [&](const AdapterInfo& adapter) {
    const auto replaced = std::ranges::count_if(adapter.layers, [](const AdapterInfo::Layer& trained) {
      return !kernel_info(trained.kernel).exact_softmax;
    });
    const bool together = adapter.role == "schedule" && replaced > 1;
    for (const AdapterInfo::Layer& trained : adapter.layers) {
      const auto layer = static_cast<std::size_t>(trained.layer);
      const auto kernel = std::ranges::find(kernel_infos(), trained.kernel.name, &KernelInfo::name);
      if (layer >= marks.size() || kernel == kernel_infos().end() || !trained.kernel.parameters.empty())
        continue;
      ParameterMark& mark = marks[layer][static_cast<std::size_t>(kernel - kernel_infos().begin())];
      if (mark == ParameterMark::none_needed) continue;
      if (!together)
        mark = ParameterMark::trained;
      else if (mark == ParameterMark::untrained)
        mark = ParameterMark::trained_together;
    }
  };
  std::ranges::for_each(run.adapters, take);
  if (adapters.automatic && run.available_adapters) std::ranges::for_each(*run.available_adapters, take);
  return marks;
}

bool has_trained(const std::vector<std::vector<ParameterMark>>& marks, const KernelFamily family) {
  return std::ranges::any_of(marks, [&](const std::vector<ParameterMark>& of_layer) {
    for (std::size_t kernel = 0; kernel < of_layer.size(); ++kernel)
      if (kernel_infos()[kernel].family == family &&
          (of_layer[kernel] == ParameterMark::trained || of_layer[kernel] == ParameterMark::trained_together))
        return true;
    return false;
  });
}

} // namespace hydrascope::app
