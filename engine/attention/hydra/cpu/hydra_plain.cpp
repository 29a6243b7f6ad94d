#define HYDRASCOPE_CPU plain
#include "engine/attention/hydra/cpu/hydra_loops.h"

namespace hydrascope::cpu::plain {
const HydraLoops& hydra_loops() { return loops; }
} // namespace hydrascope::cpu::plain
