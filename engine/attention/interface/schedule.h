// Which kernel runs in which layer. Plain types.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

struct Schedule {
  std::vector<KernelSpec> layers; // one per layer, from 0

  bool operator==(const Schedule&) const = default;
  bool all_exact_softmax() const;
  std::string summary() const; // "softmax ×10, hydra-cosine ×2"
};

// A schedule as text: base kernel, replacement strategies, per-layer overrides, applied in this order.
struct ScheduleText {
  std::string kernel = "softmax";        // --kernel SPEC
  std::vector<std::string> replace = {}; // --replace front:k=SPEC | back:k=SPEC | interleave:k=SPEC
  std::vector<std::string> layers = {};  // --layers "0-9=softmax;10,11=hydra-cosine"

  bool operator==(const ScheduleText&) const = default;
};

enum class Strategy { front, back, interleave };

// The k of `layer_count` layers that a strategy replaces, in the order of replacement (Hydra paper, Fig. 4).
// `interleave` alternates from the back: 11, 9, 7, 5, 3, 1, then 10, 8, … of 12 layers. Throws UsageError if
// k is outside 0…layer_count.
std::vector<int> replaced_layers(Strategy strategy, int k, int layer_count);

// Throws UsageError (unknown strategy or kernel, layer out of range, the same layer twice in one option).
Schedule parse_schedule(const ScheduleText& text, int layer_count);

// As it was written, or each layer's kernel.
using ScheduleChoice = std::variant<ScheduleText, Schedule>;
// Throws UsageError as parse_schedule, and where a schedule has another number of layers.
Schedule resolved(const ScheduleChoice& choice, int layer_count);
// For a command line: as it was written, or the layers that are not softmax by number.
ScheduleText written_text(const ScheduleChoice& choice);

} // namespace hydrascope
