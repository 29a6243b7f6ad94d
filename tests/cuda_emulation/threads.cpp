// The threads of a block as threads of the operating system, for ThreadSanitizer. A barrier that some threads
// do not reach stops the program: fibers.cpp reports it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <pthread.h>

#include "tests/cuda_emulation/emulation.h"

namespace cuda_emulation {
namespace {

// ThreadSanitizer understands those of pthreads.
class Barrier {
public:
  explicit Barrier(const unsigned threads) { pthread_barrier_init(&barrier_, nullptr, threads); }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void wait() { pthread_barrier_wait(&barrier_); }

private:
  pthread_barrier_t barrier_{};
};

struct Launch {
  explicit Launch(const unsigned threads) : of_block(threads) {
    for (unsigned warp = 0; warp < threads / warp_size; ++warp)
      of_warps.push_back(std::make_unique<Barrier>(warp_size));
  }
  Barrier of_block;
  std::vector<std::unique_ptr<Barrier>> of_warps;
  std::unique_ptr<SharedMemory> shared;
};

Launch* current = nullptr;
thread_local Coordinates coordinates;

} // namespace

const Coordinates& current_thread() { return coordinates; }

float* shared_memory() { return current->shared->data(); }

void synchronise_block(const void*) { current->of_block.wait(); }

void synchronise_warp() { current->of_warps[coordinates.thread.x / warp_size]->wait(); }

void fail(const char* const message) {
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void set_order(Order) {}

std::string run_grid(const dim3 grid, const dim3 size, const std::size_t shared_bytes,
                     const std::function<void()>& thread) {
  Launch launch(size.x);
  current = &launch;
  const auto run = [&](const unsigned index) {
    each_block(grid, [&](const dim3 block) {
      if (index == 0) launch.shared = std::make_unique<SharedMemory>(shared_bytes);
      launch.of_block.wait();
      coordinates = {dim3(index), block, grid, size};
      thread();
      launch.of_block.wait();
      return true;
    });
  };
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < size.x; ++index) threads.emplace_back(run, index);
  for (std::thread& one : threads) one.join();
  current = nullptr;
  return "";
}

} // namespace cuda_emulation
