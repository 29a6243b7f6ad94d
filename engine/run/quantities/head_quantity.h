// A number for every head of every layer, read off a run's attention: what it means and how it is shown. Each
// has its file in this folder and one line in registry.cpp; the window, `run`, `figure` and exports list them
// from there. Plain header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
  std::string meaning;     // what a small or large number says
  std::string undefined;   // why a head may have no number
  std::string summary;     // one line for the help, with the source
  std::vector<Part> parts; // at least one; the last is shown by default
  bool of_layers = false;  // the mean over a layer's heads is shown instead of each head
  // The same for every softmax layer: a schedule of softmax alone shows another kernel, teacher-forced.
  bool against_softmax = false;
};

// In the registry's order.
const std::vector<HeadQuantityInfo>& head_quantity_infos();
// Throws UsageError naming the known ones.
const HeadQuantityInfo& head_quantity_info(std::string_view name);

} // namespace hydrascope
