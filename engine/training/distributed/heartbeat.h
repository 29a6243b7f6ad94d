// Which processes of a group are alive: each counts up a number of its own in the common store, and watches
// the others'. A process that is killed closes its connections, but a call of Gloo that is under way is not
// always told of it and would wait for its whole limit. Used by process_group.cpp alone.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/training/distributed/process_group.h"

namespace hydrascope::training {

class Heartbeat {
public:
  // Counts and watches on a thread of its own, from now on.
  Heartbeat(const c10::intrusive_ptr<c10d::Store>& store, const WorldInfo& world);
  // Waits for the thread, unless the store does not answer it.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // The ranks of which nothing has been heard for so long. Where the store does not answer: the rank that
  // runs it, if it is in the group.
  std::vector<int> silent_for(std::chrono::milliseconds limit) const;

private:
  struct State;
  std::shared_ptr<State> state_; // the thread's, too
};

} // namespace hydrascope::training
