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
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/head_fusion.h"
#include "engine/run/quantities/head_metric.h"

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

// Explicit weights of one layer under one or more kernels, all on the same q, k.
struct WeightsAsk {
  int layer = 0;
  std::vector<KernelSpec> kernels; // empty: the schedule's own kernel of that layer
  std::vector<std::int64_t> rows;  // query rows; empty: all
  bool teacher_forced = false;     // q, k of the run with softmax in every layer, instead of this run's own
  bool value_weighted = false;     // ‖α_ij v_j W_o‖ instead of α_ij: as WeightsResult

  bool operator==(const WeightsAsk&) const = default;
};

// What stands behind one query's weights: q and k, and the feature maps' φ(q) and φ(k).
struct VectorsAsk {
  int layer = 0;
  std::vector<KernelSpec> kernels; // empty: the schedule's own kernel of that layer
  int head = 0;           // whose φ is delivered: of the kernel's heads; Hydra's φ is of the whole row
  std::int64_t query = 0; // token whose φ(q) is delivered
  bool teacher_forced = false;
  bool gradient =
      false; // g of the query token, too, where the kernel has a global vector; not teacher-forced

  bool operator==(const VectorsAsk&) const = default;
};

// A part of the weights of one layer, pooled to the pixels that show it.
struct TileAsk {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  std::vector<int> heads;           // empty: all
  std::optional<HeadFusion> fusion; // nullopt: each of the heads by itself
  std::int64_t first_row = 0, row_count = 0, first_column = 0, column_count = 0; // counts of 0: up to the end
  std::int64_t rows = 0, columns = 0; // cells of the result, at most as many as there are weights
  bool value_weighted = false;        // as WeightsAsk

  bool operator==(const TileAsk&) const = default;
};

// One row of the explicit weights of a layer's own kernel, of every head.
struct AttentionRowAsk {
  int layer = 0;
  std::optional<std::int64_t> query; // nullopt: the mean over the rows of all real tokens

  bool operator==(const AttentionRowAsk&) const = default;
};

// Attention rollout (Abnar & Zuidema 2020) through all layers.
struct RolloutAsk {
  HeadFusion fusion = HeadFusion::mean;
  std::vector<int> heads = {}; // that are fused; empty: all. Of a kernel with fewer heads its last one
  double discard = 0;          // share of the lowest weights of each row that is set to 0, below 1

  bool operator==(const RolloutAsk&) const = default;
};

// A number for every head (engine/run/quantities/head_quantity.h): of the schedule's own kernels in place, or
// of one kernel in every layer, teacher-forced (q, k, v of the run with softmax in every layer).
struct HeadTableAsk {
  std::string quantity;
  std::optional<KernelSpec> kernel; // nullopt: in place

  bool operator==(const HeadTableAsk&) const = default;
};

// A run computes only this.
struct Asks {
  bool pixels = false;
  bool token_logits = false; // a masked-LM head's (1,N,V); a classifier's logits are always there
  bool hidden = false;
  std::vector<WeightsAsk> weights;
  std::vector<VectorsAsk> vectors;
  std::vector<TileAsk> tiles;
  std::vector<int> focus_layers;
  std::vector<AttentionRowAsk> attention_rows;
  std::optional<RolloutAsk> rollout;
  std::vector<HeadTableAsk> head_tables;
  std::optional<HeadIndex> similar_heads; // how far every head's weights lie from this one's, in place
  std::optional<DeletionAsk> deletion;    // costs deletion_passes() passes more
  // So many plain passes for their times alone: without the prefix cache, gradients or readings, after one
  // more that warms up.
  int timed_passes = 0;
};

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
  ScheduleText schedule;
  Target target;
  bool default_query = true; // all queries where the target does not read the class token alone, else token 0
  std::optional<std::int64_t> query; // where default_query is false: a token, nullopt = all
  Asks asks;
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

