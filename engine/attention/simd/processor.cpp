#include "engine/attention/simd/processor.h"

#include <algorithm>

namespace hydrascope::cpu {

const char* name_of(const Processor processor) {
  switch (processor) {
    case Processor::plain: return "plain";
    case Processor::avx2: return "avx2";
    case Processor::avx512: return "avx512";
    case Processor::avx512bf16: return "avx512bf16";
  }
  return "";
}

const std::vector<Processor>& processors() {
  static const std::vector<Processor> all = [] {
    std::vector<Processor> found = {Processor::plain};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("x86-64-v3")) found.push_back(Processor::avx2);
    if (__builtin_cpu_supports("x86-64-v4")) found.push_back(Processor::avx512);
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16"))
      found.push_back(Processor::avx512bf16);
#endif
    return found;
  }();
  return all;
}

Processor best_processor(const bool bfloat16) {
  const Processor best = processors().back();
  return bfloat16 ? best : std::min(best, Processor::avx512);
}

} // namespace hydrascope::cpu
