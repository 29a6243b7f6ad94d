// Where models come from, and the store through which all jobs of a program share them. Plain header.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope {

class Model;
class ModelStore; // engine/run/model_store.h

struct ModelSource {
  std::function<std::shared_ptr<const Model>(const std::filesystem::path& folder)> load;
  std::function<std::vector<AdapterInfo>()> bundled; // adapters that may apply by themselves
};
ModelSource installed_models(); // load_model, bundled_adapters

// Hand one store to every job: each model is then loaded, and its weights are packed, once.
std::shared_ptr<ModelStore> make_model_store(ModelSource source = installed_models());

} // namespace hydrascope
