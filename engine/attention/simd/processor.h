// Which of the loops, compiled for several kinds of processor, this machine runs. No LibTorch.
#pragma once

#include <vector>

namespace hydrascope::cpu {

// From the slowest on: any, x86-64-v3, x86-64-v4, x86-64-v4 with AVX512-BF16.
enum class Processor { plain, avx2, avx512, avx512bf16 };

const char* name_of(Processor processor);

// All that this machine can be, the best last.
const std::vector<Processor>& processors();

// The best for products of floats or, where there are such, of bfloat16 numbers.
Processor best_processor(bool bfloat16);

} // namespace hydrascope::cpu
