// A block of the GPU's threads on the host, as the programs of cuda/program.h take it.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/attention/cuda/program.h"

namespace hydrascope::testing_inputs {

// A block whose threads take turns.
struct HostBlock {
  template <typename T>
  class Local {
  public:
    explicit Local(const T& initial) : values_(cuda::block_threads, initial) {}
    T& operator[](int thread) { return values_[static_cast<std::size_t>(thread)]; }

  private:
    std::vector<T> values_;
  };
  template <typename Phase>
  void each(const Phase& phase) {
    for (int thread = 0; thread < cuda::block_threads; ++thread) phase(thread);
  }
  template <typename Phase>
  void alone(const Phase& phase) {
    each(phase);
  }
  bool is_last(unsigned* const counter, const unsigned count, float*) { return ++*counter == count; }
  void sum_of_warp(Local<float>& local) {
    for (int first = 0; first < cuda::block_threads; first += cuda::warp_threads) {
      float sum = 0;
      for (int lane = 0; lane < cuda::warp_threads; ++lane) sum += local[first + lane];
      for (int lane = 0; lane < cuda::warp_threads; ++lane) local[first + lane] = sum;
    }
  }
};

} // namespace hydrascope::testing_inputs
