// Two threads that do the same steps on different data, such as two texts that a model writes side by side:
// at each step each learns what the other brings, so that what both need (weights) is read once for both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hydrascope {

class Lockstep {
public:
  // What a thread brings to a step. Equal keys: the step can be done for both together.
  struct Offer {
    const void* key = nullptr;
    const float* x = nullptr;
    float* out = nullptr;
  };

  // ---- By the threads of side 0 and 1, one each, step by step: meet(), then finish().
  // Waits until the other has come to this step, or has left. Returns its offer if that has the same key,
  // valid until finish(): then both do their part of the step for both. Else null: each does its own alone.
  const Offer* meet(int side, const Offer& offer);
  // Ends the step; after a common one waits for the other's part.
  void finish(int side);
  // No more steps: the other goes on alone.
  void leave(int side);
  bool left(int side) const; // any thread

private:
  struct alignas(64) Side {
    std::atomic<std::uint32_t> come = 0, finished = 0; // steps
    Offer offer;
    bool common = false; // the step
  };
  std::array<Side, 2> sides_;
};

// The lockstep of the calling thread while this exists, as one of its sides; leaves it at the end.
class LockstepMember {
public:
  LockstepMember(Lockstep& lockstep, int side);
  ~LockstepMember();
  LockstepMember(const LockstepMember&) = delete;
  LockstepMember& operator=(const LockstepMember&) = delete;

  static LockstepMember* current(); // of this thread; null if there is none
  Lockstep& lockstep() const { return *lockstep_; }
  int side() const { return side_; }

private:
  Lockstep* lockstep_;
  int side_;
};

} // namespace hydrascope
