#define HYDRASCOPE_CPU avx512
#include "engine/attention/hydra/cpu/hydra_loops.h"

namespace hydrascope::cpu::avx512 {
const HydraLoops& hydra_loops() { return loops; }
} // namespace hydrascope::cpu::avx512
