// Which of how many processes this one is. Plain header.
#pragma once

#include <string>

namespace hydrascope::training {

struct WorldInfo {
  int rank = 0, size = 1;
  std::string address; // where rank 0 (or torchrun) listens; empty alone
  int port = 0;
  bool host_listens = false; // the launcher has opened the port already, rank 0 must not
  std::string attempt;       // torchrun's count of restarts, empty elsewhere

  bool alone() const { return size == 1; }
};

// What the launcher says, the innermost one first: RANK and WORLD_SIZE (torchrun, or set by hand), Open MPI's
// OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE (MPICH, Intel MPI), Slurm's SLURM_PROCID and
// SLURM_STEP_NUM_TASKS, or SLURM_NTASKS where MASTER_ADDR asks for several processes: a batch script has that
// number, too, without being one of several. Together with MASTER_ADDR and MASTER_PORT, which one process
// does not need. Nothing set: alone. Throws UsageError naming the variable, its value and what to do.
WorldInfo world_from_environment();

} // namespace hydrascope::training
