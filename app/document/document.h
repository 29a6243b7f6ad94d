// The one document: everything the user chose, as a copyable value. Undo keeps whole documents.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/document/picture_folder.h"
#include "app/views/attention_view.h"
#include "app/views/focus_view.h"
#include "app/views/shown_tokens.h"
#include "app/views/table_views.h"
#include "app/views/token_lines.h"
#include "app/views/weights_view.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The two schedules that can be compared on the same input.
enum class Side { a = 0, b = 1 };
// What a panel shows of them.
enum class Shown { a, b, difference, all }; // all: the three side by side

// One input with its model and everything chosen for the pair. The photograph and the sentence each keep
// their own, so that going from one to the other and back loses nothing.
struct Scene {
  std::optional<RunInput> input;
  std::vector<std::int64_t> hidden_tokens; // of `input`, ascending: patches painted over, word pieces masked
  std::vector<HeadIndex> muted_heads;      // of the model, ascending
  std::filesystem::path model_folder;
  std::shared_ptr<const ModelInfo> model; // null as long as no model could be read
  AdapterChoice adapters;
  std::array<Schedule, 2> schedules; // A, B; as many layers as the model has

  int layer = 0;
  HeadChoice head{.head = 0, .fusion = HeadFusion::mean};
  bool default_query = true; // as RunRequest: all queries or the class token, whichever the target reads
  std::optional<std::int64_t> query; // where default_query is false: a token; nullopt = all
  std::optional<std::int64_t> key; // the other token of the pair whose vectors are shown; nullopt = the query
  Target target;
  // The Weights panel's kernels, from left to right, at least one; nullopt = softmax on the left, else the
  // layer's own kernel.
  std::vector<std::optional<KernelSpec>> comparison = {std::nullopt, std::nullopt};

  std::optional<KernelSpec> detail_kernel; // that Tokens and Vectors look into; nullopt = the layer's own

  bool operator==(const Scene& other) const;
};

struct ViewOptions {
  Shown shown = Shown::a;
  std::set<MapKind> maps = {MapKind::focus}; // side by side in the Focus panel, at least one
  double discard = 0;                        // rollout: share of each row's lowest weights left out
  bool with_sign = false;                    // focus: the signed map instead of its positive part
  Interpolation interpolation = Interpolation::nearest; // focus: between the patches
  float opacity = 0.6f;                                 // focus: of the map over the photograph
  bool logarithmic = false;                             // weights
  bool percentile = false;            // weights: the scale ends at the 99th percentile; excludes logarithmic
  bool all_heads = false;             // weights: layers × heads instead of one head large
  TokenPairs pairs = TokenPairs::all; // tokens of a sentence pair that the line view connects
  bool shared_scale = true;           // weights
  bool cividis = false;               // all maps in cividis instead of viridis and magma
  bool value_weighted = false;        // weights: ‖α_ij v_j W_o‖ instead of α_ij
  bool teacher_forced = false;        // weights, entropy, KL: q and k of the run with softmax in every layer
  ChangeMeasure change_measure = ChangeMeasure::error; // output change
  TokenDisplay tokens = {};                            // a sentence's, wherever they are shown

  bool operator==(const ViewOptions&) const = default;
};

struct Document {
  InputKind kind = InputKind::image;
  std::array<Scene, 2> scenes;                 // by InputKind
  std::shared_ptr<const PictureFolder> folder; // that is stepped through; null if none is open
  bool wrong_first = false;                    // … the wrongly predicted pictures of it
  ViewOptions view;
  ExecutionOptions execution;
  std::size_t session = 0; // Editor's: which session this belongs to, so that undo goes back to its file, too
  std::string layout = "explore";      // by which the panels are arranged; see layouts.h
  std::set<std::string> closed_panels; // ids; all others are open

  Scene& scene() { return scenes[kind == InputKind::image ? 0 : 1]; }
  const Scene& scene() const { return scenes[kind == InputKind::image ? 0 : 1]; }
  Scene& scene_of(InputKind which) { return scenes[which == InputKind::image ? 0 : 1]; }
  const Scene& scene_of(InputKind which) const { return scenes[which == InputKind::image ? 0 : 1]; }

  bool operator==(const Document&) const = default;
};

// The side whose schedule the kernel grid edits and whose numbers the panels show.
Side edited_side(const ViewOptions& view);
Schedule& edited_schedule(Document& document);
const Schedule& edited_schedule(const Document& document);

bool same_input(const RunInput& left, const RunInput& right);
std::string input_name(const RunInput& input); // file name, or the sentence's beginning

// Puts a model into a scene: the schedules become softmax where their length no longer fits, the selection is
// clamped.
void set_model(Scene& scene, std::filesystem::path folder, ModelInfo info);

// Which kernel the Weights panel shows at this position from the left: the choice, or what it falls back to.
KernelSpec compared_kernel(const Document& document, int position);

// The kernel that Tokens and Vectors look into: the choice, or the selected layer's own.
KernelSpec detail_kernel(const Document& document);

} // namespace hydrascope::app
