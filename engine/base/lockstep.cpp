#include "engine/base/lockstep.h"

#include <limits>

#include "engine/base/thread_team.h"

namespace hydrascope {
namespace {

constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();

// Returns the counter once it is at least `least`.
std::uint32_t wait_for(const std::atomic<std::uint32_t>& counter, const std::uint32_t least) {
  for (;;) {
    const std::uint32_t now = counter.load(std::memory_order_acquire);
    if (now >= least) return now;
    wait_for_change(counter, now);
  }
}

void set(std::atomic<std::uint32_t>& counter, const std::uint32_t value) {
  counter.store(value, std::memory_order_release);
  counter.notify_one();
}

thread_local LockstepMember* current_member = nullptr;

} // namespace

const Lockstep::Offer* Lockstep::meet(const int side, const Offer& offer) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  const Side& other = sides_.at(static_cast<std::size_t>(1 - side));
  const std::uint32_t before = own.come.load(std::memory_order_relaxed);
  wait_for(other.finished, before); // it may still read the last offer
  own.offer = offer;
  set(own.come, before + 1);
  own.common = wait_for(other.come, before + 1) != gone && other.offer.key == offer.key;
  return own.common ? &other.offer : nullptr;
}

void Lockstep::finish(const int side) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  const std::uint32_t step = own.come.load(std::memory_order_relaxed);
  set(own.finished, step);
  if (own.common) wait_for(sides_.at(static_cast<std::size_t>(1 - side)).finished, step);
}

void Lockstep::leave(const int side) {
  Side& own = sides_.at(static_cast<std::size_t>(side));
  set(own.come, gone);
  set(own.finished, gone);
}

bool Lockstep::left(const int side) const {
  return sides_.at(static_cast<std::size_t>(side)).come.load(std::memory_order_acquire) == gone;
}

LockstepMember::LockstepMember(Lockstep& lockstep, const int side) : lockstep_(&lockstep), side_(side) {
  current_member = this;
}
LockstepMember::~LockstepMember() {
  current_member = nullptr;
  lockstep_->leave(side_);
}
LockstepMember* LockstepMember::current() { return current_member; }

} // namespace hydrascope
