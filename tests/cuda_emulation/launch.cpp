// What fibers and threads share: the limits of a launch, shared memory, and values exchanged within a warp.
#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include <cuda_runtime.h>

#include "tests/cuda_emulation/emulation.h"

namespace cuda_emulation {
namespace {

// Limits of compute capability 8.0 to 10.0 (CUDA Programming Guide, "Technical Specifications per Compute
// Capability").
constexpr unsigned max_grid_x = 0x7fffffffu;
constexpr unsigned max_grid_y_or_z = 65535;
constexpr unsigned max_block_threads = 1024;
constexpr auto shared_alignment = std::align_val_t(128);

// CUDA Programming Guide, the same table.
constexpr Device devices[] = {{9, 227 * 1024}, {8, 99 * 1024}, {7, 96 * 1024}};

struct State {
  int current_device = 0;
  std::map<const void*, int> allowed_shared_bytes;
  int last_error = cudaSuccess;
  std::string failure;
  // Of the running launch.
  std::vector<std::uint64_t> exchanged;    // one of each thread
  std::vector<WarpMatrices> warp_matrices; // one of each warp
  std::vector<PendingCopies> copies;       // those of each thread
};

State& state() {
  static State state;
  return state;
}

bool within(const unsigned count, const unsigned most) { return count > 0 && count <= most; }

cudaError_t check(const void* const kernel, const dim3 grid, const dim3 block,
                  const std::size_t shared_bytes) {
  const bool known_grid =
      within(grid.x, max_grid_x) && within(grid.y, max_grid_y_or_z) && within(grid.z, max_grid_y_or_z);
  // The emulation itself takes rows of whole warps only.
  const bool known_block =
      within(block.x, max_block_threads) && block.x % warp_size == 0 && block.y == 1 && block.z == 1;
  if (!known_grid || !known_block) return cudaErrorInvalidConfiguration;
  const auto found = state().allowed_shared_bytes.find(kernel);
  const int allowed = found == state().allowed_shared_bytes.end() ? 0 : found->second;
  const auto most = static_cast<std::size_t>(std::max(default_shared_bytes, allowed));
  return shared_bytes <= most ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace

SharedMemory::SharedMemory(const std::size_t bytes) : data_(::operator new(bytes, shared_alignment)) {
  std::memset(data_, 0xff, bytes);
}
SharedMemory::~SharedMemory() { ::operator delete(data_, shared_alignment); }

std::uint64_t exchange_in_warp(const std::uint64_t value, const int offset) {
  const unsigned thread = current_thread().thread.x;
  state().exchanged[thread] = value;
  synchronise_warp();
  const std::uint64_t other = state().exchanged[thread ^ static_cast<unsigned>(offset)];
  synchronise_warp(); // before the next exchange overwrites it
  return other;
}

WarpMatrices& matrices_of_warp() { return state().warp_matrices[current_thread().thread.x / warp_size]; }

PendingCopies& copies_of_thread() { return state().copies[current_thread().thread.x]; }

int launch(const void* const kernel, const dim3 grid, const dim3 block, const std::size_t shared_bytes,
           const std::function<void()>& thread) {
  const cudaError_t error = check(kernel, grid, block, shared_bytes);
  if (error != cudaSuccess) return error;
  state().exchanged.assign(block.x, 0);
  state().warp_matrices.assign(block.x / warp_size, {});
  state().copies.assign(block.x, {});
  state().failure = run_grid(grid, block, shared_bytes, [&] {
    copies_of_thread() = {}; // those of the block before, whose shared memory is gone
    thread();
  });
  return state().failure.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

bool allow_shared_bytes(const void* const kernel, const int bytes) {
  if (bytes > device(current_device()).max_shared_bytes) return false;
  state().allowed_shared_bytes[kernel] = bytes;
  return true;
}

const Device& device(const int index) { return devices[index]; }

int& current_device() { return state().current_device; }

int& last_error() { return state().last_error; }

const std::string& failure() { return state().failure; }

} // namespace cuda_emulation
