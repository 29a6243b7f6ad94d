#include "engine/attention/simd/processor.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
  #include <cpuid.h>
  #include <sys/syscall.h>
#endif
#ifdef __linux__
  #include <unistd.h>
#endif

#include "engine/base/error.h"

namespace hydrascope::cpu {
namespace {

// Whether the processor has tiles with products of bfloat16 numbers, and Linux lets this process use them: it
// has to be asked, since a thread that uses them has 8 KB of state.
bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned amx_bf16 = 1U << 22, amx_tile = 1U << 24; // of edx, leaf 7
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & amx_bf16) == 0 || (edx & amx_tile) == 0) return false;
  constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

// The last kind that HYDRASCOPE_PROCESSOR allows. By getenv, as the benchmarks do not link process.cpp.
Processor last_allowed() {
  const char* const given = std::getenv("HYDRASCOPE_PROCESSOR");
  const std::string name = given == nullptr ? "" : given;
  if (name.empty()) return Processor::amx;
  for (const Processor kind :
       {Processor::plain, Processor::avx2, Processor::avx512, Processor::avx512bf16, Processor::amx})
    if (name == name_of(kind)) return kind;
  throw UsageError("HYDRASCOPE_PROCESSOR", "\"" + name + "\" is not a kind of processor",
                   "set it to plain, avx2, avx512, avx512bf16 or amx, or unset it");
}

} // namespace

const char* name_of(const Processor processor) {
  switch (processor) {
    case Processor::plain: return "plain";
    case Processor::avx2: return "avx2";
    case Processor::avx512: return "avx512";
    case Processor::avx512bf16: return "avx512bf16";
    case Processor::amx: return "amx";
  }
  return "";
}

const std::vector<Processor>& processors() {
  static const std::vector<Processor> all = [] {
    std::vector<Processor> found = {Processor::plain};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("x86-64-v3")) found.push_back(Processor::avx2);
    if (__builtin_cpu_supports("x86-64-v4")) found.push_back(Processor::avx512);
    if (found.back() == Processor::avx512 && __builtin_cpu_supports("avx512bf16")) {
      found.push_back(Processor::avx512bf16);
      if (may_use_tiles()) found.push_back(Processor::amx);
    }
#endif
    std::erase_if(found, [last = last_allowed()](const Processor kind) { return kind > last; });
    return found;
  }();
  return all;
}

std::int64_t second_cache_bytes() {
  static const std::int64_t bytes = [] {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const std::int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    // A virtual machine may tell those of all cores together.
    if (told > 0) return std::clamp<std::int64_t>(told, 1 << 18, 1 << 21);
#endif
    return std::int64_t{1} << 20;
  }();
  return bytes;
}

Processor best_processor(const bool bfloat16) {
  const Processor best = processors().back();
  return bfloat16 ? best : std::min(best, Processor::avx512);
}

} // namespace hydrascope::cpu
