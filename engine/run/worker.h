// The worker of interactive runs: a thread that runs the newest request of each lane. The frame loop collects
// the results. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/devices.h"
#include "engine/run/run.h"
#include "engine/run/runner.h"

namespace hydrascope {

// The outcome of one request: a result or a message for the user.
struct WorkerDelivery {
  std::uint64_t generation = 0;
  int lane = 0; // the request's side: 0 = A, 1 = B
  std::shared_ptr<const RunResult> result;
  std::string error; // empty if there is a result
};

class Worker {
public:
  // The thread first calls list_devices(), then runs requests. `wake` is called on it after that and after
  // each delivery, so that an idle frame loop continues; may be empty. The runner is used on that thread
  // alone.
  explicit Worker(std::function<void()> wake = {},
                  std::unique_ptr<Runner> runner = std::make_unique<Runner>());
  ~Worker(); // requests a stop and joins
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues the request. A waiting request of the same lane is dropped and a running one stopped at its next
  // block. A request with an older generation than the lane's newest is ignored.
  void submit(RunRequest request, int lane = 0);

  // Drops the lane's waiting request, stops the running one at its next block, and discards what was not
  // drained yet.
  void cancel(int lane = 0);

  // Calls Runner::release() once no request waits.
  void release();
  bool releasing() const; // it has not yet

  // The deliveries since the last call, without those older than the newest request of their lane. Called
  // once per frame.
  std::vector<WorkerDelivery> drain();

  // The devices that were found at the start; null until then.
  std::shared_ptr<const DeviceList> devices() const;

  bool busy(int lane = 0) const;
  float progress(int lane = 0) const; // share of the blocks done, 0…1

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope
