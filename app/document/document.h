// The document: everything the user chose, as a copyable value. Undo keeps whole documents.
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
#include "app/views/focus_view.h"
#include "app/views/selection.h"
#include "app/views/table_views.h"
#include "app/views/weights_view.h"
#include "app/views/writing_view.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// An input with its model and everything chosen for the two. The photograph and the sentence have a scene
// each, so that switching between them loses nothing.
struct Scene {
  std::optional<RunInput> input;
  std::vector<std::int64_t> hidden_tokens; // ascending: patches painted over, word pieces masked
  std::vector<HeadIndex> muted_heads;      // ascending
  std::filesystem::path model_folder;
  std::shared_ptr<const ModelInfo> model; // null if none could be read
  AdapterChoice adapters;
  std::array<Schedule, 2> schedules; // A, B; one kernel per layer of the model

  int layer = 0;
  HeadChoice head{.head = 0, .fusion = HeadFusion::mean};
  bool default_query = true; // as in RunRequest: the query that the target reads, all or the class token
  std::optional<std::int64_t> query; // if not default_query: a token; nullopt = all
  std::optional<std::int64_t> key;   // the key token of the pair whose vectors are shown; nullopt = the query
  Target target;
  // The Weights panel's kernels from left to right, at least one; nullopt = softmax in the first place,
  // elsewhere the layer's own kernel.
  std::vector<std::optional<KernelSpec>> comparison = {std::nullopt, std::nullopt};

  std::optional<KernelSpec> detail_kernel; // of the Tokens and Vectors panels; nullopt = the layer's own

  bool operator==(const Scene& other) const;
};

struct ViewOptions {
  Shown shown = Shown::a;
  std::set<MapKind> maps = {MapKind::focus}; // side by side in the Focus panel, at least one
  double discard = 0;                        // rollout: fraction of each row's lowest weights to discard
  bool with_sign = false;                    // focus: the signed map instead of its positive part
  MapLook look = {};                         // focus: over the photograph
  bool logarithmic = false;                  // weights
  bool percentile = false;            // weights: the scale ends at the 99th percentile; excludes logarithmic
  bool all_heads = false;             // weights: all layers × heads instead of one head
  TokenPairs pairs = TokenPairs::all; // which tokens of a sentence pair the line view connects
  bool shared_scale = true;           // weights
  bool cividis = false;               // all maps in cividis instead of viridis and magma
  bool value_weighted = false;        // weights: ‖α_ij v_j W_o‖ instead of α_ij
  bool teacher_forced = false;        // weights, entropy, KL: q and k of the run with softmax in every layer
  ChangeMeasure change_measure = ChangeMeasure::error; // output change panel
  TokenDisplay tokens = {};                            // of sentences

  bool operator==(const ViewOptions&) const = default;
};

struct Document {
  InputKind kind = InputKind::image;
  std::array<Scene, 2> scenes;                 // by InputKind
  std::shared_ptr<const PictureFolder> folder; // null if none is open
  bool wrong_first = false;                    // order of its pictures: wrong predictions first
  ViewOptions view;
  WritingOptions writing;
  ExecutionOptions execution;
  std::size_t session = 0;        // id from Editor::add_session(), so that undo restores the session's file
  std::string layout = "explore"; // arrangement of the panels; see layouts.h
  std::set<std::string> closed_panels; // ids

  Scene& scene() { return scenes[kind == InputKind::image ? 0 : 1]; }
  const Scene& scene() const { return scenes[kind == InputKind::image ? 0 : 1]; }
  Scene& scene_of(InputKind which) { return scenes[which == InputKind::image ? 0 : 1]; }
  const Scene& scene_of(InputKind which) const { return scenes[which == InputKind::image ? 0 : 1]; }

  bool operator==(const Document&) const = default;
};

// The side that the kernel grid edits and whose numbers the panels show.
Side edited_side(const ViewOptions& view);
Schedule& edited_schedule(Document& document);
const Schedule& edited_schedule(const Document& document);

bool same_input(const RunInput& left, const RunInput& right);
std::string input_name(const RunInput& input); // the file name, or the sentence

// The query of panels that show the row of one token: the chosen one; by default, and of all tokens, the one
// that the prediction is read from, which is the class token or a decoder's last token (last_token).
std::int64_t row_query(const Scene& scene);
// Its index among the run's tokens.
std::int64_t row_query(const Scene& scene, const RunResult& run);
bool is_decoder(const Scene& scene);

// Whether recorded attention takes the place of a model.
bool is_capture(const Scene& scene);
// The maps side by side in the Focus panel: of a capture attention in place of focus, which needs a model.
std::set<MapKind> shown_maps(const Document& document);
// The bundled model of this kind, if it is installed.
void take_bundled_model(Scene& scene, InputKind kind);

// Resets what names tokens by their number (hidden ones, query, key), for an input or a grid of patches that
// has others.
void forget_tokens(Scene& scene);

// Sets a scene's model. Schedules of another length become softmax, the adapters of another model the
// automatic choice; the selection is clamped.
void set_model(Scene& scene, std::filesystem::path folder, ModelInfo info);

// The Weights panel's kernel at this position from the left: the chosen one or its default.
KernelSpec compared_kernel(const Document& document, int position);

// The kernel of the selected layer, on the side that edits change; softmax without a model.
KernelSpec selected_kernel(const Document& document);
// The kernel of the Tokens and Vectors panels: the chosen one or the selected layer's own.
KernelSpec detail_kernel(const Document& document);

// Model, adapters and a side's schedule, as a key: two scenes with the same one give the same results on the
// same input with nothing hidden and nothing muted.
std::string setup_key(const Scene& scene, Side side);
// How it runs, as a key: device, dtype, image size and seed. The number of threads changes no result.
std::string execution_key(const ExecutionOptions& execution);

// The shape of attention in the layers of the open model; all ones without a model. `run`: the newest of this
// scene, or null. Without a run of this model the number of tokens follows from pre-processing (pictures) or
// is 1 (text).
LayerShape layer_shape(const Document& document, const RunResult* run);

} // namespace hydrascope::app
