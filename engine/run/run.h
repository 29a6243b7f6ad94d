// A request for one forward pass and its result. Plain values: they cross threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/base/array.h"
#include "engine/base/image.h"
#include "engine/models/model_info.h"
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

// A head of the model; layer and head count from 0.
struct HeadIndex {
  int layer = 0;
  int head = 0;

  auto operator<=>(const HeadIndex&) const = default;
};
// Parses `3:0,3:5,7`: heads 0 and 5 of layer 3, and all heads of layer 7. Returns them ascending, each once.
// Throws UsageError that names the part that is malformed or out of range.
std::vector<HeadIndex> parse_muted_heads(std::string_view text, int layers, int heads);
// The inverse: a layer with all of its `heads` muted is written as its number alone.
std::string muted_heads_text(std::span<const HeadIndex> muted, int heads);
// Throws UsageError that names the first head out of range.
void check_muted_heads(std::span<const HeadIndex> muted, int layers, int heads);
// The muted heads of each layer, ascending, each once.
std::vector<std::vector<int>> muted_by_layer(std::span<const HeadIndex> muted, int layers);

// The scalar whose gradient focus maps use.
struct Target {
  enum class Kind { predicted, class_index, class_name, similarity, norm };
  Kind kind = Kind::predicted; // without a classifier: norm
  int index = 0;               // class_index
  std::string text;            // class_name, similarity's second sentence

  bool operator==(const Target&) const = default;
};
// Parses `predicted`, `class:NAME`, `class:INDEX`, `similarity:TEXT` or `norm`. Throws UsageError.
Target parse_target(std::string_view text);

// The query whose attention a capture shows where none is chosen, as no target says which one counts: the
// class token, else all (nullopt), of a long sequence the last one.
std::optional<std::int64_t> default_query(const CaptureInfo& capture);

struct ExecutionOptions {
  std::string device = "auto";   // auto | cpu | cuda | cuda:i
  std::string dtype = "float32"; // float32 | bfloat16, on a GPU also float16
  int threads = 0;               // 0: LibTorch's default
  std::optional<int> image_size;
  std::uint64_t seed = 0;

  bool operator==(const ExecutionOptions&) const = default;
};
// The kernel with `seed` as its seed, if it takes one and the spec gives none; 0 adds nothing.
KernelSpec seeded(KernelSpec spec, std::uint64_t seed);
Schedule seeded(Schedule schedule, std::uint64_t seed); // each of its kernels
// Sets LibTorch's number of threads for the life of the object; 0 leaves it as it is.
class ThreadCount {
public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

private:
  int before_;
};

struct RunRequest {
  std::uint64_t generation = 0;
  std::filesystem::path model_folder; // from resolve_model()
  AdapterChoice adapters;
  RunInput input;
  std::vector<std::int64_t> hidden_tokens; // ascending; hidden as Model::with_hidden() does
  // The d columns of these heads in the attention's output are set to 0 before W_o (after Kernel::finish).
  // Their weights and tables are still computed; rollout omits the heads. The teacher-forced pass is the
  // reference for comparisons, so it has no muted heads.
  std::vector<HeadIndex> muted_heads;
  ScheduleChoice schedule;
  Target target;
  bool default_query = true; // the one token that the target depends on (the class token, a decoder's last
                             // token), else all queries
  std::optional<std::int64_t> query; // if default_query is false: a token, nullopt = all
  QuantityKeys quantities;           // a run computes these and no others
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
  std::string path;              // the path that was taken
  double seconds = 0;            // 0 if cached
  bool cached = false;           // its output came from the prefix cache
  bool differentiable = false;   // ran as part of a graph, on a different and slower path
  bool untrained = false;        // a replaced kernel for which no adapter was trained
  bool other_resolution = false; // a trained layer, run at a different token count than it was trained at
  std::int64_t zero_denominators = 0;
};

// The model's result for the same input and schedule with no token hidden and no head muted.
struct WholeInput {
  std::vector<Prediction> predictions; // all classes, best first; empty without a classifier
  double similarity = 1; // cosine of the mean-pooled last hidden states of the whole input and of the run's
};

struct RunResult {
  std::uint64_t generation = 0;
  ModelInfo model;
  std::string model_hash;
  std::vector<AdapterInfo> adapters; // applied
  // The bundled adapters of this model, applied or not.
  std::shared_ptr<const std::vector<AdapterInfo>> available_adapters;
  std::vector<std::string> notes; // "text cut at 512 tokens", …
  Schedule schedule;
  std::string device, dtype;
  int threads = 0;

  std::vector<TokenInfo> tokens;
  int prefix_tokens = 0, rows = 0, columns = 0;                   // images
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0; // in the original's pixels
  // All classes, best first; a decoder's likeliest next tokens after the query, by default after the last
  // token. Empty without a classifier.
  std::vector<Prediction> predictions;
  std::vector<std::int64_t> hidden_tokens; // the request's
  std::vector<HeadIndex> muted_heads;      // the request's
  std::optional<WholeInput> whole;         // if tokens are hidden or heads muted
  std::string target;                      // in words: "logit of tabby"; empty if no gradient was taken
  double target_value = 0;
  std::optional<std::int64_t> query; // nullopt = all
  std::vector<LayerRun> layers;
  double seconds = 0;
  // Of these: loading what was not loaded yet or waiting until another thread has, and preparing the input.
  double preparing_seconds = 0;
  // The process's resident set at most since this run, or one that began later, began, with what its
  // allocator keeps of freed memory; since the process began where the system does not allow that to be
  // reset.
  std::int64_t peak_bytes = 0;
  // Of a device other than the CPU: the program's tensors at most since the run began, those of other models
  // and of training included, and the device's memory. 0 on the CPU.
  std::int64_t device_bytes = 0, device_total_bytes = 0;

  QuantityResults quantities; // in the order of the request's keys
};

} // namespace hydrascope
