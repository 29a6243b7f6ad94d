// A folder of pictures, the model's predictions for them, and how they change with A's schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct FolderPicture {
  std::filesystem::path file;
  std::string label; // the class: the sub-folder's name; empty in the folder itself
};

struct PictureFolder {
  std::filesystem::path path;
  std::vector<FolderPicture> pictures; // sorted by class, then by name
  bool labelled = false;               // every picture lies in a sub-folder
};

// The pictures in the folder and its sub-folders. Throws Error if there are none.
PictureFolder list_pictures(const std::filesystem::path& path);
// The file's index in `pictures`.
std::optional<std::size_t> find_picture(const PictureFolder& folder, const std::filesystem::path& file);

// The prediction for one picture, compared with its label.
struct PictureCheck {
  enum class Verdict { right, wrong, unknown }; // unknown: the classifier has no class of the label's name
  Verdict verdict = Verdict::unknown;
  std::string predicted; // empty without a classifier, or where it predicts a number
  double probability = 0;
};

struct PictureChecks {
  using ByFile = std::map<std::filesystem::path, PictureCheck>;

  std::string setup;                           // the model, adapters, kernels and execution they belong to
  std::string kernels;                         // the same without the adapters
  std::uint64_t edition = 0;                   // of an adapter in training among them; 0: there is none
  std::shared_ptr<const PictureFolder> folder; // … and the listing: a folder is listed anew when it is opened
  ByFile found;                                // of the first pass over the folder, or of a whole later one
  // Of a later pass under way, by other weights of the same kernels. They replace `found` once all are there,
  // so that the order does not change with every picture.
  ByFile newer;
  std::size_t total = 0;
  bool running = false;
  bool renews = false;              // the pass fills `newer`, or has failed: `found` is of earlier weights
  bool failed = false;              // before the last picture
  std::size_t wrong = 0, right = 0; // of `found`

  std::size_t predicted() const { return renews ? newer.size() : found.size(); } // by the pass under way
};

// Whether the best prediction is the class named by `label`: by an adapter's class id, else by the class's
// label or its first synonym, ignoring case; nullopt if no class has that name.
std::optional<bool> is_right(const RunResult& run, const std::string& label);

// Indices into `pictures` in display order: unchanged, or wrong predictions first (the most confident first),
// then unknown ones, then right ones (the least confident first).
std::vector<std::size_t> shown_order(const PictureFolder& folder, bool wrong_first,
                                     const PictureChecks& checks);

// One picture by A's schedule, compared with softmax in every layer.
struct PictureMeasures {
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

  FolderPicture picture;
  std::string own_class, softmax_class; // empty without a classifier, or where it predicts a number
  double own_probability = undefined, softmax_probability = undefined;
  // KL(softmax's class probabilities ‖ the schedule's), nats; of independent labels the sum of each label's.
  double divergence = undefined;
  // Means over the layers and heads that define them, of A's kernels, nats.
  double entropy = undefined, kl = undefined;
  std::string problem; // why the picture could not be measured; empty if it was

  bool class_changed() const { return own_class != softmax_class; }
};

struct FolderMeasures {
  std::string key;                       // folder_measure_key() of the document they belong to
  std::vector<PictureMeasures> pictures; // in order of measurement
  std::size_t total = 0;                 // pictures to be measured
  bool running = false;
  std::uint64_t edition = 0; // changes with `pictures`
};

// Compares the two runs of one picture. KL clamps probabilities at 1e-12 inside the logarithm.
PictureMeasures measures_of(const RunResult& own, const RunResult& softmax);

enum class FolderColumn { name, own_class, own_probability, softmax_class, divergence, entropy, kl };
// Sorts by a column; undefined values come last in both directions.
void sort_measures(std::vector<PictureMeasures>& measures, FolderColumn column, bool descending);

} // namespace hydrascope::app
