// The interactive lane: a thread that runs the newest request and hands results to the frame loop. Plain
// header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"
#include "engine/run/runner.h"

namespace hydrascope {

// What the worker delivered for one request: a result or a message for the user.
struct WorkerDelivery {
  std::uint64_t generation = 0;
  int lane = 0; // the request's side: 0 = A, 1 = B
  std::shared_ptr<const RunResult> result;
  std::string error; // empty if there is a result
};

class Worker {
public:
  // `wake` is called from the worker's thread when something can be drained (to end an idle wait); may be
  // empty. The runner is used on that thread alone.
  explicit Worker(std::function<void()> wake = {},
                  std::unique_ptr<Runner> runner = std::make_unique<Runner>());
  ~Worker(); // requests stop and joins
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Takes a request by value. A waiting or running request of the same lane with an older generation is
  // dropped or stopped at its next block.
  void submit(RunRequest request, int lane = 0);

  // Makes the lane's waiting and running requests pointless: they are dropped or stopped at their next block,
  // and nothing that was submitted before is delivered any more.
  void cancel(int lane = 0);

  // What was delivered since the last call; stale generations (older than the newest submitted of the lane)
  // are left out. Called once per frame.
  std::vector<WorkerDelivery> drain();

  bool busy(int lane = 0) const;
  float progress(int lane = 0) const; // 0…1 of the blocks

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope
