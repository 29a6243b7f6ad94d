// Work on a thread of its own, which can be paused and publishes its results one by one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/error_message.h"

namespace hydrascope::app {

// How many jobs' work has not ended, those that were replaced included: they may hold models and hidden
// states.
inline std::atomic<int>& background_jobs_at_work() {
  static std::atomic<int> count = 0;
  return count;
}

// What take() returns.
template <typename Result>
struct JobUpdate {
  std::vector<Result> results; // since the last call
  bool done = false;           // nothing follows
  std::string problem; // if done: the message of the exception that ended the work; empty if there was none
};

template <typename Result>
class BackgroundJob {
public:
  // Runs on the thread until it returns or throws. Exceptions other than Cancelled become JobUpdate::problem.
  using Work = std::function<void(BackgroundJob& job, const std::stop_token& stop)>;

  // Starts the thread. `wake`, if not empty, is called from it at the end of the work. `paused`: until the
  // first call of pause(false).
  BackgroundJob(Work work, std::function<void()> wake, bool paused = false)
      : wake_(std::move(wake)), paused_(paused) {
    ++background_jobs_at_work();
    thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) mutable {
      std::string problem = run(work, stop);
      work = {}; // what it holds is freed now, not when the owner looks
      {
        const std::scoped_lock lock(mutex_);
        problem_ = std::move(problem);
        done_ = true;
      }
      --background_jobs_at_work(); // after done_, which is read once this is 0
      if (wake_ && !retired_) wake_();
    });
  }

  // ---- For the owner's thread. Destruction stops the work and waits for it: within a frame only if done(),
  // else see JobSlot.
  void pause(bool paused) {
    {
      const std::scoped_lock lock(mutex_);
      if (paused && !paused_) ++pauses_;
      paused_ = paused;
    }
    changed_.notify_all();
  }
  bool waiting() { // whether the work stands still because of pause()
    const std::scoped_lock lock(mutex_);
    return waits_ && paused_;
  }
  JobUpdate<Result> take() {
    const std::scoped_lock lock(mutex_);
    return {std::exchange(results_, {}), done_, problem_};
  }
  bool done() const { return done_; }
  void stop() { thread_.request_stop(); }
  // Stops it. Its end does not wake the frame loop, since nothing of it is shown.
  void retire() {
    retired_ = true;
    stop();
  }
  void wait() { thread_.join(); } // for the end of the work; not within a frame

  // ---- For the work
  void publish(Result result) {
    const std::scoped_lock lock(mutex_);
    results_.push_back(std::move(result));
  }
  bool paused() {
    const std::scoped_lock lock(mutex_);
    return paused_;
  }
  // Returns once the job is not paused, or is to stop. The result is the number of pauses so far.
  std::uint64_t wait_while_paused(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    waits_ = true;
    changed_.wait(lock, stop, [this] { return !paused_; });
    waits_ = false;
    return pauses_;
  }

private:
  // The message of the exception that ended the work; empty if there was none.
  std::string run(const Work& work, const std::stop_token& stop) {
    try {
      work(*this, stop);
    } catch (const Cancelled&) { // NOLINT(bugprone-empty-catch): stopped on request
    } catch (const std::exception& error) {
      return error_message(error);
    }
    return {};
  }

  std::function<void()> wake_;
  std::atomic<bool> done_ = false, retired_ = false;
  std::mutex mutex_; // guards the following
  std::condition_variable_any changed_;
  bool paused_ = false, waits_ = false;
  std::uint64_t pauses_ = 0;
  std::vector<Result> results_;
  std::string problem_;
  std::jthread thread_; // last member: joined before the others are destroyed
};

// Owns at most one current job. A replaced or retired job is requested to stop, and its thread is joined
// only once it has ended, so that no frame waits for it.
template <typename Result>
class JobSlot {
public:
  BackgroundJob<Result>* job() const { return job_.get(); } // null if there is none
  void start(typename BackgroundJob<Result>::Work work, std::function<void()> wake) {
    retire();
    job_ = std::make_unique<BackgroundJob<Result>>(std::move(work), std::move(wake));
  }
  void retire() {
    std::erase_if(retired_, [](const auto& job) { return job->done(); });
    if (!job_) return;
    job_->retire();
    retired_.push_back(std::move(job_));
  }
  void finish() { job_.reset(); } // of a job that is done

private:
  std::unique_ptr<BackgroundJob<Result>> job_;
  std::vector<std::unique_ptr<BackgroundJob<Result>>> retired_;
};

} // namespace hydrascope::app
