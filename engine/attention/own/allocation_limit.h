// A limit on what the CPU's tensors of one thread may allocate, and on the time that this takes.
#pragma once

#include <cstddef>
#include <limits>

namespace hydrascope {

// While it exists, LibTorch's allocations on the CPU by this thread fail with c10::OutOfMemoryError once they
// add up to more than `bytes`, freed ones included: what they add up to bounds the time, too. Limits nest;
// the inner one counts alone, but ends no later than the outer one.
//
// Sums and products of matrices can take any time for a small result. Allocations fail, too, once the thread
// has used more than `seconds` of processor time: any operator but a view allocates its result. Time on other
// threads does not count, nor does waiting for a processor, so that a busy machine refuses no more than
// another.
class AllocationLimit {
public:
  explicit AllocationLimit(std::size_t bytes, double seconds = std::numeric_limits<double>::infinity());
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

  // Counts memory against the present thread's limit, if there is one. Called by LibTorch's allocations, and
  // for memory that is no tensor's. Throws as an allocation does.
  static void count(std::size_t bytes);

  static void note_failure(); // an allocation that the limit allowed has failed
  // Throws as an allocation does if so many multiplications, one after another at a nanosecond each, would
  // take more time than the present thread's limit leaves; check_time() if it leaves none.
  static void count_products(double number);
  static void check_time() { count_products(0); }

  bool exceeded() const;  // `bytes`
  bool late() const;      // `seconds`
  bool no_memory() const; // an allocation failed that the limit allowed

private:
  struct Limit {
    std::size_t bytes_left = std::numeric_limits<std::size_t>::max();
    double end = std::numeric_limits<double>::infinity(); // the thread's processor time at the latest
    bool exceeded = false, late = false, no_memory = false;
  };
  static Limit& limit_of_this_thread();

  Limit outer_;
};

} // namespace hydrascope
