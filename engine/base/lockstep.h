// Synchronizes two threads that run the same steps on different data, such as two texts that a model writes
// side by side, so that what both need (weights) is read once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hydrascope {

class Lockstep {
public:
  // A thread's input to a step. Equal keys: the step can be done for both together.
  struct Offer {
    const void* key = nullptr;
    const float* x = nullptr;
    float* out = nullptr;
  };

  // ---- By the threads of side 0 and 1, one each, step by step: meet(), then finish(); between them nothing
  // may throw, because the other thread uses the offer's memory. Waits until the other thread has reached
  // this step or has left. Returns its offer, valid until finish(), if that has the same key: each thread
  // then does its part of the step for both. Else null: each does its own alone.
  const Offer* meet(int side, const Offer& offer);
  // Ends the step; after a common one waits for the other's part.
  void finish(int side);
  // No more steps: the other goes on alone.
  void leave(int side);

  bool left(int side) const; // any thread
  // How long this side has waited for the other so far, in milliseconds. By its own thread.
  double ms_waited(int side) const { return sides_.at(static_cast<std::size_t>(side)).ms_waited; }

private:
  struct alignas(64) Side {
    std::atomic<std::uint32_t> reached = 0, finished = 0; // steps
    Offer offer;
    bool common = false; // the step
    double ms_waited = 0;
  };
  static void wait(Side& own, const std::atomic<std::uint32_t>& counter, std::uint32_t least);

  std::array<Side, 2> sides_;
};

// The calling thread as one side of a lockstep, which it leaves when this ends.
class LockstepMember {
public:
  LockstepMember(Lockstep& lockstep, int side) : lockstep_(&lockstep), side_(side) {}
  ~LockstepMember();
  LockstepMember(const LockstepMember&) = delete;
  LockstepMember& operator=(const LockstepMember&) = delete;

  // From here on this is current(), and the thread's products are steps. Once.
  void enter();
  static const LockstepMember* current(); // of this thread; null if there is none
  Lockstep& lockstep() const { return *lockstep_; }
  int side() const { return side_; }

private:
  Lockstep* lockstep_;
  int side_;
};

} // namespace hydrascope
