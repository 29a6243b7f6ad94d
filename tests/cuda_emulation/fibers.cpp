// The threads of a block as fibers: one runs until it waits at a barrier and hands over to the next.
// Each switch of stacks is announced to AddressSanitizer.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/stack_switch.h"

#ifdef __SANITIZE_ADDRESS__
  #include <sanitizer/asan_interface.h>
  #include <sanitizer/common_interface_defs.h>
#endif

#ifdef __x86_64__
asm(R"(
  .text
  .type cuda_emulation_switch_stack, @function
cuda_emulation_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cuda_emulation_switch_stack, . - cuda_emulation_switch_stack
)");
#endif

namespace cuda_emulation {
namespace {

constexpr std::size_t stack_bytes = 128 * 1024;

enum class Wait { none, warp, block, ended };

struct Fiber {
  StackSwitch stack_switch;
  const void* stack = nullptr;
  std::size_t stack_size = 0;
  void* fake_stack = nullptr; // AddressSanitizer's
  Coordinates coordinates{};
  Wait wait = Wait::none;
  const void* place = nullptr; // of the barrier that it waits at
};

class Block {
public:
  std::string run(const dim3 grid, const dim3 size, const std::size_t shared_bytes,
                  const std::function<void()>& thread) {
    resize(size.x);
    thread_ = &thread;
    failure_.clear();
    each_block(grid, [&](const dim3 block) {
      const SharedMemory shared(shared_bytes);
      shared_ = shared.data();
      for (unsigned i = 0; i < size.x; ++i) start(fibers_[i], {dim3(i), block, grid, size}, stacks_[i].get());
      begin_round();
      switch_to(next());
      return failure_.empty();
    });
    if (!failure_.empty()) forget_frames();
    return failure_;
  }

  Fiber& current() { return *current_; }
  float* shared() const { return shared_; }
  void set_order(const Order order) { order_ = order; }

  void wait(const Wait kind, const void* const place) {
    current_->wait = kind;
    current_->place = place;
    switch_to(next());
  }

  [[noreturn]] void fail(const char* const message) {
    if (failure_.empty()) failure_ = message;
    switch_to(home_);
    std::abort(); // nothing returns to a fiber that has failed
  }

private:
  static void entry();

  void resize(const std::size_t threads) {
    while (stacks_.size() < threads)
      stacks_.push_back(std::make_unique_for_overwrite<std::byte[]>(stack_bytes));
    fibers_.resize(threads);
    warps_.resize(threads / warp_size);
    lanes_.resize(warp_size);
    std::iota(warps_.begin(), warps_.end(), std::size_t{0});
    std::iota(lanes_.begin(), lanes_.end(), std::size_t{0});
    if (order_ == Order::reverse) {
      std::reverse(warps_.begin(), warps_.end());
      std::reverse(lanes_.begin(), lanes_.end());
    }
  }

  static void start(Fiber& fiber, const Coordinates& coordinates, std::byte* const stack) {
    fiber.coordinates = coordinates;
    fiber.wait = Wait::none;
    fiber.stack = stack;
    fiber.stack_size = stack_bytes;
    fiber.fake_stack = nullptr;
    fiber.stack_switch.start(stack, stack_bytes, &entry);
  }

  void switch_to(Fiber& to) {
    Fiber& from = *current_;
    if (&to == &from) return;
    previous_ = &from;
    current_ = &to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(from.wait == Wait::ended ? nullptr : &from.fake_stack, to.stack,
                                   to.stack_size);
#endif
    from.stack_switch.switch_to(to.stack_switch);
    after_switch();
  }

  // Called on the stack that has been switched to.
  void after_switch() {
#ifdef __SANITIZE_ADDRESS__
    // The only way to learn where the program's own stack is.
    __sanitizer_finish_switch_fiber(current_->fake_stack, &previous_->stack, &previous_->stack_size);
#endif
  }

  // Fibers that did not end have left the red zones of their frames behind.
  void forget_frames() {
#ifdef __SANITIZE_ADDRESS__
    for (const auto& stack : stacks_) __asan_unpoison_memory_region(stack.get(), stack_bytes);
#endif
  }

