// How far kernels lie from softmax on real data, teacher-forced: the model runs with softmax in every layer,
// and each kernel's weights come from that run's q and k (Hedgehog paper, tables 2, 4, 5 and 14). Plain
// header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/measure/data_share.h"
#include "engine/models/model_info.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

struct TeacherForcedRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  std::vector<std::filesystem::path> data; // text: files, a text a line or a column; images: folders
  int column = 0;                          // of tab-separated lines, from 1; 0: whole lines
  int pair_column = 0;                     // of the second texts of pairs; 0: none
  bool header = false;                     // the first line of each file is skipped
  int limit = 0;                           // texts or pictures of each file or folder; 0: all
  // Text: weights over this many tokens. Each text is run by itself with its own positions, then q and k of
  // consecutive texts are concatenated and cut into pieces of this length. Empty: each text by itself.
  std::vector<std::int64_t> lengths;
  // Text: instead the joined texts are fed as one long text (with `lengths` in pieces of that many tokens),
  // positions modulo the model's maximum.
  // A decoder's is the file as it stands, and `limit` counts its pieces.
  bool joined = false;
  std::vector<KernelSpec> kernels; // empty: every kernel for which KL is defined
  bool skip_unsupported = false; // skip kernels that cannot run on this data, with a note, instead of failing
  ExecutionOptions execution;
  // Of several processes that measure the same request: each runs its share of the data and has the whole
  // outcome, but notes that concern all of them are in that of rank 0 alone.
  DataShare share;
};

// Means over rows, then heads, (then layers,) then texts, each text equal. NaN: undefined for this kernel
// (entropy and KL of signed weights, KL of another number of heads than the model's), ρ also where no text
// has three tokens.
struct KernelMeans {
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  double kl = undefined;            // KL(softmax ‖ kernel), nats
  double entropy = undefined;       // nats
  double spearman = undefined;      // ρ of weights and q·k/√d, within rows
  double clamped_share = undefined; // share of KL's entries that are below its floor of 1e-12
  // The output against softmax's on the same q, k, v. A head whose output is 0 has no cosine and is not part
  // of its mean.
  double ratio = undefined, cosine = undefined, relative_error = undefined;
};

struct KernelMeasure {
  KernelSpec kernel;
  std::filesystem::path data;
  std::optional<std::int64_t> length; // of pieces; nullopt: items as they are
  std::int64_t items = 0;             // texts, pieces or pictures
  std::int64_t tokens = 0;            // of all items
  KernelMeans mean;
  double kl_error = KernelMeans::undefined; // standard error of mean.kl over the items; NaN of one item
  std::vector<KernelMeans> layers;
  bool untrained = false;             // trainable, and at its initial values in some layer
  std::int64_t zero_denominators = 0; // output rows set to zero because their normaliser was 0
};

// q·k/√d of one head: the range over all items, and the share below −1 (mean over items), where taylor stops
// being monotone.
struct HeadScores {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double share_below = 0;
};

struct ScoreMeasure {
  std::filesystem::path data;
  std::optional<std::int64_t> length;
  std::vector<std::vector<HeadScores>> layers; // by layer, by head
};

struct TeacherForcedOutcome {
  std::vector<KernelMeasure> measures; // data by data, length by length, kernel by kernel
  std::vector<ScoreMeasure> scores;    // data by data, length by length
  std::vector<std::string> notes;      // texts that were cut, pictures that were skipped, …
  std::string model_hash;
  std::vector<AdapterInfo> adapters; // applied
};

// Progress in layers of items, over all processes.
using MeasureProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Throws Error (missing or empty data), UsageError (unknown kernel, lengths beyond the data, data that the
// model does not take), Cancelled when `stop` is requested, and as loading a model does.
TeacherForcedOutcome measure_teacher_forced(const TeacherForcedRequest& request,
                                            const MeasureProgress& progress = {},
                                            const std::stop_token& stop = {},
                                            const std::shared_ptr<ModelStore>& models = make_model_store());
// The same in a given placement, whatever the request's device and dtype.
TeacherForcedOutcome measure_teacher_forced_in(
    const Placement& placement, const TeacherForcedRequest& request, const MeasureProgress& progress = {},
    const std::stop_token& stop = {}, const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