struct WeightsResult {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  bool derived_signed = false; // Hydra and other kernels without positive, normalised weights
  bool untrained = false;
  std::vector<std::int64_t> rows; // query rows of `weights`
  bool value_weighted = false;
  // (h,R,N). Value-weighted: ‖α_ij v_j W_o^h‖, the length of what token j adds to token i through the head
  // (engine/run/quantities/value_norms.h), no longer signed and with rows of any sum; for Hydra kernels with
  // the derived weights as α.
  Array weights;
  double check = 0; // largest |weights × V − output| over these rows
};

struct VectorsResult {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  bool untrained = false;
  int head = 0;
  std::int64_t query = 0;
  Array q, k;            // (h,N,d), h the kernel's own number of heads
  Array query_feature;   // (d′), φ(q) of the query token; empty where the kernel has no feature map
  Array key_features;    // (N,d′), φ(k)
  bool rescaled = false; // exponential maps: as engine/attention/interface/features.h's Features
  // Hydra kernels only, over the whole row of D features. out_c = gate_c ⊙ global.
  Array query_features; // (N,D), the gates φ(Q) of all tokens
  Array values;         // (N,D), V
  Array global;         // (D), Σ_t φ(K)_t ⊙ V_t
  Array gradient;       // (D), g of the query token at this layer; empty where not asked for
};

struct TileResult {
  TileAsk ask;
  std::int64_t tokens = 0;     // N
  bool derived_signed = false; // as WeightsResult
  bool untrained = false;
  Array values; // (h,rows,columns), (1,rows,columns) where fused: of the weights under a cell that which is
                // largest by absolute value
};

struct AttentionRowResult {
  AttentionRowAsk ask;
  bool derived_signed = false; // as WeightsResult
  Array weights;               // (h,N)
};

struct RolloutResult {
  RolloutAsk ask;
  bool magnitudes = false; // a layer with a signed kernel entered as |w| over its row sum
  Array weights;           // (1,N,N), rows sum to 1
};

struct FocusResult {
  int layer = 0;
  Array contributions; // (N), signed, not normalised
  double total = 0;    // out_c·g_c (all: Σ_c), which the contributions sum to
  double share = 1;    // of Σ_c out_c·g_c that the shown query carries; NaN where that sum is 0
  bool zero_gradient = false;
};

struct HeadTable {
  HeadTableAsk ask;
  KernelSpec kernel;        // teacher-forced: with its seed
  bool untrained = false;   // teacher-forced: a trainable kernel at its initial parameters in some layer
  double clamped_share = 0; // of the weights looked at: those raised to a floor, mean over layers
  Array values;             // (L,H), of several parts (L,H,P), of layers (L,1); NaN where undefined
};

// How far the weights of every head lie from those of one.
struct SimilarHeads {
  HeadIndex head;
  HeadMetric metric = HeadMetric::jensen_shannon; // cosine where any layer's weights are no distributions
  Array distances; // (L,H); NaN for kernels that split the features into another number of heads, and for all
                   // where the head's own kernel does
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
  std::vector<std::vector<double>> timed; // by pass, of each layer: its block's seconds
  double seconds = 0;
  std::int64_t peak_bytes = 0; // resident set of the process

  Array pixels;                       // (1,3,H,W)
  Array logits;                       // (1,C) or (1,N,V)
  std::vector<Array> hidden;          // 0…L, (1,N,D)
  std::vector<WeightsResult> weights; // in the order asked: ask by ask, kernel by kernel
  std::vector<VectorsResult> vectors;
  std::vector<TileResult> tiles;
  std::vector<FocusResult> focus;
  std::vector<AttentionRowResult> attention_rows; // in the order asked
  std::optional<RolloutResult> rollout;
  std::vector<HeadTable> tables; // in the order asked
  std::optional<SimilarHeads> similar_heads;
  std::optional<DeletionResult> deletion;
};

} // namespace hydrascope
