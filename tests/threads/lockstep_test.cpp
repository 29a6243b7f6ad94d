// Two threads in lockstep under ThreadSanitizer.
#include "engine/base/lockstep.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

constexpr int common_key = 0, key_of_side[2] = {1, 2};

// A step adds 1 to each number of x; a common one does half of both sides' numbers.
void step(Lockstep& lockstep, const int side, const void* key, const std::vector<float>& x,
          std::vector<float>& out, int& common) {
  const Lockstep::Offer* const other = lockstep.meet(side, {key, x.data(), out.data()});
  const std::size_t half = x.size() / 2;
  const std::size_t first = other != nullptr && side == 1 ? half : 0;
  const std::size_t last = other != nullptr && side == 0 ? half : x.size();
  for (std::size_t i = first; i < last; ++i) {
    out[i] = x[i] + 1;
    if (other != nullptr) other->out[i] = other->x[i] + 1;
  }
  common += other != nullptr;
  lockstep.finish(side);
}

// Side 0 does `count` steps, side 1 twice as many, every third with a key of its own.
void run(Lockstep& lockstep, const int side, const int count, std::vector<float>& x, int& common) {
  std::vector<float> out(x.size());
  LockstepMember member(lockstep, side);
  member.enter();
  EXPECT_EQ(LockstepMember::current(), &member);
  for (int i = 0; i < (side + 1) * count; ++i) {
    if (i % 50 == 7 * side)
      std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the other falls asleep
    step(lockstep, side, i % 3 == 2 ? &key_of_side[side] : &common_key, x, out, common);
    x.swap(out);
  }
}

TEST(Lockstep, DoesCommonStepsForBothAndGoesOnAlone) {
  constexpr int count = 300;
  Lockstep lockstep;
  std::vector<float> x[2] = {std::vector<float>(9, 10), std::vector<float>(9, 20)};
  int common[2] = {};
  std::thread other([&] { run(lockstep, 1, count, x[1], common[1]); });
  run(lockstep, 0, count, x[0], common[0]);
  EXPECT_TRUE(lockstep.left(0));
  other.join();
  EXPECT_EQ(LockstepMember::current(), nullptr);
  EXPECT_EQ(x[0], std::vector<float>(9, 10 + count));
  EXPECT_EQ(x[1], std::vector<float>(9, 20 + 2 * count));
  EXPECT_EQ(common[0], 2 * count / 3);
  EXPECT_EQ(common[1], common[0]);
}

} // namespace
} // namespace hydrascope
