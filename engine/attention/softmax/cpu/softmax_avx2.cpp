#define HYDRASCOPE_CPU avx2
#include "engine/attention/softmax/cpu/softmax_loops.h"

namespace hydrascope::cpu::avx2 {
const SoftmaxLoops& softmax_loops() { return loops; }
} // namespace hydrascope::cpu::avx2
