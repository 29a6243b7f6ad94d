// A request for one forward pass and what came of it. Plain values: they cross threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/base/array.h"
#include "engine/base/image.h"
#include "engine/models/model_info.h"
#include "engine/run/muted_heads.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct ImageInput {
  std::shared_ptr<const Image> image;
  std::string name;           // file name, for titles
  std::filesystem::path path; // empty if pasted
};
struct TextInput {
  std::string text;
  std::optional<std::string> pair; // joined to one input: [CLS] text [SEP] pair [SEP]
};
using RunInput = std::variant<ImageInput, TextInput>;

// What the gradient of a focus map is taken of.
struct Target {
  enum class Kind { predicted, class_index, class_name, similarity, norm };
  Kind kind = Kind::predicted; // without a classifier: norm
  int index = 0;               // class_index
  std::string text;            // class_name, similarity's second sentence

  bool operator==(const Target&) const = default;
};
// `class:NAME|index`, `similarity:TEXT`, `norm`. Throws UsageError.
Target parse_target(std::string_view text);

struct ExecutionOptions {
  std::string device = "auto"; // auto | cpu | cuda | cuda:i
  std::string dtype = "float32";
  int threads = 0; // 0: LibTorch's default
  std::optional<int> image_size;
  std::uint64_t seed = 0;

  bool operator==(const ExecutionOptions&) const = default;
};

struct RunRequest {
  std::uint64_t generation = 0;
  std::filesystem::path model_folder; // as resolve_model gives it
  AdapterChoice adapters;
  RunInput input;
  std::vector<std::int64_t> hidden_tokens; // ascending; what they mean is Model::with_hidden's
  // Heads of the model whose d columns of the attention's output are 0 before W_o (after Kernel::finish):
  // they read, but say nothing. A muted head's own weights and facts are what it would look at; rollout
  // leaves it out. The teacher-forced run is not muted: it is the reference that kernels are compared with.
  std::vector<HeadIndex> muted_heads;
  ScheduleChoice schedule;
  Target target;
  bool default_query = true; // all queries where the target does not read the class token alone, else token 0
  std::optional<std::int64_t> query; // where default_query is false: a token, nullopt = all
  QuantityKeys quantities;           // a run computes only these
  ExecutionOptions execution;
};

struct Prediction {
  int index = 0;
  std::string label;
  double probability = 0;
  double logit = 0;
};

struct TokenInfo {
  std::string text; // word piece; patches: "row 3, column 4"; "[class]"
  int word = -1;
  bool special = false;
};

struct LayerRun {
  KernelSpec kernel;
  std::string path;   // which path really ran
  double seconds = 0; // 0 and cached = true where the prefix cache supplied it
  bool cached = false;
  bool differentiable = false;   // ran as part of a graph, which is another, slower path
  bool untrained = false;        // replaced kernel without an adapter that fits
  bool other_resolution = false; // a trained layer run at another token count than it was trained at
  std::int64_t zero_denominators = 0;
};

// What the model made of the input with nothing hidden and no head muted, by the same schedule.
struct WholeInput {
  std::vector<Prediction> predictions; // all classes, best first; empty without a classifier
  double similarity = 1; // cosine between the mean-pooled last hidden states, whole and as it was run
};

struct RunResult {
  std::uint64_t generation = 0;
  ModelInfo model;
  std::string model_hash;
  std::vector<AdapterInfo> adapters; // applied
  // The bundled ones that belong to this model, applied or not.
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
  std::vector<std::string> notes; // "text cut at 512 tokens", …
  Schedule schedule;
  std::string device, dtype;
  int threads = 0;

  std::vector<TokenInfo> tokens;
  int prefix_tokens = 0, rows = 0, columns = 0;                   // images
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0; // in the original's pixels
  std::vector<Prediction> predictions;     // all classes, best first; empty without a classifier
  std::vector<std::int64_t> hidden_tokens; // as asked
  std::vector<HeadIndex> muted_heads;      // as asked
  std::optional<WholeInput> whole;         // where tokens are hidden or heads muted
  std::string target;                      // what g was taken of, in words; empty if no focus was asked for
  double target_value = 0;
  std::optional<std::int64_t> query; // nullopt = all
  std::vector<LayerRun> layers;
  double seconds = 0;
  std::int64_t peak_bytes = 0; // resident set of the process

  QuantityResults quantities; // what was asked for, in the order asked
};

} // namespace hydrascope
