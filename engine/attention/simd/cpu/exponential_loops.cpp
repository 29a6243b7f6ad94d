// The exponentials and logarithms of numbers in memory, for the processor that HYDRASCOPE_CPU names.
#include "engine/attention/simd/cpu/exponential.h"
#include "engine/attention/simd/lanes.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

constexpr ExponentialLoops loops{[](const float* x, const std::int64_t count, float* power) {
                                   for (std::int64_t i = 0; i < count; i += lane_count)
                                     store(power + i, exponential(load(x + i)));
                                 },
                                 [](const float* x, const std::int64_t count, float* power) {
                                   for (std::int64_t i = 0; i < count; i += lane_count)
                                     store(power + i, rough_exponential(load(x + i)));
                                 },
                                 [](const float* x, const std::int64_t count, float* result) {
                                   for (std::int64_t i = 0; i < count; i += lane_count)
                                     store(result + i, logarithm(load(x + i)));
                                 }};

} // namespace

const ExponentialLoops& exponential_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
