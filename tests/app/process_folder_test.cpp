// Folders that processes keep while they run: those of killed processes are removed, others' stay.
#include "app/jobs/process_folder.h"

#include <csignal>
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

namespace fs = std::filesystem;

std::size_t folders_in(const fs::path& parent) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(parent), fs::directory_iterator()));
}

TEST(ProcessFolder, ThatOfAKilledProcessIsRemovedByTheNext) {
  const ScratchFolder scratch;
  const fs::path parent = scratch / "training";
  const pid_t child = fork();
  if (child == 0) {
    const ProcessFolder folder(parent);
    write_file_atomically(folder.path() / "it.live.safetensors", "an adapter");
    std::raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_EQ(folders_in(parent), 1U);
  {
    const ProcessFolder first(parent);
    EXPECT_EQ(folders_in(parent), 1U) << "the left one is gone";
    const ProcessFolder second(parent);
    EXPECT_NE(first.path(), second.path());
    EXPECT_EQ(folders_in(parent), 2U) << "the first is in use";
  }
  EXPECT_EQ(folders_in(parent), 0U);
}

} // namespace
} // namespace hydrascope::app::tests
