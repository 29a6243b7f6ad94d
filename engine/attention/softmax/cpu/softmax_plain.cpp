#define HYDRASCOPE_CPU plain
#include "engine/attention/softmax/cpu/softmax_loops.h"

namespace hydrascope::cpu::plain {
const SoftmaxLoops& softmax_loops() { return loops; }
} // namespace hydrascope::cpu::plain
