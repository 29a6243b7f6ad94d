#include "engine/training/distributed/heartbeat.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>

namespace hydrascope::training {

struct Heartbeat::State {
  using Clock = std::chrono::steady_clock;

  std::mutex mutex; // for all of these
  std::condition_variable changed;
  bool stop = false, stopped = false;
  bool store_is_of_rank_0 = true;
  Clock::time_point store_answered = Clock::now();
  std::vector<Clock::time_point> heard; // by rank
};

namespace {

constexpr std::chrono::milliseconds kBeat{1000};
// A store on another machine answers within this.
constexpr std::chrono::milliseconds kAnswer{2000};

std::string beat_key(const int rank) { return fmt::format("hydrascope/beat/{}", rank); }

// Counts up this rank's number; the numbers of all ranks, none before all have one.
std::vector<std::vector<std::uint8_t>> beat(c10d::Store& store, const std::vector<std::string>& keys,
                                            const std::string& own) {
  store.add(own, 1);
  return store.check(keys) ? store.multiGet(keys) : std::vector<std::vector<std::uint8_t>>{};
}

} // namespace

Heartbeat::Heartbeat(const c10::intrusive_ptr<c10d::Store>& store, const WorldInfo& world)
    : state_(std::make_shared<State>()) {
  state_->store_is_of_rank_0 = !world.host_listens;
  state_->heard.assign(static_cast<std::size_t>(world.size), State::Clock::now());
  std::thread([state = state_, own_store = store, world]() mutable {
    std::vector<std::string> keys;
    for (int rank = 0; rank < world.size; ++rank) keys.push_back(beat_key(rank));
    std::vector<std::vector<std::uint8_t>> last(keys.size());
    std::unique_lock lock(state->mutex);
    while (!state->stop) {
      lock.unlock();
      std::vector<std::vector<std::uint8_t>> beats;
      bool answered = true;
      try {
        beats = beat(*own_store, keys, beat_key(world.rank));
      } catch (const std::exception&) { // the store has ended
        answered = false;
      }
      lock.lock();
      if (answered) state->store_answered = State::Clock::now();
      for (std::size_t rank = 0; rank < beats.size(); ++rank)
        if (beats[rank] != last[rank]) {
          state->heard[rank] = state->store_answered;
          last[rank] = std::move(beats[rank]);
        }
      state->changed.wait_for(lock, kBeat, [&] { return state->stop; });
    }
    lock.unlock();
    own_store.reset(); // before the group's own, or the process may end meanwhile
    lock.lock();
    state->stopped = true;
    state->changed.notify_all();
  }).detach();
}

Heartbeat::~Heartbeat() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kAnswer, [&] { return state_->stopped; });
}

std::vector<int> Heartbeat::silent_for(const std::chrono::milliseconds limit) const {
  const std::scoped_lock lock(state_->mutex);
  const auto now = State::Clock::now();
  if (now - state_->store_answered > limit)
    return state_->store_is_of_rank_0 ? std::vector<int>{0} : std::vector<int>{};
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < state_->heard.size(); ++rank)
    if (now - state_->heard[rank] > limit) silent.push_back(static_cast<int>(rank));
  return silent;
}

} // namespace hydrascope::training
