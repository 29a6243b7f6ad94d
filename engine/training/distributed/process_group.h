// Several processes, on one machine or on many, that train or measure together, with sums over all of them by
// Gloo (through LibTorch's c10d) over TCP, or by NCCL from GPU to GPU. Plain header.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/measure/data_share.h"

namespace at {
class Tensor;
}

namespace hydrascope::training {

struct NcclFunctions;

// The rank of this process among all, and where they meet.
struct WorldInfo {
  int rank = 0, size = 1;
  int local_rank = 0;  // among the processes of this machine; 0 if the launcher does not say
  std::string address; // where rank 0 (or torchrun) listens; empty for one process
  int port = 0;
  bool host_listens = false; // the launcher listens on the port; rank 0 must not
  std::string attempt;       // torchrun's count of restarts, empty elsewhere

  bool alone() const { return size == 1; }
};

// Reads the launcher's variables, the innermost launcher's first: RANK and WORLD_SIZE (torchrun, or set by
// hand), Open MPI's OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE (MPICH, Intel MPI), Slurm's
// SLURM_PROCID and SLURM_STEP_NUM_TASKS, or SLURM_NTASKS if MASTER_ADDR is set (a batch script has
// SLURM_NTASKS without being one of several processes). Several processes need MASTER_ADDR and MASTER_PORT.
// Without variables: one process. Throws UsageError naming the variable, its value and a remedy.
WorldInfo world_from_environment();

// A device as on the command line for one of several processes: "cuda" becomes the GPU of the process's
// number on its machine, modulo the GPUs there. Others as they are.
std::string device_of_process(const std::string& device, const WorldInfo& world);

struct ProcessGroupOptions {
  // Limit until all processes are connected. They start together, but may load the program from one disk.
  std::chrono::milliseconds connect = std::chrono::seconds(60);
  // Limit until all have made a call. It must exceed what one rank does while the others wait (rank 0 writes
  // files).
  std::chrono::milliseconds answer = std::chrono::seconds(300);
  // A process of which nothing has been heard for so long, while this one waits in a call of Gloo, is taken
  // to have ended. Most ends are noticed at once, because they close connections; this is for a machine that
  // is lost, and for a call that is not told.
  std::chrono::milliseconds silence = std::chrono::seconds(30);
  // The remedy in the error if a process is missing.
  std::string remedy = "start all again with --resume";
};

// Every process calls the same members in the same order with the same shapes. One group per process, used by
// one thread at a time. With one process nothing is connected and every call returns at once. A process must
// not end while another may still receive from it: the last call should be a sum or barrier(), which needs
// all of them.
//
// If a process is missing, the call and every later one throws Error ("another process has ended or does not
// answer", with the missing ranks and hosts); the process can then only end.
class ProcessGroup {
public:
  // Waits for all processes. Throws Error (missing ranks, a port in use, addresses that do not work).
  explicit ProcessGroup(const WorldInfo& world = {}, const ProcessGroupOptions& options = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  bool alone() const { return world_.alone(); }

  // In place, element by element; every rank has the same bits afterwards. Tensors of any floating or
  // integral type, layout and device, all defined: a rank without a gradient passes zeros. float16 and
  // bfloat16 are summed in float32. Tensors of a device cross to the host and back in one copy each way for
  // up to 16 million numbers, unless the devices are connected.
  void sum(std::vector<at::Tensor>& tensors);
  void sum(std::span<double> values);
  // The minimum of each over the ranks, in place; the maximum is −smallest(−x).
  void smallest(std::span<double> values);
  // Copies the tensors of `root` to all others, in place.
  void broadcast(std::vector<at::Tensor>& tensors, int root = 0);
  // Returns after all have called it.
  void barrier();

  // Connects the ranks' GPUs, if all have one and NCCL: from then on sums of tensors there go from GPU to
  // GPU. Every rank calls it, with a tensor of the device that it computes on. Returns how sums of such
  // tensors go, for the user: "NCCL", or "Gloo" and why not by NCCL.
  std::string connect_devices_of(const at::Tensor& tensor);
  // The same with NCCL's functions of any device; null where this rank has none.
  std::string connect_devices_of(const at::Tensor& tensor, const NcclFunctions* functions);

  // The rank and reductions, for code that knows nothing of processes. The group must outlive it.
  DataShare share();

private:
  class Connection;

  WorldInfo world_;
  std::unique_ptr<Connection> connection_; // null with one process
};

} // namespace hydrascope::training
