// Facts about models and adapters, and finding both. Plain types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/attention/interface/schedule.h"

namespace hydrascope {

enum class InputKind { image, text };

// A sequence of a capture, which takes a model's place (engine/base/capture.h).
struct CaptureInfo {
  std::int64_t tokens = 0;  // N; cross-attention: those that ask, then those that answer
  std::int64_t queries = 0; // cross-attention: how many ask; 0: every token does both
  std::int64_t prefix = 0, rows = 0, columns = 0; // patches of a picture; 0: texts
  std::vector<std::string> texts;
  std::vector<std::int64_t> padding; // masked tokens, ascending; cross-attention's are no tokens at all
  bool causal = false;               // of every layer
  std::filesystem::path file, image;
  std::vector<std::string> layer_names;
  int key_heads = 0;
  std::vector<std::string> parts;   // of the capture: what the names of their layers have in common
  std::int64_t part = 0;            // this one
  std::int64_t item = 0, items = 1; // this sequence of so many
  bool has_output_weights = false;  // W_o of every layer
  std::string source, hash;         // of the numbers
};

struct ModelInfo {
  std::string name;             // catalogue name or folder name
  std::filesystem::path folder; // Hugging Face folder
  std::string stamp;            // model_stamp() of the folder when it was read
  std::string family;           // "vit", "deit", "deit-distilled", "dinov2", "bert", "gpt2", "llama"
  InputKind input = InputKind::image;
  int layers = 0;
  int heads = 0;
  int width = 0;         // D
  int key_heads = 0;     // of keys and values: each serves heads/key_heads heads of queries
  bool causal = false;   // a decoder: a token attends to itself and those before it
  int vocabulary = 0;    // decoders: number of tokens that the next one is chosen from
  int patch_size = 0;    // images
  int image_size = 0;    // images: the default size of pre-processing (an adapter's, if one is applied)
  int prefix_tokens = 0; // images: 1 (class) or 2 (class, distillation); recorded: more (registers)
  int max_tokens = 0;    // text: the position table's length
  bool has_classifier = false;
  std::vector<std::string> labels;                      // of the classifier
  bool independent_labels = false;                      // each has a sigmoid of its own, not one softmax
  std::shared_ptr<const CaptureInfo> capture = nullptr; // null: a model that runs
  // Messages of loading, e.g. tensors of the file that the model does not use.
  std::vector<std::string> notes;
};

// Whether the second of the tokens before the patches is a distillation token. Two are those of a distilled
// DeiT; more are a class token and registers (DINOv2, recorded).
constexpr bool has_distillation_token(const std::int64_t prefix_tokens) { return prefix_tokens == 2; }

// A model of the catalogue: bundled by set-up, or a folder that the user opened.
struct CatalogueEntry {
  std::string name;
  std::string description;
  std::filesystem::path folder;
  InputKind input = InputKind::image;
};

// The installed bundled models in fixed order: vit-small (images' default), minilm
// (text's).
std::vector<CatalogueEntry> model_catalogue();

// The catalogue name of the model for an input that names none.
constexpr std::string_view bundled_model(const InputKind input) {
  return input == InputKind::image ? "vit-small" : "minilm";
}

// A catalogue name, a Hugging Face folder, or a repository name in the Hugging Face cache → its folder. What
// names a capture stays as it is.
// Throws Error that names what was looked for and where.
std::filesystem::path resolve_model(std::string_view name_or_folder);

// A text that changes when a file is written again that a model or a capture is read from: configuration,
// tokenizer, weights (model*.safetensors). Empty if there is none of that name.
std::string model_stamp(const std::filesystem::path& folder);

// Reads config.json alone, or a capture's header. Throws Error, ForeignFile (no known model_type or
// architecture), BrokenFile.
ModelInfo read_model_info(const std::filesystem::path& folder);

// An adapter: the parameters that differ from a base (a model or another adapter), and what they were trained
// for.
struct AdapterInfo {
  struct Layer {
    int layer = 0;
    KernelSpec kernel;
  };
  struct Class {
    std::string id, label;
  };
  std::filesystem::path path;
  std::string name;
  std::string hash; // sha256 of the file
  std::string base; // sha256 of the base's model.safetensors or of the base adapter's file
  // Hashes of all adapters that it was trained over, in order of application, where `base`, the last of them,
  // does not lead to the others: some do not build on each other. Else empty.
  std::vector<std::string> over;
  std::string role; // "tail" (a classifier and last layers on a bare backbone), "schedule" (layers trained
                    // through replaced kernels), "maps" (trained feature maps, layer by layer)
  std::vector<Layer> layers; // layers trained, and the kernel each was trained through
  int image_size = 0;        // trained at; 0 for text
  int tokens = 0;            // trained at
  std::vector<Class> classes;
  std::string summary;   // data, steps, final loss or accuracy: one line for users
  std::string version;   // of the program that trained it; empty before it was recorded, as data_hash
  std::string data_hash; // of the data that it was trained on (engine/training/data/data_hash.h)
};

// Reads an adapter file's metadata. Throws Error, ForeignFile, BrokenFile.
AdapterInfo read_adapter_info(const std::filesystem::path& file);

// The adapters of `available` that this one was trained over, in order of application: those of `over`, or
// from base to base. Those that are not available are left out.
std::vector<AdapterInfo> adapters_below(const AdapterInfo& adapter,
                                        const std::vector<AdapterInfo>& available);

// Whether an adapter may follow `applied`, hashes in order of application, on the model of this hash: all
// that it was trained over is there, in its order.
bool fits_over(const AdapterInfo& adapter, const std::string& model_hash,
               const std::vector<std::string>& applied);

// Every *.safetensors of assets/adapters/, sorted by name.
std::vector<AdapterInfo> bundled_adapters();

struct AdapterChoice {
  bool automatic = true;                    // applies the bundled adapters that fit
  std::vector<std::filesystem::path> files; // explicit adapters in order, instead of the automatic choice
  // Of an automatic choice:
  bool tail_alone = false;           // the model's own tail, nothing that was trained for a kernel
  std::filesystem::path folder = {}; // its *.safetensors in place of the bundled ones, the tail aside

  bool operator==(const AdapterChoice&) const = default;
};

// Which adapters apply to a model (given by the hash of its weights) under a schedule: first the model's own
// tail, then an adapter whose replaced layers and kernels are exactly the schedule's; of maps trained layer
// by layer the parts for each layer. In order of application.
std::vector<AdapterInfo> select_adapters(const std::string& model_hash, const Schedule& schedule,
                                         const std::vector<AdapterInfo>& available);

// Whether the layers that do not run exact softmax were trained through their kernels: by an adapter for
// exactly this schedule, or layer by layer by trained maps on a model that no adapter has converted to
// another one. nullopt: there is no such layer.
std::optional<bool> trained_for(const Schedule& schedule, const std::vector<AdapterInfo>& applied);

// The applied adapters without trained maps of layers or kernels that the schedule does not run.
std::vector<AdapterInfo> used_by(const Schedule& schedule, std::vector<AdapterInfo> applied);

} // namespace hydrascope
