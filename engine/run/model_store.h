// The loaded models and the adapters over them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/models/model_info.h"
#include "engine/models/transformer/model.h"
#include "engine/run/model_source.h"

namespace hydrascope {

// Which parts of a model an adapter's tensors replace, read off their names.
struct AdapterParts {
  bool embeddings = false; // or anything else that every layer depends on
  std::set<int> layers;
  std::map<int, std::vector<std::string>> maps; // layer → "KERNEL.NAME" of kernel.LAYER.KERNEL.NAME
};
AdapterParts adapter_parts(const std::vector<std::string>& tensor_names);

struct AppliedAdapter {
  AdapterInfo info;
  AdapterParts parts;
  bool for_schedule = true; // false: feature maps that only compared kernels may use
};

// A model with its adapters, and what a hidden state computed by it depends on.
struct AppliedModel {
  std::shared_ptr<const Model> model;
  std::vector<AppliedAdapter> adapters; // in order of application
  std::string dtype;

  // Everything that the embedded input depends on, but the input.
  std::string embedding_key() const;
  // Everything that block `layer` under `kernel` depends on, but its input.
  std::string layer_key(int layer, const KernelSpec& kernel) const;
  // Whether an applied adapter was trained with this kernel in this layer; the last one that was.
  const AdapterInfo* trained(int layer, const KernelSpec& kernel) const;
  // The image size that the last adapter for the schedule was trained at.
  std::optional<int> adapter_image_size() const;
};

// What an automatic choice of adapters brings.
enum class AutomaticAdapters {
  tail,     // the model's own: what a training starts from
  schedule, // and what was trained through the schedule
  all       // and trained feature maps that fit: they change nothing but kernels that are asked for by name
};

// Safe to call from several threads: what two ask for at once is loaded once, and the second waits for it.
class ModelStore {
public:
  explicit ModelStore(ModelSource source);
  ~ModelStore();
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  // The base model of a folder. Throws as load_model.
  std::shared_ptr<const Model> base(const std::filesystem::path& folder);

  // The model with the adapters that the choice and the schedule call for. Throws as load_model and
  // apply_adapter, UsageError for a dtype that does not run.
  AppliedModel apply(const std::filesystem::path& folder, const AdapterChoice& choice,
                     const Schedule& schedule, const std::string& dtype,
                     AutomaticAdapters automatic = AutomaticAdapters::all);

  // The bundled adapters that were trained over this model or over another of them.
  std::shared_ptr<const std::vector<AdapterInfo>> available(const std::filesystem::path& folder);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope
