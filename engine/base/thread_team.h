// Threads for short parallel regions that follow each other within microseconds, as the products of a
// decoder's token do. OpenMP's threads wait either awake all the time, and take a core from the window, or
// asleep, which costs each region about as much as its arithmetic. These wait awake for a fraction of a
// millisecond after a region, then asleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace hydrascope {

// Returns once `counter` is no longer `old`; waits awake for a while, then asleep. Who changes the counter
// calls its notify_one() or notify_all().
void wait_for_change(const std::atomic<std::uint32_t>& counter, std::uint32_t old);

// Used by one thread at a time, which also does a part.
class ThreadTeam {
public:
  using Work = std::function<void(std::int64_t begin, std::int64_t end)>;

  // `threads` ≥ 1: the calling thread and threads − 1 helpers, which start here. Throws std::system_error.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls work for equal parts of [0,count), each of at least `grain` ≥ 1 where there are several, at the
  // same time, and returns when all are done. Throws what a part threw. Not from within `work`.
  void run(std::int64_t count, std::int64_t grain, const Work& work);

private:
  struct Part {
    const Work* work = nullptr; // null: the helper ends
    std::int64_t begin = 0, end = 0;
  };
  // On a cache line of its own: another helper's region does not disturb it.
  struct alignas(64) Helper {
    std::atomic<std::uint32_t> given = 0, done = 0; // parts
    Part part;
    std::exception_ptr problem;
    std::thread thread;
  };
  static void help(Helper& helper);
  void end();
  static void give(Helper& helper, const Part& part);

  std::vector<std::unique_ptr<Helper>> helpers_;
};

// ThreadTeam::run() by the calling thread's team of `threads` ≥ 1, which starts where several have a part, or
// in start_team(), and ends with the thread. Throws as the team does.
void run_on_team(int threads, std::int64_t count, std::int64_t grain, const ThreadTeam::Work& work);
// After this run_on_team() with as many threads throws only what a part throws.
void start_team(int threads);

} // namespace hydrascope
