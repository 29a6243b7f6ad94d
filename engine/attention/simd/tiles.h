// Products of pairs of bfloat16 numbers in AMX's tile registers, which hold sixteen rows of sixteen words
// each (Intel's manual, volume 1, chapter 18), for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/simd/lanes.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

#ifdef __AMX_BF16__

constexpr std::int64_t tile_rows = 16, tile_words = 16;
static_assert(tile_rows % rows_at_once == 0);

// Configures this thread's tile registers while it lives: every function whose products may use them begins
// with one. Then restores the configuration before it, since LibTorch remembers its own from call to call.
class TileRegisters {
public:
  HYDRASCOPE_INLINE TileRegisters() {
    asm volatile("sttilecfg %0" : "=m"(before_));
    const Shapes own{1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    asm volatile("ldtilecfg %0" ::"m"(own));
  }
  HYDRASCOPE_INLINE ~TileRegisters() { asm volatile("ldtilecfg %0" ::"m"(before_)); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

private:
  // The processor's layout. Palette 0: the registers are not in use.
  struct alignas(64) Shapes {
    std::uint8_t palette, first_row, reserved[14];
    std::uint16_t bytes_of_row[16];
    std::uint8_t rows[16];
  };
  static_assert(sizeof(Shapes) == 64);

  Shapes before_;
};

// Not GCC 12's intrinsics: these take register numbers as literals only, and do not say that they read
// memory.
template <int tile>
HYDRASCOPE_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
// stride: words from a row to the next.
template <int tile>
HYDRASCOPE_INLINE void load_tile(const void* from, const std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride * 4), "i"(tile) : "memory");
}
template <int tile>
HYDRASCOPE_INLINE void store_tile(void* to, const std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride * 4), "i"(tile) : "memory");
}
// sum += a · b, pair by pair: a has a row of sixteen pairs for each row of `sum`, b a row for each of these.
template <int sum, int a, int b>
HYDRASCOPE_INLINE void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}

// Calls use<tile>() for the tiles 0 … count − 1.
template <int count, typename Use>
HYDRASCOPE_INLINE void for_tiles(const Use& use) {
  if constexpr (count > 1) for_tiles<count - 1>(use);
  use.template operator()<count - 1>();
}

#else

struct TileRegisters {};

#endif

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
