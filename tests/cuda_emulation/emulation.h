// CUDA's blocks of threads on the CPU: a launch runs its blocks one after another and the threads of a block
// as fibers (fibers.cpp) or, for ThreadSanitizer, as threads (threads.cpp). The headers in include/ have
// CUDA's names for it, so that the kernels' own sources are compiled unchanged.
//
// A launch fails with a message, where a GPU would hang or compute nonsense: threads that end or wait at
// different barriers, a warp that diverges at an operation of the whole warp, a grid, block or shared memory
// beyond an H100's limits, misaligned squares of WMMA. Shared memory is as large as asked for, for
// AddressSanitizer, and NaN until it is written; what a copy is to write, until the copy is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuda_emulation {

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr explicit dim3(const unsigned x_, const unsigned y_ = 1, const unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

constexpr int warp_size = 32;
constexpr int default_shared_bytes = 48 * 1024; // without cudaFuncSetAttribute

// ---- For the headers of include/

struct Device {
  int major;            // of its compute capability
  int max_shared_bytes; // of a block
};
// 0: an H100, 1: an RTX 3090, 2: a V100.
const Device& device(int index);
int& current_device();

struct Coordinates {
  dim3 thread, block, grid, block_size;
};
const Coordinates& current_thread();
float* shared_memory(); // of the current block

// Both return when all threads of the block, or of the warp, have called. `place` identifies the barrier.
void synchronise_block(const void* place);
void synchronise_warp();
// The value that lane (own lane XOR offset) of the warp has passed.
std::uint64_t exchange_in_warp(std::uint64_t value, int offset);

// Factors of a product of the current warp, or the rows that its lanes have passed.
struct WarpMatrices {
  float a[16][16];
  float b[16][16];
  const void* rows[warp_size];
};
WarpMatrices& matrices_of_warp();

// Copies of 16 bytes into shared memory that the current thread has started and not waited for.
struct Copy {
  void* to;
  const void* from; // null: zeros
};
struct PendingCopies {
  std::vector<Copy> open;                // in no group yet
  std::vector<std::vector<Copy>> groups; // the oldest first
};
PendingCopies& copies_of_thread();

// Runs a kernel over a grid. Returns a cudaError_t: of cudaErrorLaunchFailure, failure() has the message.
int launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
           const std::function<void()>& thread);
// Lets the kernel be launched with that much shared memory; false beyond what the current device has.
bool allow_shared_bytes(const void* kernel, int bytes);
int& last_error(); // a cudaError_t
// Ends the launch, from any of its threads. The first message is kept. Does not return.
[[noreturn]] void fail(const char* message);
const std::string& failure(); // of the last launch, "" if it did not fail

// ---- For tests

// The order in which the fibers of a block run between two barriers.
enum class Order { forward, reverse, shuffled };
void set_order(Order order);

// ---- For launch.cpp: one of fibers.cpp and threads.cpp is linked

// Runs the blocks of a grid one after another. Returns the failure's message, "" if there is none.
std::string run_grid(dim3 grid, dim3 size, std::size_t shared_bytes, const std::function<void()>& thread);

// Calls run(block) for each block of a grid until it returns false.
template <typename Run>
void each_block(const dim3 grid, const Run& run) {
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        if (!run(dim3(x, y, z))) return;
}

// Shared memory of one block: exactly as large as asked for, so that AddressSanitizer sees an access beyond
// it, and NaN, as float, __half or __nv_bfloat16.
class SharedMemory {
public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  float* data() const { return static_cast<float*>(data_); }

private:
  void* data_;
};

} // namespace cuda_emulation
