// Numbers for every head of every layer, read off a run's attention: their meaning, how they are shown, and
// their tables. Each has its own file in this folder and one line in head_quantity.cpp, from which the
// window, `run`, `figure` and exports list them. Plain header.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct HeadQuantityInfo {
  enum class Colours { weights, outputs, signed_unit }; // from 0, of weights or outputs; from −1 to 1
  // One number. Most quantities have one, the output's change has three.
  struct Part {
    std::string name;  // among the parts: "cosine"
    std::string label; // with its unit: "entropy (nats)"
    Colours colours = Colours::weights;
  };

  std::string name;        // in commands, files and sessions: "entropy"
  std::string title;       // of its panel
  std::string heading;     // above its table: "Entropy, nats"
  std::string unit = {};   // after a number; may be empty
  std::string meaning;     // of a small or large number
  std::string undefined;   // why a head may have no number
  std::string summary;     // one line for the help, with the source
  std::vector<Part> parts; // at least one; the last is shown by default
  bool of_layers = false;  // the mean over a layer's heads is shown instead of each head
  // Compares with softmax, so it is constant for softmax layers: with a schedule of softmax alone, another
  // kernel is shown, teacher-forced.
  bool against_softmax = false;
};

// In the order in which they are shown.
const std::vector<HeadQuantityInfo>& head_quantity_infos();
// Throws UsageError naming the known ones.
const HeadQuantityInfo& head_quantity_info(std::string_view name);

struct HeadTable;

// The table of a quantity: for the schedule's own kernels, or teacher-forced for one kernel in every layer
// (q, k, v of the pass with softmax in every layer).
struct HeadTableKey {
  using Result = HeadTable;

  std::string quantity;
  std::optional<KernelSpec> kernel = {}; // nullopt: the schedule's kernels

  bool operator==(const HeadTableKey&) const = default;
};

struct HeadTable {
  HeadTableKey key;
  KernelSpec kernel;        // teacher-forced: with its seed
  bool untrained = false;   // teacher-forced: a trainable kernel at its initial parameters in some layer
  double clamped_share = 0; // share of the weights raised to a floor, mean over layers
  Array values;             // (L,H), of several parts (L,H,P), of layers (L,1); NaN where undefined
};
const Quantity& quantity_of(const HeadTableKey& key);

} // namespace hydrascope
