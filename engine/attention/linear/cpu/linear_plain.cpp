#define HYDRASCOPE_CPU plain
#include "engine/attention/linear/cpu/linear_loops.h"

namespace hydrascope::cpu::plain {
const LinearLoops& linear_loops() { return loops; }
} // namespace hydrascope::cpu::plain
