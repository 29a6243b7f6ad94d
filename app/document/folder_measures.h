// How far a schedule lies from softmax on every picture of a folder, as far as it has been measured. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/document/document.h"

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

struct FolderMeasures {
  std::string key;                       // folder_measure_key() of the document they were measured for
  std::vector<PictureMeasures> pictures; // in the order measured
  std::size_t total = 0;                 // pictures that are measured
  bool running = false;
  std::uint64_t edition = 0; // changes when the pictures do
};

// Read off the two runs of one picture. KL is clamped at 1e-12 inside the logarithm.
PictureMeasures measures_of(const RunResult& own, const RunResult& softmax);

enum class FolderColumn { name, own_class, own_probability, softmax_class, divergence, entropy, kl };
// Sorted by a column; what is undefined comes last either way.
void sort_measures(std::vector<PictureMeasures>& measures, FolderColumn column, bool descending);

// What the measures depend on: folder, model, adapters, A's schedule, muted heads.
std::string folder_measure_key(const Document& document);

} // namespace hydrascope::app
