#define HYDRASCOPE_CPU avx2
#include "engine/attention/linear/cpu/linear_loops.h"

namespace hydrascope::cpu::avx2 {
const LinearLoops& linear_loops() { return loops; }
} // namespace hydrascope::cpu::avx2
