// The processes' common key-value store (c10d's TCPStore, run by rank 0 or torchrun), through which they
// connect and report failures. Used by process_group.cpp alone.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/training/distributed/process_group.h"

namespace hydrascope::training {

class Rendezvous {
public:
  // Waits until every process has registered. From then on this process ignores SIGPIPE. Throws Error.
  Rendezvous(WorldInfo world, std::chrono::milliseconds limit);

  const WorldInfo& world() const { return world_; }
  c10::intrusive_ptr<c10d::Store> store() const { return store_; }
  // The address of this machine's interface towards rank 0, by which the others connect to this process.
  const std::string& own_address() const { return own_address_; }

  // Call after a failure: reports it to the others and waits a moment for their reports. Returns the ranks
  // that did not report one, as "rank 1 on host-b (process 4711)"; empty if all did. Throws nothing.
  std::string missing_ranks() const;

private:
  struct Process {
    std::string host, id, address;
  };

  void connect(std::chrono::milliseconds limit);
  void wait_for_all(std::chrono::milliseconds limit);
  void check_addresses() const;
  std::string name_of(int rank) const;

  WorldInfo world_;
  std::string own_address_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<Process> processes_; // by rank
};

} // namespace hydrascope::training
