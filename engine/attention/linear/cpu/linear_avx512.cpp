#define HYDRASCOPE_CPU avx512
#include "engine/attention/linear/cpu/linear_loops.h"

namespace hydrascope::cpu::avx512 {
const LinearLoops& linear_loops() { return loops; }
} // namespace hydrascope::cpu::avx512
