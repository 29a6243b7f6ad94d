#include "engine/runtime/model_store.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "engine/plain/error.h"
#include "engine/plain/safetensors.h"
#include "engine/runtime/dtype.h"

namespace hydrascope {
namespace {

constexpr std::size_t kKeptBases = 4;
constexpr std::size_t kKeptOverlays = 6;

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
                                      "cls.", "layernorm.", "norm.", "layer_norm."})
    if (name.starts_with(head)) return true;
  return false;
}

AdapterParts parts_of(const AdapterInfo& adapter) {
  std::vector<std::string> names;
  const SafetensorsFile file = SafetensorsFile::open(adapter.path);
  for (const auto& [name, tensor] : file.tensors()) names.push_back(name);
  return adapter_parts(names);
}

template <typename List>
void keep(List& list, typename List::value_type entry, std::size_t limit) {
  if (list.size() >= limit) list.erase(list.begin());
  list.push_back(std::move(entry));
}

template <typename List>
auto* find_kept(List& list, const std::string& key) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.key == key; });
  if (found == list.end()) return static_cast<decltype(&found->value)>(nullptr);
  std::rotate(found, found + 1, list.end());
  return &list.back().value;
}

std::shared_ptr<const Model> in_dtype(const std::shared_ptr<const Model>& model, const std::string& dtype) {
  const auto type = dtype_on_cpu(dtype);
  if (type == at::kFloat) return model;
  std::map<std::string, at::Tensor> converted;
  for (const std::string& name : model->parameter_names()) {
    if (name.starts_with("kernel.")) continue; // feature maps stay float32, as their exponents are
    const at::Tensor parameter = model->parameter(name);
    if (parameter.is_floating_point()) converted.emplace(name, parameter.to(type));
  }
  return model->with_parameters(converted);
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
      parts.embeddings = true; // embeddings, or a name not known here: then nothing may be reused
  }
  return parts;
}

std::string AppliedModel::embedding_key() const {
  std::string key = model->hash() + '|' + dtype;
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

const AdapterInfo* AppliedModel::trained(int layer, const KernelSpec& kernel) const {
  for (auto adapter = adapters.rbegin(); adapter != adapters.rend(); ++adapter)
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

std::shared_ptr<const Model> ModelStore::base(const std::filesystem::path& folder) {
  if (const auto* known = find_kept(bases_, folder.string())) return *known;
  auto model = source_.load(folder);
  keep(bases_, {folder.string(), model}, kKeptBases);
  return model;
}

const AdapterInfo& ModelStore::adapter_file(const std::filesystem::path& file) {
  std::error_code missing; // then read_adapter_info says so better
  const auto written = std::filesystem::last_write_time(file, missing);
  const auto known = files_.find(file);
  if (!missing && known != files_.end() && known->second.first == written) return known->second.second;
  return files_.insert_or_assign(file, std::pair{written, read_adapter_info(file)}).first->second.second;
}

const std::vector<AdapterInfo>& ModelStore::bundled() {
  if (!bundled_) bundled_ = source_.bundled();
  return *bundled_;
}

std::shared_ptr<const std::vector<AdapterInfo>> ModelStore::available(const std::filesystem::path& folder) {
  auto& known = available_[folder];
  if (known) return known;
  std::set<std::string> bases = {base(folder)->hash()};
  // An adapter may stand before the one it was trained over.
  std::vector<AdapterInfo> fitting;
  for (std::size_t before = 0; before != bases.size();) {
    before = bases.size();
    fitting.clear();
    for (const AdapterInfo& adapter : bundled()) {
      if (!bases.contains(adapter.base)) continue;
      bases.insert(adapter.hash);
      fitting.push_back(adapter);
    }
  }
  known = std::make_shared<const std::vector<AdapterInfo>>(std::move(fitting));
  return known;
}

std::vector<AppliedAdapter> ModelStore::choose(const Model& base, const AdapterChoice& choice,
                                               const Schedule& schedule) {
  std::vector<AppliedAdapter> chosen;
  if (!choice.automatic) {
    for (const auto& file : choice.files) chosen.push_back({adapter_file(file), {}, true});
    return chosen;
  }
  const std::vector<AdapterInfo>& known = bundled();
  std::set<std::string> bases = {base.hash()};
  for (AdapterInfo& adapter : select_adapters(base.hash(), schedule, known)) {
    bases.insert(adapter.hash);
    chosen.push_back({std::move(adapter), {}, true});
  }
  for (const AdapterInfo& adapter : known)
    if (adapter.role == "maps" && bases.contains(adapter.base) && !bases.contains(adapter.hash))
      chosen.push_back({adapter, {}, false});
  return chosen;
}

AppliedModel ModelStore::apply(const std::filesystem::path& folder, const AdapterChoice& choice,
                               const Schedule& schedule, const std::string& dtype) {
  AppliedModel applied;
  applied.model = base(folder);
  applied.dtype = dtype;
  applied.adapters = choose(*applied.model, choice, schedule);

  std::string key = folder.string() + '|' + dtype;
  for (const AppliedAdapter& adapter : applied.adapters)
    key += '|' + adapter.info.hash + (adapter.for_schedule ? "" : "?");
  if (const auto* known = find_kept(applied_, key)) return *known;

  std::vector<std::string> hashes;
  for (AppliedAdapter& adapter : applied.adapters) {
    adapter.parts = parts_of(adapter.info);
    applied.model = apply_adapter(applied.model, adapter.info, hashes);
    hashes.push_back(adapter.info.hash);
  }
  applied.model = in_dtype(applied.model, dtype);
  keep(applied_, {key, applied}, kKeptOverlays);
  return applied;
}

} // namespace hydrascope
