// The loaded models with the adapters applied to them. Plain header.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/models/model_info.h"

namespace hydrascope {

class Model;
struct Placement;

// Loads models and lists the adapters that may be applied automatically.
struct ModelSource {
  std::function<std::shared_ptr<const Model>(const std::filesystem::path& folder)> load;
  std::function<std::vector<AdapterInfo>()> bundled;
};
ModelSource installed_models(); // load_model, bundled_adapters

// The parts of a model that an adapter replaces, from its tensors' names.
struct AdapterParts {
  bool embeddings = false; // or any other part that every layer depends on
  std::set<int> layers;
  std::map<int, std::vector<std::string>> maps; // layer → "KERNEL.NAME" of kernel.LAYER.KERNEL.NAME
};
AdapterParts adapter_parts(const std::vector<std::string>& tensor_names);

struct AppliedAdapter {
  AdapterInfo info;
  AdapterParts parts;
  bool for_schedule = true; // false: feature maps that only compared kernels may use
};

// A model with its adapters, and the keys under which its hidden states are cached.
struct AppliedModel {
  std::shared_ptr<const Model> model;
  std::vector<AppliedAdapter> adapters; // in order of application
  std::string device, dtype;            // where it runs

  // Equal for equal embeddings of the same input.
  std::string embedding_key() const;
  // Equal if block `layer` under `kernel` maps the same input to the same output.
  std::string layer_key(int layer, const KernelSpec& kernel) const;
  // The image size that the last adapter for the schedule was trained at.
  std::optional<int> adapter_image_size() const;
};

// The last applied adapter that was trained with this kernel in this layer; null if there is none.
const AdapterInfo* trained_adapter(const std::vector<AppliedAdapter>& applied, int layer,
                                   const KernelSpec& kernel);

// Which adapters an automatic choice includes.
enum class AutomaticAdapters {
  tail,     // the model's own, from which training starts
  schedule, // also those trained with the schedule's kernels
  all       // also trained feature maps that fit: they affect only kernels that are named explicitly
};

// Safe to call from several threads: a model that two threads request at once is loaded once, and the second
// thread waits for it.
class ModelStore {
public:
  explicit ModelStore(ModelSource source);
  ~ModelStore();
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  // Reads the bundled adapters' headers and hashes, which otherwise the first apply() or available() does.
  // Throws BrokenFile.
  void read_bundled_adapters();

  // The base model of a folder, loaded again if its files have changed (model_stamp()). Throws as load_model.
  std::shared_ptr<const Model> base(const std::filesystem::path& folder);

  // The model with the adapters of the choice; an automatic choice depends on the schedule. Throws as
  // load_model and apply_adapter. Models with different adapters share the parameters that they have in
  // common, also on another device.
  AppliedModel apply(const std::filesystem::path& folder, const AdapterChoice& choice,
                     const Schedule& schedule, const Placement& placement,
                     AutomaticAdapters automatic = AutomaticAdapters::all);
  // The same for a base model that base() returned for this folder. An operation that has read from it keeps
  // that version, even if the files have changed since.
  AppliedModel apply(const std::filesystem::path& folder, const std::shared_ptr<const Model>& base,
                     const AdapterChoice& choice, const Schedule& schedule, const Placement& placement,
                     AutomaticAdapters automatic = AutomaticAdapters::all);

  // Drops the models that only the store still holds, on this device (AppliedModel::device) or, without one,
  // on all, so that their memory can be given back. They are loaded and placed again when they are requested.
  void release_unused(const std::optional<std::string>& device = {});

  // Adapters, bundled or in the model's folder, that were trained on this folder's base() or on another of
  // these.
  std::shared_ptr<const std::vector<AdapterInfo>> available(const std::filesystem::path& folder,
                                                            const Model& base);

private:
  struct State;
  std::unique_ptr<State> state_;
};

// The model with its parameters on the device and in the dtype of the placement; kernels' parameters stay
// float32. The model itself if they are there.
std::shared_ptr<const Model> placed(const std::shared_ptr<const Model>& model, const Placement& placement);

// All jobs of a program share one store, so that each model is loaded, and its weights are packed, once.
std::shared_ptr<ModelStore> make_model_store(ModelSource source = installed_models());

} // namespace hydrascope