  // ---- Which fiber is next: those of a warp until all wait at a barrier of the block, then the next warp's
  // ----

  void begin_round() {
    if (order_ == Order::shuffled) {
      std::shuffle(warps_.begin(), warps_.end(), random_);
      std::shuffle(lanes_.begin(), lanes_.end(), random_);
    }
    warp_ = 0;
    queue_warp();
  }

  void queue_warp() {
    lane_ = 0;
    for (const std::size_t lane : lanes_) {
      Fiber& fiber = fibers_[warps_[warp_] * warp_size + lane];
      fiber.wait = fiber.wait == Wait::ended ? Wait::ended : Wait::none;
    }
  }

  // The program's own stack if the block has ended or failed.
  Fiber& next() {
    while (failure_.empty()) {
      while (lane_ < lanes_.size()) {
        Fiber& fiber = fibers_[warps_[warp_] * warp_size + lanes_[lane_]];
        ++lane_;
        if (fiber.wait == Wait::none) return fiber;
      }
      if (!advance()) break;
    }
    return home_;
  }

  // After all lanes of a warp have come to wait. False if the block has ended or failed.
  bool advance() {
    const auto first = fibers_.begin() + static_cast<std::ptrdiff_t>(warps_[warp_] * warp_size);
    const auto waiting =
        std::count_if(first, first + warp_size, [](const Fiber& fiber) { return fiber.wait == Wait::warp; });
    if (waiting == warp_size) {
      queue_warp();
      return true;
    }
    if (waiting != 0) return stop("a warp diverges at an operation of the whole warp");
    ++warp_;
    if (warp_ < warps_.size()) {
      queue_warp();
      return true;
    }
    return release();
  }

  // After all threads of the block have come to wait at a barrier or have ended.
  bool release() {
    const auto ended = static_cast<std::size_t>(std::count_if(
        fibers_.begin(), fibers_.end(), [](const Fiber& fiber) { return fiber.wait == Wait::ended; }));
    if (ended == fibers_.size()) return false;
    if (ended != 0) return stop("threads end while others wait at __syncthreads");
    const auto elsewhere = [&](const Fiber& fiber) { return fiber.place != fibers_.front().place; };
    if (std::any_of(fibers_.begin(), fibers_.end(), elsewhere))
      return stop("threads wait at different __syncthreads");
    for (Fiber& fiber : fibers_) fiber.wait = Wait::none;
    begin_round();
    return true;
  }

  bool stop(const std::string& message) {
    const dim3 at = fibers_.front().coordinates.block;
    failure_ = message + " in block (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " +
               std::to_string(at.z) + ")";
    return false;
  }

  std::vector<std::unique_ptr<std::byte[]>> stacks_;
  std::vector<Fiber> fibers_;
  Fiber home_; // the program's own stack
  Fiber* current_ = &home_;
  Fiber* previous_ = &home_;
  const std::function<void()>* thread_ = nullptr;
  float* shared_ = nullptr;
  std::string failure_;
  Order order_ = Order::forward;
  std::mt19937 random_{7};
  std::vector<std::size_t> warps_, lanes_; // in the order in which they run
  std::size_t warp_ = 0, lane_ = 0;        // positions in these
};

Block the_block;

void Block::entry() {
  the_block.after_switch();
  (*the_block.thread_)();
  the_block.wait(Wait::ended, nullptr);
}

} // namespace

const Coordinates& current_thread() { return the_block.current().coordinates; }

float* shared_memory() { return the_block.shared(); }

void synchronise_block(const void* const place) { the_block.wait(Wait::block, place); }

void synchronise_warp() { the_block.wait(Wait::warp, nullptr); }

void fail(const char* const message) { the_block.fail(message); }

void set_order(const Order order) { the_block.set_order(order); }

std::string run_grid(const dim3 grid, const dim3 size, const std::size_t shared_bytes,
                     const std::function<void()>& thread) {
  return the_block.run(grid, size, shared_bytes, thread);
}

} // namespace cuda_emulation
