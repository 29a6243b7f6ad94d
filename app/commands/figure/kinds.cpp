#include "app/commands/figure/kinds.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {

namespace {

std::vector<FigureKind> all_kinds() {
  std::vector<FigureKind> kinds = {
      {"focus", "focus maps of a layer by kernel, or of several layers (Hydra paper, Fig. 3)", true,
       draw_focus},
      {"weights", "attention weights by kernel, head and layer (Hedgehog paper, Fig. 7–20)", true,
       draw_weights},
      {"compare", "the schedule's focus map, another's, and their difference", true, draw_compare},
      {"tokens", "what one token looks at, by kernel", true, draw_tokens},
      {"vectors", "q, k and the feature maps behind one weight", true, draw_vectors},
      {"entropy", "entropy by layer and head, or with --data by kernel (Hedgehog paper, Fig. 2)", true,
       draw_entropy},
      {"kl", "KL(softmax ‖ kernel) by layer and head, or with --data by kernel", true, draw_divergence},
      {"monotonicity", "weights against q·k/√d by kernel (Hedgehog paper, Fig. 3, 5)", true,
       draw_monotonicity},
      {"layers", "the focus map of every layer", true, draw_layers},
      {"attention", "the query's weights in a layer", true, draw_attention},
      {"rollout", "attention rollout (Abnar & Zuidema 2020)", true, draw_rollout},
      {"predictions", "the best classes", true, draw_predictions},
      {"timing", "time of each layer", true, draw_timing},
      {"scaling", "time of attention against N by kernel (Hedgehog paper, Fig. 6)", false, draw_scaling},
      {"roofline", "flop/s against flops per byte, of what `bench kernels --json` printed into --data", false,
       draw_roofline},
      {"loss", "training loss, of the curves that distill, finetune and recall wrote (--data)", false,
       draw_loss},
      {"heads", "similarity or accuracy against the number of heads (Hydra paper, Fig. 2)", false,
       draw_heads},
      {"strategies", "similarity or accuracy against the layers replaced (Hydra paper, Fig. 4)", false,
       draw_strategies},
      {"recall",
       "accuracy against entropy, of what `recall --json` printed into --data, or of --kernels trained by "
       "its "
       "small preset (Hedgehog paper, Fig. 4)",
       false, draw_recall},
      {"table",
       "KL, entropy, monotonicity and output change by kernel on --data (Hedgehog paper, tables 4, 5)", false,
       draw_table},
      {"sheet", "focus maps of many pictures, right and wrong predictions framed", false, draw_sheet}};
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
  if (found == figure_kinds().end())
    throw UsageError("figure", "there is no kind '" + std::string(name) + "'",
                     "see hydrascope figure --help");
  return *found;
}

} // namespace hydrascope::app
