#define HYDRASCOPE_CPU avx512bf16
#include "engine/attention/softmax/cpu/softmax_loops.h"

namespace hydrascope::cpu::avx512bf16 {
const SoftmaxLoops& softmax_loops() { return loops; }
} // namespace hydrascope::cpu::avx512bf16
