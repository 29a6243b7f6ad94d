#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "app/ui/picture_clipboard.h"
#include "engine/base/process.h"

namespace hydrascope::app {
namespace {

TEST(PictureClipboard, OnWaylandNeedsBothProgramsOfWlClipboard) {
  const std::string before = environment("PATH");
  const auto folder =
      std::filesystem::temp_directory_path() / ("hydrascope-clipboard-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  setenv("PATH", folder.c_str(), 1);
  for (const char* const program : {"wl-copy", "wl-paste"}) {
    EXPECT_NE(picture_clipboard_obstacle(WindowSystem::wayland).find("wl-clipboard"), std::string::npos);
    std::ofstream(folder / program) << "#!/bin/sh\n";
    std::filesystem::permissions(folder / program, std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(picture_clipboard_obstacle(WindowSystem::wayland), "");
  setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(PictureClipboard, NeedsADisplay) {
  EXPECT_EQ(picture_clipboard_obstacle(WindowSystem::none), "there is no display, and so no clipboard");
  EXPECT_EQ(picture_clipboard_obstacle(WindowSystem::x11), "");
}

} // namespace
} // namespace hydrascope::app
