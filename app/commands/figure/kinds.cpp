#include "app/commands/figure/kinds.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/quantities/head_quantity.h"

// One line each: the function that draws it, its name, what it shows, and whether it draws one input.
// clang-format off
#define HYDRASCOPE_FIGURE_KINDS(KIND) \
  KIND(draw_focus, "focus", "focus maps of a layer by kernel, or of several layers (Hydra paper, Fig. 3)", true) \
  KIND(draw_weights, "weights", "attention weights by kernel, head and layer (Hedgehog paper, Fig. 7–20)", true) \
  KIND(draw_compare, "compare", "the schedule's focus map, another's, and their difference", true) \
  KIND(draw_tokens, "tokens", "what one token looks at, by kernel", true) \
  KIND(draw_vectors, "vectors", "q, k and the feature maps behind one weight", true) \
  KIND(draw_entropy, "entropy", "entropy by layer and head, or with --data by kernel (Hedgehog paper, Fig. 2)", true) \
  KIND(draw_divergence, "kl", "KL(softmax ‖ kernel) by layer and head, or with --data by kernel", true) \
  KIND(draw_monotonicity, "monotonicity", "weights against q·k/√d by kernel (Hedgehog paper, Fig. 3, 5)", true) \
  KIND(draw_layers, "layers", "the focus map of every layer", true) \
  KIND(draw_attention, "attention", "the query's weights in a layer", true) \
  KIND(draw_rollout, "rollout", "attention rollout (Abnar & Zuidema 2020)", true) \
  KIND(draw_hidden_norms, "norms", "the norm of every token\'s hidden state by layer (Darcet et al. 2024)", true) \
  KIND(draw_predictions, "predictions", "the best classes", true) \
  KIND(draw_loss_strip, "loss-strip", "a decoder's loss of each token of a text, or with --kernels by kernel", true) \
  KIND(draw_state, "state", "a decoder's time per token and bytes of state against the length, by kernel", false) \
  KIND(draw_timing, "timing", "time of each layer", true) \
  KIND(draw_scaling, "scaling", "time and memory of attention against N by kernel (Hedgehog paper, Fig. 6)", false) \
  KIND(draw_roofline, "roofline", "flop/s against flops per byte, of what `bench kernels --json` printed into --data", false) \
  KIND(draw_loss, "loss", "training loss, of the curves that distill, finetune and recall wrote (--data)", false) \
  KIND(draw_heads, "heads", "similarity or accuracy against the number of heads (Hydra paper, Fig. 2)", false) \
  KIND(draw_strategies, "strategies", "similarity or accuracy against the layers replaced (Hydra paper, Fig. 4)", false) \
  KIND(draw_recall, "recall", "accuracy against entropy, of what `recall --json` printed into --data, or of --kernels trained by its small preset (Hedgehog paper, Fig. 4)", false) \
  KIND(draw_table, "table", "KL, entropy, monotonicity and output change by kernel on --data (Hedgehog paper, tables 4, 5)", false) \
  KIND(draw_sheet, "sheet", "focus maps of many pictures, right and wrong predictions framed", false)
// clang-format on

namespace hydrascope::app {

#define HYDRASCOPE_DECLARE(function, name, summary, of_one_input) Figure function(FigureTask& task);
HYDRASCOPE_FIGURE_KINDS(HYDRASCOPE_DECLARE)
#undef HYDRASCOPE_DECLARE

namespace {

std::vector<FigureKind> all_kinds() {
#define HYDRASCOPE_ENTRY(function, name, summary, of_one_input) {name, summary, of_one_input, function},
  std::vector<FigureKind> kinds = {HYDRASCOPE_FIGURE_KINDS(HYDRASCOPE_ENTRY)};
#undef HYDRASCOPE_ENTRY
  for (const HeadQuantityInfo& quantity : head_quantity_infos()) { // those without a kind above
    if (std::ranges::none_of(kinds, [&](const FigureKind& kind) { return kind.name == quantity.name; }))
      kinds.push_back({quantity.name.c_str(), quantity.summary.c_str(), true, draw_head_table});
  }
  return kinds;
}

} // namespace

const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> kinds = all_kinds();
  return kinds;
}

const FigureKind& figure_kind(std::string_view name) {
  const auto found =
      std::ranges::find_if(figure_kinds(), [&](const FigureKind& kind) { return kind.name == name; });
  if (found == figure_kinds().end()) {
    std::vector<std::string> names;
    for (const FigureKind& kind : figure_kinds()) names.emplace_back(kind.name);
    throw UsageError("figure", "there is no kind '" + std::string(name) + "'",
                     "the nearest is " + nearest_name(name, names) + "; see hydrascope figure --help");
  }
  return *found;
}

} // namespace hydrascope::app
