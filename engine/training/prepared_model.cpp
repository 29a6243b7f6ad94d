#include "engine/training/prepared_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/plain/safetensors.h"

namespace hydrascope::training {
namespace {

std::vector<AdapterInfo> chosen_adapters(const Model& model, const AdapterChoice& choice,
                                         const Schedule& schedule, const bool for_training) {
  if (!choice.automatic) {
    std::vector<AdapterInfo> adapters;
    for (const auto& file : choice.files) adapters.push_back(read_adapter_info(file));
    return adapters;
  }
  std::vector<AdapterInfo> available = bundled_adapters();
  if (for_training)
    std::erase_if(available, [](const AdapterInfo& adapter) { return adapter.role != "tail"; });
  return select_adapters(model.hash(), schedule, available);
}

} // namespace

PreparedModel prepare_model(const std::filesystem::path& folder, const AdapterChoice& adapters,
                            const ScheduleText& schedule, const ExecutionOptions& execution,
                            const bool for_training) {
  if (execution.device != "auto" && execution.device != "cpu")
    throw UsageError("--device " + execution.device, "this command runs on the CPU", "leave the option out");
  PreparedModel prepared;
  prepared.model = load_model(folder);
  prepared.schedule = parse_schedule(schedule, prepared.model->info().layers);
  prepared.adapters = chosen_adapters(*prepared.model, adapters, prepared.schedule, for_training);
  prepared.base = prepared.model_hash = prepared.model->hash();
  std::vector<std::string> applied;
  for (const auto& adapter : prepared.adapters) {
    prepared.model = apply_adapter(prepared.model, adapter, applied);
    applied.push_back(adapter.hash);
    // Trained maps change nothing that a later adapter could build on.
    if (adapter.role != "maps") prepared.base = adapter.hash;
    if (!adapter.classes.empty()) prepared.classes = adapter.classes;
  }
  const auto& labels = prepared.model->info().labels;
  if (prepared.model->info().has_classifier && prepared.classes.size() != labels.size()) {
    prepared.classes.clear();
    for (const auto& label : labels) prepared.classes.push_back({"", label});
  }
  return prepared;
}

std::string base_without_replaced(const PreparedModel& prepared, const std::string& role,
                                  const NamedTensors& stored) {
  std::string base = prepared.base;
  for (auto adapter = prepared.adapters.rbegin(); adapter != prepared.adapters.rend(); ++adapter) {
    if (adapter->hash != base) continue; // maps
    if (adapter->role != role) break;
    const SafetensorsFile file = SafetensorsFile::open(adapter->path);
    if (!std::ranges::all_of(file.tensors(), [&](const auto& one) { return stored.contains(one.first); }))
      break;
    base = adapter->base;
  }
  return base;
}

KernelParameters layer_parameters(const Model& model, const int layer, const Kernel& kernel) {
  KernelParameters parameters = model.kernel_parameters(layer, kernel.spec());
  if (!parameters.empty()) return parameters;
  const auto& info = model.info();
  return kernel.initial_parameters(info.heads, info.width / info.heads, layer);
}

std::vector<std::unique_ptr<Kernel>> make_kernels(const Schedule& schedule) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const auto& spec : schedule.layers) kernels.push_back(make_kernel(spec));
  return kernels;
}

std::string kernel_parameter_name(const int layer, const Kernel& kernel, const std::string& name) {
  return fmt::format("kernel.{}.{}.{}", layer, kernel.spec().name, name);
}

ModelInput prepare_picture(const Model& model, const Image& image, const int image_size) {
  return model.prepare_image(image, image_size > 0 ? std::optional<int>(image_size) : std::nullopt);
}

} // namespace hydrascope::training
