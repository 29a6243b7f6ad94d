// How far a schedule lies from softmax on every picture of a folder, worked out in the background.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "app/state/background_job.h"
#include "app/state/document.h"

namespace hydrascope::app {

// One picture: A's schedule beside softmax in every layer.
struct PictureMeasures {
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  FolderPicture picture;
  std::string own_class, softmax_class; // empty without a classifier
  double own_probability = undefined, softmax_probability = undefined;
  double divergence = undefined; // KL(softmax's classes ‖ the schedule's), nats
  // Means over the layers and heads for which they are defined, of A's kernels in place, nats.
  double entropy = undefined, kl = undefined;
  std::string problem; // why the picture could not be looked at; empty if it could

  bool class_changed() const { return own_class != softmax_class; }
};

// Read off the two runs of one picture. KL is clamped at 1e-12 inside the logarithm.
PictureMeasures measures_of(const RunResult& own, const RunResult& softmax);

enum class FolderColumn { name, own_class, own_probability, softmax_class, divergence, entropy, kl };
// Sorted by a column; what is undefined comes last either way.
void sort_measures(std::vector<PictureMeasures>& measures, FolderColumn column, bool descending);

// Begins to look at every picture, with a runner, and so weights, of its own. Everything is taken by value:
// what the document becomes meanwhile makes no difference. There must be a folder and a model. Destroyed it
// stops at the end of a block.
std::unique_ptr<BackgroundJob<PictureMeasures>> measure_folder(const Document& document);

// What the measures depend on: folder, model, adapters, A's schedule, muted heads.
std::string folder_measure_key(const Document& document);

} // namespace hydrascope::app
