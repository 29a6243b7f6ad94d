// CUDA's half type: LibTorch's, which is a header and rounds in the same way.
#pragma once

#include <c10/util/Half.h>

using __half = c10::Half;
inline float __half2float(const __half x) { return static_cast<float>(x); }
inline __half __float2half(const float x) { return {x}; }
