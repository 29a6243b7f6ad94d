#include "engine/training/distributed/heartbeat.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace hydrascope::training {

struct Heartbeat::State {
  using Clock = std::chrono::steady_clock;

  bool store_is_of_rank_0 = true;
  std::atomic<bool> ended = false;
  std::mutex mutex; // for the two below
  Clock::time_point store_answered = Clock::now();
  std::vector<Clock::time_point> heard; // by rank
};

namespace {

constexpr std::chrono::milliseconds kBeat{500};

std::string beat_key(const int rank) { return fmt::format("hydrascope/beat/{}", rank); }

} // namespace

Heartbeat::Heartbeat(const c10::intrusive_ptr<c10d::Store>& store, const WorldInfo& world)
    : state_(std::make_shared<State>()) {
  state_->store_is_of_rank_0 = !world.host_listens;
  state_->heard.assign(static_cast<std::size_t>(world.size), State::Clock::now());
  std::thread([state = state_, store, world] {
    std::vector<std::int64_t> last(state->heard.size(), -1);
    while (!state->ended) {
      try {
        for (std::size_t rank = 0; rank < last.size(); ++rank) {
          const bool own = static_cast<int>(rank) == world.rank;
          const std::int64_t beat = store->add(beat_key(static_cast<int>(rank)), own ? 1 : 0);
          const std::scoped_lock lock(state->mutex);
          state->store_answered = State::Clock::now();
          if (own || beat != last[rank]) state->heard[rank] = state->store_answered;
          last[rank] = beat;
        }
      } catch (const std::exception&) {
        // The store has ended: silent_for() tells by the time of its last answer.
      }
      std::this_thread::sleep_for(kBeat);
    }
  }).detach();
}

Heartbeat::~Heartbeat() { state_->ended = true; }

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
