#include "engine/run/worker.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/error_message.h"

namespace hydrascope {

struct Worker::State {
  struct Waiting {
    RunRequest request;
    int lane = 0;
  };
  struct Running {
    std::uint64_t generation = 0;
    int lane = 0;
    std::stop_source stop;
  };
  std::function<void()> wake;
  std::unique_ptr<Runner> runner; // used on `thread` alone

  mutable std::mutex mutex; // guards the members below; not held during a run
  std::condition_variable_any arrived;
  std::deque<Waiting> waiting; // at most one of each lane, oldest first
  std::map<int, std::uint64_t> newest;
  std::optional<Running> running;
  bool release_wanted = false; // once nothing waits
  bool releasing = false;
  std::vector<WorkerDelivery> deliveries;
  std::map<int, float> progress;
  std::shared_ptr<const DeviceList> devices;

  std::jthread thread; // last, so that it is joined before the members it uses are destroyed

  bool stale(const WorkerDelivery& delivery) const { return delivery.generation < newest.at(delivery.lane); }
  void loop(const std::stop_token& stopping);
  void release_memory() const;
  WorkerDelivery run_one(const Waiting& job, const std::stop_token& stop, bool& cancelled);
};

WorkerDelivery Worker::State::run_one(const Waiting& job, const std::stop_token& stop, bool& cancelled) {
  WorkerDelivery delivery;
  delivery.generation = job.request.generation;
  delivery.lane = job.lane;
  try {
    delivery.result = runner->run(job.request, stop, [&](int done, int total) {
      const std::scoped_lock lock(mutex);
      progress[job.lane] = total > 0 ? static_cast<float>(done) / static_cast<float>(total) : 1.0F;
    });
  } catch (const Cancelled&) {
    cancelled = true;
  } catch (const Error& error) {
    delivery.error = error.what();
  } catch (const std::exception& error) {
    delivery.error = error_message(error);
    if (delivery.error == error.what()) delivery.error.insert(0, "internal error: ");
  } catch (...) {
    delivery.error = "internal error: unknown exception";
  }
  return delivery;
}

// A device that has failed has nothing to release; the next run says why.
void Worker::State::release_memory() const {
  try {
    runner->release();
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): see above
  }
}

void Worker::State::loop(const std::stop_token& stopping) {
  auto found = std::make_shared<const DeviceList>(list_devices());
  std::unique_lock lock(mutex);
  devices = std::move(found);
  lock.unlock();
  if (wake) wake();
  lock.lock();
  const auto has_work = [this] { return !waiting.empty() || release_wanted; };
  while (arrived.wait(lock, stopping, has_work), !stopping.stop_requested()) {
    if (waiting.empty()) {
      release_wanted = false;
      releasing = true;
      lock.unlock();
      release_memory();
      lock.lock();
      releasing = false;
      continue;
    }
    const Waiting job = std::move(waiting.front());
    waiting.pop_front();
    running = Running{job.request.generation, job.lane, std::stop_source{}};
    progress[job.lane] = 0;
    const std::stop_token stop = running->stop.get_token();
    lock.unlock();

    bool cancelled = false;
    WorkerDelivery delivery = run_one(job, stop, cancelled);

    lock.lock();
    running.reset();
    // A request that is stopped during its last block still completes.
    const bool deliver = !cancelled && !stop.stop_requested() && !stale(delivery);
    if (deliver) deliveries.push_back(std::move(delivery));
    lock.unlock();
    if (deliver && wake) wake();
    lock.lock();
  }
}

Worker::Worker(std::function<void()> wake, std::unique_ptr<Runner> runner)
    : state_(std::make_unique<State>()) {
  state_->wake = std::move(wake);
  state_->runner = std::move(runner);
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stopping) { state->loop(stopping); });
}

Worker::~Worker() {
  state_->thread.request_stop();
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->running) state_->running->stop.request_stop();
  }
  state_->thread.join();
}

void Worker::submit(RunRequest request, int lane) {
  {
    const std::scoped_lock lock(state_->mutex);
    std::uint64_t& newest = state_->newest[lane];
    if (request.generation < newest) return;
    newest = request.generation;
    std::erase_if(state_->waiting, [&](const State::Waiting& job) { return job.lane == lane; });
    if (state_->running && state_->running->lane == lane) state_->running->stop.request_stop();
    state_->waiting.push_back({std::move(request), lane});
    state_->progress[lane] = 0;
  }
  state_->arrived.notify_one();
}

void Worker::cancel(int lane) {
  const std::scoped_lock lock(state_->mutex);
  std::erase_if(state_->waiting, [&](const State::Waiting& job) { return job.lane == lane; });
  std::erase_if(state_->deliveries, [&](const WorkerDelivery& delivery) { return delivery.lane == lane; });
  if (state_->running && state_->running->lane == lane) state_->running->stop.request_stop();
}

void Worker::release() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->release_wanted = true;
  }
  state_->arrived.notify_one();
}

bool Worker::releasing() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->release_wanted || state_->releasing;
}

std::vector<WorkerDelivery> Worker::drain() {
  std::vector<WorkerDelivery> taken;
  const std::scoped_lock lock(state_->mutex);
  taken.swap(state_->deliveries);
  std::erase_if(taken, [&](const WorkerDelivery& delivery) { return state_->stale(delivery); });
  return taken;
}

std::shared_ptr<const DeviceList> Worker::devices() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->devices;
}

bool Worker::busy(int lane) const {
  const std::scoped_lock lock(state_->mutex);
  const bool runs = state_->running && state_->running->lane == lane;
  return runs || std::any_of(state_->waiting.begin(), state_->waiting.end(),
                             [&](const State::Waiting& job) { return job.lane == lane; });
}

float Worker::progress(int lane) const {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->progress.find(lane);
  return found == state_->progress.end() ? 0.0F : found->second;
}

} // namespace hydrascope
