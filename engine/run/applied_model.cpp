// What an adapter replaces in a model, and the keys of hidden states that follow from it.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"

namespace hydrascope {
namespace {

// Splits "PREFIX12.rest" into 12 and "rest".
std::optional<std::pair<int, std::string_view>> numbered(std::string_view name, std::string_view prefix) {
  const auto at = name.find(prefix);
  if (at == std::string_view::npos || (at != 0 && name[at - 1] != '.')) return std::nullopt;
  const std::string_view rest = name.substr(at + prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{} || end == rest.data() + rest.size() || *end != '.') return std::nullopt;
  return std::pair{number, rest.substr(static_cast<std::size_t>(end - rest.data()) + 1)};
}

bool after_the_blocks(std::string_view name) {
  for (const std::string_view prefix : {"bert.", "vit.", "deit.", "dinov2."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  for (const std::string_view head : {"classifier", "cls_classifier", "distillation_classifier", "pooler",
                                      "cls.", "layernorm.", "norm.", "layer_norm.", "lm_head."})
    if (name.starts_with(head)) return true;
  return false;
}

} // namespace

AdapterParts adapter_parts(const std::vector<std::string>& tensor_names) {
  AdapterParts parts;
  for (const std::string& name : tensor_names) {
    if (name.starts_with("kernel.")) {
      if (const auto map = numbered(name, "kernel.")) {
        parts.maps[map->first].emplace_back(map->second);
        continue;
      }
    }
    if (const auto layer = numbered(name, "layer."))
      parts.layers.insert(layer->first);
    else if (!after_the_blocks(name))
      parts.embeddings = true; // embeddings, or an unknown name: then no cached state may be reused
  }
  return parts;
}

std::string AppliedModel::embedding_key() const {
  // The stamp is also of configuration, tokenizer and all numbers of a capture, which the hash leaves out.
  std::string key = model->hash() + '|' + model->info().stamp + '|' + device + '|' + dtype;
  for (const AppliedAdapter& adapter : adapters)
    if (adapter.parts.embeddings) key += '|' + adapter.info.hash;
  return key;
}

std::string AppliedModel::layer_key(int layer, const KernelSpec& kernel) const {
  std::string key = kernel.text();
  for (const AppliedAdapter& adapter : adapters) {
    bool touches = adapter.parts.layers.contains(layer);
    if (const auto maps = adapter.parts.maps.find(layer); maps != adapter.parts.maps.end())
      touches =
          touches || std::any_of(maps->second.begin(), maps->second.end(),
                                 [&](const std::string& name) { return name.starts_with(kernel.name); });
    if (touches) key += '|' + adapter.info.hash;
  }
  return key;
}

const AdapterInfo* trained_adapter(const std::vector<AppliedAdapter>& applied, const int layer,
                                   const KernelSpec& kernel) {
  for (auto adapter = applied.rbegin(); adapter != applied.rend(); ++adapter)
    for (const AdapterInfo::Layer& entry : adapter->info.layers)
      if (entry.layer == layer && entry.kernel == kernel) return &adapter->info;
  return nullptr;
}

std::optional<int> AppliedModel::adapter_image_size() const {
  for (auto adapter = adapters.rbegin(); adapter != adapters.rend(); ++adapter)
    if (adapter->for_schedule && adapter->info.role != "maps" && adapter->info.image_size > 0)
      return adapter->info.image_size;
  return std::nullopt;
}

} // namespace hydrascope
