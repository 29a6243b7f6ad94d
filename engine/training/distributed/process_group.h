// Several processes, on one machine or many, that train or measure one thing together: sums over all of them
// by Gloo (through LibTorch's c10d) over TCP. Plain header.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/measure/data_share.h"
#include "engine/training/distributed/world.h"

namespace at {
class Tensor;
}

namespace hydrascope::training {

struct ProcessGroupOptions {
  // Until all processes have come. They start together, but load the program from one disk.
  std::chrono::milliseconds connect = std::chrono::seconds(60);
  // Until all have joined in one call. A process that ends is noticed at once; this is for a machine that
  // vanishes without a word, and must be longer than what one rank does while the others wait (rank 0 writes
  // files).
  std::chrono::milliseconds answer = std::chrono::seconds(300);
  // What the user is told to do once a process is missing.
  std::string remedy = "start all again with --resume";
};

// Every process calls the same members in the same order with the same shapes. One group a process, used by
// one thread at a time. Alone nothing is opened and every call returns at once. A process must not end while
// another may still wait for what it sent: let the last call be a sum or barrier(), of which all need all.
//
// Once a process is missing, the call throws Error ("another process has ended or does not answer", with the
// ranks and hosts that no longer do), and so does every later one: what is left to do is to end.
class ProcessGroup {
public:
  // Waits for all processes. Throws Error: who did not come, a port in use, addresses that cannot work.
  explicit ProcessGroup(const WorldInfo& world = {}, const ProcessGroupOptions& options = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  bool alone() const { return world_.alone(); }

  // In place, element by element; every rank has the very same bits afterwards. Of any floating or integral
  // type and layout, all defined: a gradient that a rank has none of is given as zeros. Sums of float16 and
  // bfloat16 are taken in float32.
  void sum(std::vector<at::Tensor>& tensors);
  void sum(std::span<double> values);
  // The smallest of each over the ranks, in place; the largest is −smallest(−x).
  void smallest(std::span<double> values);
  // What `root` has, to all others, in place.
  void broadcast(std::vector<at::Tensor>& tensors, int root = 0);
  // Returns when all have called it.
  void barrier();

  // For what takes its part of the data without knowing of processes. The group must outlive it.
  DataShare share();

private:
  class Connection;

  WorldInfo world_;
  std::unique_ptr<Connection> connection_; // none alone
};

} // namespace hydrascope::training
