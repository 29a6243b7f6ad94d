// Where processes find one another, before and after they are connected: c10d's TCPStore, names and values
// that rank 0 or torchrun keeps for all. Used by process_group.cpp alone.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/training/distributed/world.h"

namespace hydrascope::training {

class Rendezvous {
public:
  // Waits until every process has come. From then on this process ignores SIGPIPE. Throws Error.
  Rendezvous(WorldInfo world, std::chrono::milliseconds limit);

  const WorldInfo& world() const { return world_; }
  c10::intrusive_ptr<c10d::Store> store() const { return store_; }
  // The address by which this machine reaches rank 0's; what the others shall reach this process by.
  const std::string& own_address() const { return own_address_; }

  // After a call has failed: tells the others so, and waits a moment for them to tell the same. In words, who
  // did not: "rank 1 on host-b (process 4711)"; empty if all did. Throws nothing.
  std::string missing_ranks() const;

private:
  struct Process {
    std::string host, id, address;
  };

  void connect(std::chrono::milliseconds limit);
  void call_the_roll(std::chrono::milliseconds limit);
  void check_addresses() const;
  std::string name_of(int rank) const;

  WorldInfo world_;
  std::string own_address_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<Process> processes_; // by rank
};

} // namespace hydrascope::training
