// The loaded models and the adapters over them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/attention/schedule.h"
#include "engine/models/model.h"
#include "engine/models/model_info.h"
#include "engine/runtime/run.h"
#include "engine/runtime/runner.h"

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

class ModelStore {
public:
  explicit ModelStore(ModelSource source) : source_(std::move(source)) {}

  // The base model of a folder, loaded once. Throws as load_model.
  std::shared_ptr<const Model> base(const std::filesystem::path& folder);

  // The model with the adapters that the choice and the schedule call for; with an automatic choice, trained
  // feature maps that fit it are laid over as well, since they change nothing but kernels that are asked for
  // by name. Throws as load_model and apply_adapter, UsageError for a dtype that does not run.
  AppliedModel apply(const std::filesystem::path& folder, const AdapterChoice& choice,
                     const Schedule& schedule, const std::string& dtype);

  // The bundled adapters that were trained over this model or over another of them.
  std::shared_ptr<const std::vector<AdapterInfo>> available(const std::filesystem::path& folder);

private:
  const std::vector<AdapterInfo>& bundled();
  const AdapterInfo& adapter_file(const std::filesystem::path& file); // read again where the file has changed
  std::vector<AppliedAdapter> choose(const Model& base, const AdapterChoice& choice,
                                     const Schedule& schedule);

  template <typename Value>
  struct Kept {
    std::string key;
    Value value;
  };
  ModelSource source_;
  std::optional<std::vector<AdapterInfo>> bundled_;
  std::map<std::filesystem::path, std::pair<std::filesystem::file_time_type, AdapterInfo>> files_;
  std::map<std::filesystem::path, std::shared_ptr<const std::vector<AdapterInfo>>> available_; // by model
  // Most recently used last; few, because each may hold packed copies of its weights.
  std::vector<Kept<std::shared_ptr<const Model>>> bases_;
  std::vector<Kept<AppliedModel>> applied_;
};

} // namespace hydrascope
