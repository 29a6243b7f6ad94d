// What torchrun, mpirun and srun put into the environment.
#include "engine/training/distributed/process_group.h"

#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/device.h"
#include "engine/base/error.h"

namespace {

using namespace hydrascope;
using namespace hydrascope::training;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kVariables[] = {"RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "MPI_LOCALRANKID",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_LOCALID",
                                      "SLURM_STEP_NUM_TASKS",
                                      "TORCHELASTIC_USE_AGENT_STORE",
                                      "TORCHELASTIC_RESTART_COUNT"};

// Nothing of the launcher that the tests themselves may run under.
class World : public testing::Test {
protected:
  World() {
    for (const char* const name : kVariables) {
      if (const char* const value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
  }
  ~World() override {
    for (const char* const name : kVariables) {
      unsetenv(name);
      if (before_.contains(name)) setenv(name, before_.at(name).c_str(), 1);
    }
  }

  static WorldInfo in(const std::map<std::string, std::string>& variables) {
    for (const char* const name : kVariables) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    return world_from_environment();
  }

  static std::string complaint(const std::map<std::string, std::string>& variables) {
    try {
      in(variables);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  }

  static std::map<std::string, std::string> two(const std::string& rank, const std::string& size) {
    return {{rank, "1"}, {size, "2"}, {"MASTER_ADDR", "host-a"}, {"MASTER_PORT", "29500"}};
  }

private:
  std::map<std::string, std::string> before_;
};

TEST_F(World, IsOneProcessWithoutALauncher) {
  EXPECT_TRUE(in({}).alone());
  EXPECT_TRUE(in({{"MASTER_ADDR", "host-a"}, {"MASTER_PORT", "1"}}).alone());
  EXPECT_TRUE(in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).alone());
}

TEST_F(World, ComesFromEveryLauncher) {
  for (const auto& [rank, size] :
       std::map<std::string, std::string>{{"RANK", "WORLD_SIZE"},
                                          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {"PMI_RANK", "PMI_SIZE"},
                                          {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    const WorldInfo world = in(two(rank, size));
    EXPECT_EQ(world.rank, 1) << rank;
    EXPECT_EQ(world.size, 2) << rank;
    EXPECT_EQ(world.address, "host-a") << rank;
    EXPECT_EQ(world.port, 29500) << rank;
    EXPECT_FALSE(world.host_listens);
  }
  EXPECT_EQ(in(two("SLURM_PROCID", "SLURM_NTASKS")).size, 2);
}

TEST_F(World, KnowsTheProcessAmongThoseOfItsMachine) {
  for (const auto& [rank, size, local] :
       {std::array{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
        std::array{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        std::array{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
        std::array{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}}) {
    auto variables = two(rank, size);
    EXPECT_EQ(in(variables).local_rank, 0) << local;
    variables[local] = "3";
    EXPECT_EQ(in(variables).local_rank, 3) << local;
    variables[local] = "third";
    EXPECT_THAT(complaint(variables), HasSubstr(local));
  }
  const WorldInfo world = in(two("RANK", "WORLD_SIZE"));
  for (const char* device : {"cpu", "cuda:1"}) EXPECT_EQ(device_of_process(device, world), device);
  EXPECT_EQ(device_of_process("auto", world), automatic_device().device.is_cuda() ? "cuda:0" : "auto");
}

TEST_F(World, KnowsThatTorchrunListensAlready) {
  auto variables = two("RANK", "WORLD_SIZE");
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_TRUE(in(variables).host_listens);
  EXPECT_EQ(in(variables).attempt, "2");
}

TEST_F(World, LeavesSlurmJobsOfOneProcessAlone) {
  EXPECT_TRUE(in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).alone());
  EXPECT_TRUE(in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "4"}}).alone());
  // A batch script of a job that may start four processes, and the login shell of one.
  EXPECT_TRUE(in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).alone());
  EXPECT_TRUE(in({{"SLURM_NTASKS", "4"}, {"MASTER_ADDR", "host-a"}}).alone());
}

TEST_F(World, TakesTheInnermostLauncher) {
  auto variables = two("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  variables.insert({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(in(variables).size, 2);
  variables.insert({{"RANK", "2"}, {"WORLD_SIZE", "3"}});
  EXPECT_EQ(in(variables).rank, 2);
}

TEST_F(World, NamesTheVariableThatIsWrong) {
  const auto with = [](const std::string& name, const std::string& value) {
    auto variables = two("RANK", "WORLD_SIZE");
    variables[name] = value;
    return complaint(variables);
  };
  EXPECT_THAT(with("RANK", "first"),
              AllOf(HasSubstr("RANK=first"), HasSubstr("whole number"), HasSubstr("unset")));
  EXPECT_THAT(with("RANK", "-1"), HasSubstr("RANK=-1"));
  EXPECT_THAT(with("RANK", "2"), AllOf(HasSubstr("RANK=2"), HasSubstr("WORLD_SIZE=2")));
  EXPECT_THAT(with("RANK", ""), AllOf(HasSubstr("RANK: is not set"), HasSubstr("WORLD_SIZE is")));
  EXPECT_THAT(with("WORLD_SIZE", "0"), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(with("WORLD_SIZE", "2x"), HasSubstr("WORLD_SIZE=2x"));
  EXPECT_THAT(with("WORLD_SIZE", "99999999999"), HasSubstr("WORLD_SIZE=99999999999"));
  EXPECT_THAT(with("MASTER_ADDR", ""), AllOf(HasSubstr("MASTER_ADDR: is not set"), HasSubstr("host name")));
  EXPECT_THAT(with("MASTER_PORT", ""), HasSubstr("MASTER_PORT: is not set"));
  EXPECT_THAT(with("MASTER_PORT", "65536"), AllOf(HasSubstr("MASTER_PORT=65536"), HasSubstr("65535")));
  EXPECT_THAT(complaint({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}),
              AllOf(HasSubstr("MASTER_ADDR"), HasSubstr("SLURM_STEP_NUM_TASKS=4")));
}

} // namespace
