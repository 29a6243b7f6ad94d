// The kinds of processor that the fused loops are compiled for, and which of them this machine is. No
// LibTorch.
#pragma once

#include <cstdint>
#include <vector>

namespace hydrascope::cpu {

// Each has the instructions of those before it: any, x86-64-v3, x86-64-v4, then with AVX512-BF16 (on Intel's
// no faster than products of floats), then with AMX-BF16.
enum class Processor { plain, avx2, avx512, avx512bf16, amx };

// Whether its loops take products of numbers rounded to bfloat16, summed in float32.
constexpr bool has_bfloat16_products(const Processor processor) { return processor >= Processor::avx512bf16; }

const char* name_of(Processor processor);

// All kinds that this machine can run, up to the one that the environment variable HYDRASCOPE_PROCESSOR
// names, if it is set; the fastest last. Throws UsageError for an unknown name. LibTorch's own operations do
// not follow the variable: ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA are theirs.
const std::vector<Processor>& processors();

// The fastest kind for products of floats, or of bfloat16 numbers where the machine has such products.
Processor best_processor(bool bfloat16);

// The bytes of a core's second-level cache as the system tells it, but 256 KiB to 2 MiB; 1 MiB where it does
// not.
std::int64_t second_cache_bytes();

// Declares `const Loops& name()` for each kind of processor, in a namespace called like it, and
// `name(Processor)`, which returns the one of a kind.
#define HYDRASCOPE_LOOPS(Loops, name)                        \
  namespace plain {                                          \
  const Loops& name();                                       \
  }                                                          \
  namespace avx2 {                                           \
  const Loops& name();                                       \
  }                                                          \
  namespace avx512 {                                         \
  const Loops& name();                                       \
  }                                                          \
  namespace avx512bf16 { /* products of bfloat16 numbers */  \
  const Loops& name();                                       \
  }                                                          \
  namespace amx { /* the same in tiles */                    \
  const Loops& name();                                       \
  }                                                          \
  inline const Loops& name(const Processor processor) {      \
    switch (processor) {                                     \
      case Processor::plain: break;                          \
      case Processor::avx2: return avx2::name();             \
      case Processor::avx512: return avx512::name();         \
      case Processor::avx512bf16: return avx512bf16::name(); \
      case Processor::amx: return amx::name();               \
    }                                                        \
    return plain::name();                                    \
  }

} // namespace hydrascope::cpu
