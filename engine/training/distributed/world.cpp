#include "engine/training/distributed/process_group.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/base/error.h"
#include "engine/base/process.h"

namespace hydrascope::training {
namespace {

struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
};

// In a Slurm job, mpirun's processes have both its variables and those of the step that started its daemon.
constexpr std::array kLaunchers{
    Launcher{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    Launcher{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}};

int number(const char* variable, int least, int most) {
  const std::string text = environment(variable);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  const std::string range = most == std::numeric_limits<int>::max()
                                ? fmt::format("a whole number of {} or more", least)
                                : fmt::format("a whole number from {} to {}", least, most);
  throw UsageError(fmt::format("{}={}", variable, text), "must be " + range,
                   "let torchrun, srun or mpirun set it, or unset it to run one process alone");
}

std::optional<Launcher> launcher() {
  for (const Launcher& one : kLaunchers) {
    const bool rank = !environment(one.rank).empty(), size = !environment(one.size).empty();
    if (rank && size) return one;
    if (rank || size)
      throw UsageError(rank ? one.size : one.rank,
                       fmt::format("is not set, while {} is", rank ? one.rank : one.size),
                       "set both, or neither to run one process alone");
  }
  if (environment("SLURM_PROCID").empty()) return std::nullopt;
  if (!environment("SLURM_STEP_NUM_TASKS").empty())
    return Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};
  if (!environment("SLURM_NTASKS").empty() && !environment("MASTER_ADDR").empty())
    return Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};
  return std::nullopt;
}

} // namespace

WorldInfo world_from_environment() {
  constexpr int any = std::numeric_limits<int>::max();
  const std::optional<Launcher> variables = launcher();
  WorldInfo world;
  if (!variables) return world;
  world.size = number(variables->size, 1, any);
  world.rank = number(variables->rank, 0, any);
  if (world.rank >= world.size)
    throw UsageError(fmt::format("{}={}", variables->rank, world.rank),
                     fmt::format("{}={} has no such rank", variables->size, world.size),
                     "number the processes from 0");
  if (world.alone()) return world;
  if (!environment(variables->local_rank).empty()) world.local_rank = number(variables->local_rank, 0, any);
  world.address = environment("MASTER_ADDR");
  for (const char* const needed : {"MASTER_ADDR", "MASTER_PORT"})
    if (environment(needed).empty())
      throw UsageError(
          needed,
          fmt::format("is not set, while {}={} asks for several processes", variables->size, world.size),
          "export it: the host name of the machine of rank 0, and a free port there");
  world.port = number("MASTER_PORT", 1, 65535);
  world.host_listens = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  world.attempt = environment("TORCHELASTIC_RESTART_COUNT");
  return world;
}

std::string device_of_process(const std::string& device, const WorldInfo& world) {
  if (world.alone() || (device != "cuda" && device != "auto")) return device;
  const bool any_gpu = device == "auto" ? automatic_device().device.is_cuda() : cuda_status().available;
  if (!any_gpu) return device;
  return fmt::format("cuda:{}", world.local_rank % at::detail::getCUDAHooks().deviceCount());
}

} // namespace hydrascope::training
