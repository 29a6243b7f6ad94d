#include "engine/base/lockstep.h"

#include <chrono>
#include <limits>

#include "engine/base/thread_team.h"

namespace hydrascope {
namespace {

constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();

void set(std::atomic<std::uint32_t>& counter, const std::uint32_t value) {
  counter.store(value); // in one order with notify_one()'s look at who waits
  counter.notify_one();
}

const LockstepMember*& current_member() {
  thread_local const LockstepMember* member = nullptr;
  return member;
}

} // namespace

// Returns once the counter is at least `least`.
void Lockstep::wait(Side& own, const std::atomic<std::uint32_t>& counter, const std::uint32_t least) {
  std::uint32_t now = counter.load(std::memory_order_acquire);
  if (now >= least) return;
  const auto start = std::chrono::steady_clock::now();
  for (; now < least; now = counter.load(std::memory_order_acquire)) wait_for_change(counter, now);
  own.ms_waited +=
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

const Lockstep::Offer* Lockstep::meet(const int side, const Offer& offer) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  const Side& other = sides_.at(static_cast<std::size_t>(1 - side));
  const std::uint32_t before = own.reached.load(std::memory_order_relaxed);
  wait(own, other.finished, before); // it may still read the last offer
  own.offer = offer;
  set(own.reached, before + 1);
  wait(own, other.reached, before + 1);
  own.common = other.reached.load(std::memory_order_acquire) != gone && other.offer.key == offer.key;
  return own.common ? &other.offer : nullptr;
}

void Lockstep::finish(const int side) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  const std::uint32_t step = own.reached.load(std::memory_order_relaxed);
  set(own.finished, step);
  if (own.common) wait(own, sides_.at(static_cast<std::size_t>(1 - side)).finished, step);
}

void Lockstep::leave(const int side) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  set(own.reached, gone);
  set(own.finished, gone);
}

bool Lockstep::left(const int side) const {
  return sides_.at(static_cast<std::size_t>(side)).reached.load(std::memory_order_acquire) == gone;
}

LockstepMember::~LockstepMember() {
  if (current_member() == this) current_member() = nullptr;
  lockstep_->leave(side_);
}
void LockstepMember::enter() { current_member() = this; }
const LockstepMember* LockstepMember::current() { return current_member(); }

} // namespace hydrascope
