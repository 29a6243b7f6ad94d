#include "engine/base/thread_team.h"

#include <algorithm>
#include <chrono>

#if defined __x86_64__
  #include <immintrin.h>
#endif

namespace hydrascope {
namespace {

// Longer than what one thread does between two regions of a token.
constexpr std::chrono::microseconds awake(200);

void pause() {
#if defined __x86_64__
  _mm_pause();
#endif
}

void count_up(std::atomic<std::uint32_t>& counter) {
  counter.fetch_add(1, std::memory_order_release);
  counter.notify_one(); // a system call only if the other thread sleeps
}

} // namespace

void wait_for_change(const std::atomic<std::uint32_t>& counter, const std::uint32_t old) {
  const auto until = std::chrono::steady_clock::now() + awake;
  constexpr int reads_per_look_at_the_clock = 64;
  do {
    for (int i = 0; i < reads_per_look_at_the_clock; ++i) {
      if (counter.load(std::memory_order_acquire) != old) return;
      pause();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < until);
  counter.wait(old, std::memory_order_acquire);
}

ThreadTeam::ThreadTeam(const int threads) {
  try {
    for (int i = 1; i < threads; ++i) {
      Helper& helper = *helpers_.emplace_back(std::make_unique<Helper>());
      helper.thread = std::thread([&helper] { help(helper); });
    }
  } catch (...) {
    end();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { end(); }

void ThreadTeam::end() {
  for (const auto& helper : helpers_) give(*helper, {});
  for (const auto& helper : helpers_)
    if (helper->thread.joinable()) helper->thread.join();
}

void ThreadTeam::give(Helper& helper, const Part& part) {
  helper.part = part;
  count_up(helper.given);
}

void ThreadTeam::help(Helper& helper) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for_change(helper.given, seen);
    const Part part = helper.part;
    if (part.work == nullptr) return;
    try {
      (*part.work)(part.begin, part.end);
    } catch (...) {
      helper.problem = std::current_exception();
    }
    count_up(helper.done);
  }
}

void ThreadTeam::run(const std::int64_t count, const std::int64_t grain, const Work& work) {
  const std::int64_t parts = std::clamp<std::int64_t>(count / grain, 1, threads());
  const auto bound = [&](const std::int64_t part) { return count * part / parts; };
  const auto helpers = static_cast<std::size_t>(parts - 1);
  for (std::size_t i = 0; i < helpers; ++i) {
    const auto part = static_cast<std::int64_t>(i) + 1;
    give(*helpers_[i], {&work, bound(part), bound(part + 1)});
  }
  std::exception_ptr problem;
  try {
    work(0, bound(1));
  } catch (...) {
    problem = std::current_exception();
  }
  for (std::size_t i = 0; i < helpers; ++i) {
    Helper& helper = *helpers_[i];
    wait_for_change(helper.done, helper.given.load(std::memory_order_relaxed) - 1);
    if (helper.problem != nullptr && problem == nullptr) problem = helper.problem;
    helper.problem = nullptr;
  }
  if (problem != nullptr) std::rethrow_exception(problem);
}

namespace {

std::unique_ptr<ThreadTeam>& own_team() {
  thread_local std::unique_ptr<ThreadTeam> team;
  return team;
}

} // namespace

void start_team(const int threads) {
  std::unique_ptr<ThreadTeam>& team = own_team();
  if (threads == 1 || (team != nullptr && team->threads() == threads)) return;
  team.reset();
  team = std::make_unique<ThreadTeam>(threads);
}

void run_on_team(const int threads, const std::int64_t count, const std::int64_t grain,
                 const ThreadTeam::Work& work) {
  if (threads == 1 || count < 2 * grain) return work(0, count);
  start_team(threads);
  own_team()->run(count, grain, work);
}

} // namespace hydrascope
