#define HYDRASCOPE_CPU avx2
#include "engine/attention/hydra/cpu/hydra_loops.h"

namespace hydrascope::cpu::avx2 {
const HydraLoops& hydra_loops() { return loops; }
} // namespace hydrascope::cpu::avx2
