// LibTorch's current stream: the emulation has one.
#pragma once

namespace c10::cuda {

struct CUDAStream {
  static void* stream() { return nullptr; }
};
inline CUDAStream getCurrentCUDAStream() { return {}; }

} // namespace c10::cuda
