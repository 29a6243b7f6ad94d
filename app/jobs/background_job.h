// A thread that works through something piece by piece, waits between the pieces while it is paused, and
// hands over what it finds.
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

namespace hydrascope::app {

template <typename Found>
class BackgroundJob {
public:
  // Runs on the thread, until it returns or throws. Cancelled is no problem; everything else is told.
  using Work = std::function<void(BackgroundJob& job, const std::stop_token& stop)>;

  // `wake` is called from the thread when the work has ended; may be empty.
  BackgroundJob(Work work, std::function<void()> wake) : work_(std::move(work)), wake_(std::move(wake)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  // For the window's thread.
  void pause(bool paused) {
    {
      const std::scoped_lock lock(mutex_);
      if (paused && !paused_) ++pauses_;
      paused_ = paused;
    }
    changed_.notify_all();
  }
  bool waiting() { // because it is paused
    const std::scoped_lock lock(mutex_);
    return waits_ && paused_;
  }
  std::vector<Found> take() { // since the last call
    const std::scoped_lock lock(mutex_);
    return std::exchange(found_, {});
  }
  std::string take_problem() { // what ended it before its time
    const std::scoped_lock lock(mutex_);
    return std::exchange(problem_, {});
  }
  bool done() const { return done_; } // to be asked before take(), which would miss what came in between
  void stop() { thread_.request_stop(); }

  // For the work.
  void publish(Found found) {
    const std::scoped_lock lock(mutex_);
    found_.push_back(std::move(found));
  }
  bool paused() {
    const std::scoped_lock lock(mutex_);
    return paused_;
  }
  // Returns when it is not paused (or is to stop), with how often it has been paused so far.
  std::uint64_t wait_while_paused(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    waits_ = true;
    changed_.wait(lock, stop, [this] { return !paused_; });
    waits_ = false;
    return pauses_;
  }

private:
  void run(const std::stop_token& stop) {
    try {
      work_(*this, stop);
    } catch (const Cancelled&) { // NOLINT(bugprone-empty-catch): nobody wants it any more
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      problem_ = error.what();
    }
    done_ = true;
    if (wake_) wake_();
  }

  Work work_;
  std::function<void()> wake_;
  std::atomic<bool> done_ = false;
  std::mutex mutex_; // of what follows
  std::condition_variable_any changed_;
  bool paused_ = false, waits_ = false;
  std::uint64_t pauses_ = 0;
  std::vector<Found> found_;
  std::string problem_;
  std::jthread thread_; // last: joined before what it uses goes
};

// At most one job that counts; those that no longer do are told to stop, and no frame waits for them.
template <typename Found>
class JobSlot {
public:
  BackgroundJob<Found>* job() const { return job_.get(); } // null: there is none
  void start(typename BackgroundJob<Found>::Work work, std::function<void()> wake) {
    retire();
    job_ = std::make_unique<BackgroundJob<Found>>(std::move(work), std::move(wake));
  }
  void retire() {
    std::erase_if(retired_, [](const auto& job) { return job->done(); });
    if (!job_) return;
    job_->stop();
    retired_.push_back(std::move(job_));
  }
  void finish() { job_.reset(); } // of a job that is done

private:
  std::unique_ptr<BackgroundJob<Found>> job_;
  std::vector<std::unique_ptr<BackgroundJob<Found>>> retired_;
};

} // namespace hydrascope::app
