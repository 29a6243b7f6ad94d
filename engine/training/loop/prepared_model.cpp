#include "engine/training/loop/prepared_model.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/low_rank.h"
#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"

namespace hydrascope::training {

Placement training_placement(const ExecutionOptions& execution) {
  return {device_of(execution.device), c10::kFloat};
}

PreparedModel prepare_model(ModelStore& models, const std::filesystem::path& folder,
                            const AdapterChoice& adapters, const ScheduleChoice& schedule,
                            const Placement& placement, const bool for_training) {
  const auto base = models.base(folder);
  PreparedModel prepared;
  prepared.schedule = resolved(schedule, base->info().layers);
  const AppliedModel applied =
      models.apply(folder, base, adapters, prepared.schedule, placement,
                   for_training ? AutomaticAdapters::tail : AutomaticAdapters::schedule);
  prepared.model = applied.model;
  prepared.image_size = applied.adapter_image_size().value_or(prepared.model->info().image_size);
  prepared.model_hash = base->hash();
  prepared.adapters = applied.adapters;
  for (const AppliedAdapter& adapter : applied.adapters)
    if (!adapter.info.classes.empty()) prepared.classes = adapter.info.classes;
  const auto& labels = prepared.model->info().labels;
  if (prepared.model->info().has_classifier && prepared.classes.size() != labels.size()) {
    prepared.classes.clear();
    for (const auto& label : labels) prepared.classes.push_back({"", label});
  }
  return prepared;
}

namespace {

// The weight that a low-rank factor updates; other names as they are.
std::string updated_name(const std::string& name) {
  for (const std::string_view factor : {low_rank_a, low_rank_b})
    if (name.ends_with(factor)) return name.substr(0, name.size() - factor.size());
  return name;
}

// Whether all tensors of the file are among these.
bool replaces(const NamedTensors& stored, const std::filesystem::path& adapter) {
  const SafetensorsFile file = SafetensorsFile::open(adapter);
  return std::ranges::all_of(file.tensors(),
                             [&](const auto& one) { return stored.contains(updated_name(one.first)); });
}

std::vector<std::string> hashes_of(const std::vector<AdapterInfo>& adapters) {
  std::vector<std::string> hashes;
  for (const AdapterInfo& adapter : adapters) hashes.push_back(adapter.hash);
  return hashes;
}

} // namespace

AdapterBase base_of(const PreparedModel& prepared, const std::string& role, const NamedTensors& stored) {
  std::vector<AdapterInfo> kept;
  for (auto adapter = prepared.adapters.rbegin(); adapter != prepared.adapters.rend(); ++adapter) {
    const AdapterInfo& info = adapter->info;
    const bool is_base = std::ranges::any_of(kept, [&](const AdapterInfo& later) {
      return later.base == info.hash || std::ranges::find(later.over, info.hash) != later.over.end();
    });
    if (!is_base && (info.role == "maps" || (info.role == role && replaces(stored, info.path)))) continue;
    kept.insert(kept.begin(), info);
  }
  if (kept.empty()) return {prepared.model_hash};
  AdapterInfo next;
  next.base = kept.back().hash;
  std::vector<std::string> all = hashes_of(kept);
  if (hashes_of(adapters_below(next, kept)) == all) return {next.base};
  return {next.base, std::move(all)};
}

std::string hashes_text(const PreparedModel& prepared) {
  if (prepared.adapters.empty()) return prepared.model_hash.substr(0, 12);
  std::string text;
  for (const AppliedAdapter& adapter : prepared.adapters)
    text += (text.empty() ? "" : " and ") + adapter.info.hash.substr(0, 12);
  return text;
}

NamedTensors given_maps(const PreparedModel& prepared) {
  NamedTensors maps;
  for (int layer = 0; const KernelSpec& kernel : prepared.schedule.layers) {
    const bool given = std::ranges::any_of(prepared.adapters, [&](const AppliedAdapter& adapter) {
      return adapter.info.role == "maps" && adapter.parts.maps.contains(layer);
    });
    const LayerKernel made = given ? layer_kernel(*prepared.model, layer, kernel) : LayerKernel();
    if (made.own_parameters)
      for (const auto& [name, value] : made.parameters)
        maps[kernel_parameter_name(layer, *made.kernel, name)] = value;
    ++layer;
  }
  return maps;
}

std::string kernel_parameter_name(const int layer, const Kernel& kernel, const std::string& name) {
  const KernelSpec& spec = kernel.spec();
  // Parameters of a typed map fit its source alone.
  const bool typed = !text_of_source(spec).empty();
  return fmt::format("kernel.{}.{}.{}", layer, typed ? spec.text() : spec.name, name);
}

ModelInput prepare_picture(const Model& model, const Image& image, const int image_size) {
  return model.prepare_image(image, image_size > 0 ? std::optional<int>(image_size) : std::nullopt);
}

} // namespace hydrascope::training
