// What the launches of this folder have in common. No LibTorch and no CUDA headers: both sides of the plug-in
// include this.
#pragma once

namespace hydrascope::cuda {

enum class Element { float32, float16, bfloat16 };

} // namespace hydrascope::cuda
