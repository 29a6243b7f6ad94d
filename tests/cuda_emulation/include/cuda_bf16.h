// CUDA's bfloat16: LibTorch's, which is a header and rounds in the same way.
#pragma once

#include <c10/util/BFloat16.h>

using __nv_bfloat16 = c10::BFloat16;
inline float __bfloat162float(const __nv_bfloat16 x) { return static_cast<float>(x); }
inline __nv_bfloat16 __float2bfloat16(const float x) { return {x}; }
