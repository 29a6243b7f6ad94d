// The adapters of a run, and where the parameters of a layer's kernel come from. Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct FoundAdapter {
  AdapterInfo info;
  bool bundled = false; // otherwise a file of the user
  bool applied = false; // to the run
  bool holds = false;   // parameters trained for this kernel in this layer
};

// The adapters applied to the run in the order of application, then the other bundled ones of its model.
std::vector<FoundAdapter> found_adapters(const RunResult& run, int layer, const KernelSpec& kernel);

// One line on the parameters of the layer's kernel.
struct AdapterState {
  std::string text;     // "bundled, trained at 257 tokens: vit-small-…"
  bool warning = false; // untrained, or trained at another resolution
};
AdapterState adapter_state(const RunResult& run, int layer, const std::vector<FoundAdapter>& found);

// Whether parameters trained for a kernel exist; trained_together: only those that apply when several layers
// run the kernels that they were trained with.
enum class ParameterMark { unknown, none_needed, trained, trained_together, untrained };
// By layer and kernel of the registry, each at its default parameters: trained where an adapter that may be
// applied holds them. `adapters`: those in use; automatic: also the bundled ones.
std::vector<std::vector<ParameterMark>> parameter_marks(const RunResult& run, const AdapterChoice& adapters);
// Whether a kernel of the family has trained parameters in any layer.
bool has_trained(const std::vector<std::vector<ParameterMark>>& marks, KernelFamily family);

} // namespace hydrascope::app
