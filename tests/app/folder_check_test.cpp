// The predictions for a folder of pictures, by which the wrong ones come first.
#include "app/jobs/folder_jobs.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

namespace fs = std::filesystem;
using Verdict = PictureCheck::Verdict;

class FolderCheckTest : public ::testing::Test {
protected:
  // Two pictures, one of them in a sub-folder named like a class of the adapter.
  FolderCheckTest() {
    const fs::path pictures = test::source_folder() / "tests/golden/images/pictures";
    for (const char* folder : {"red", "blue"}) {
      fs::create_directories(scratch_ / "pictures" / folder);
      fs::copy_file(pictures / "gradient.png", scratch_ / "pictures" / folder / "a.png");
    }
    write_adapter(live_, "red");
    Document document = small_document();
    Scene& scene = document.scene_of(InputKind::image);
    set_model(scene, golden_model("vit"), read_model_info(golden_model("vit")));
    scene.schedules[0].layers.assign(2, {.name = "exp-t1", .parameters = {}});
    scene.adapters = {.automatic = false, .files = {live_}};
    document.folder = std::make_shared<const PictureFolder>(list_pictures(scratch_ / "pictures"));
    document.wrong_first = true;
    editor_.set_initial(document);
  }

  // The adapter with this class, of three letters, in the place of "red": what it is for a picture of a
  // sub-folder depends on its version.
  void write_adapter(const fs::path& file, const std::string& name) const {
    std::string bytes =
        read_text_file(test::source_folder() / "tests/golden/adapters/vit-exp-t1.safetensors");
    const std::size_t at = bytes.find("red\\\"");
    ASSERT_NE(at, std::string::npos);
    write_file_atomically(file, bytes.replace(at, name.size(), name));
  }

  void update() {
    check_.update(editor_, /*interactive_run=*/false, live_, edition_);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void start() {
    started_ = std::chrono::steady_clock::now();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    do update();
    while (!checks().running && std::chrono::steady_clock::now() < end);
    ASSERT_TRUE(checks().running);
  }
  // Also checks what a user sees until all pictures are predicted again: `shown` for the one in "red".
  void finish(const std::optional<Verdict> shown = {}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (checks().running && std::chrono::steady_clock::now() < end) {
      if (shown) {
        EXPECT_EQ(checks().found.size(), 2U);
        EXPECT_EQ(of_red(), *shown);
      }
      update();
    }
    ASSERT_FALSE(checks().running);
    pass_ = std::chrono::steady_clock::now() - started_;
  }
  // For longer than the training has before the next pass.
  void expect_rest() {
    const auto end = std::chrono::steady_clock::now() + 2 * pass_;
    while (std::chrono::steady_clock::now() < end) {
      update();
      ASSERT_FALSE(checks().running);
    }
  }
  const PictureChecks& checks() const { return editor_.checks; }
  Verdict of_red() const { return checks().found.at(scratch_ / "pictures/red/a.png").verdict; }

  ScratchFolder scratch_;
  fs::path live_ = scratch_ / "live.safetensors";
  std::uint64_t edition_ = 1;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::duration pass_{}; // at least what the last one took
  Editor editor_;
  FolderCheck check_{{}, make_model_store()};
};

TEST_F(FolderCheckTest, KeepsTheOrderUntilAllArePredictedAgain) {
  start();
  finish();
  const Verdict known = of_red();
  EXPECT_NE(known, Verdict::unknown);
  EXPECT_EQ(checks().wrong + checks().right, 2U);

  write_adapter(live_, "tan"); // which is no sub-folder
  edition_ = 2;
  start();
  EXPECT_TRUE(checks().renews);
  finish(known);
  EXPECT_EQ(of_red(), Verdict::unknown);
  EXPECT_EQ(checks().wrong + checks().right, 1U);
  expect_rest(); // until there are newer ones

  // The end of the training: another file, and it is no longer live.
  const fs::path written = scratch_ / "written.safetensors";
  write_adapter(written, "red");
  editor_.change("Trained",
                 [&](Document& document) { document.scene_of(InputKind::image).adapters.files = {written}; });
  live_.clear();
  start();
  finish(Verdict::unknown);
  EXPECT_EQ(of_red(), known);

  // Other kernels: nothing of the last ones stays.
  editor_.change("Softmax", [](Document& document) {
    document.scene_of(InputKind::image).schedules[0].layers.assign(2, {});
    document.scene_of(InputKind::image).adapters = {};
  });
  start();
  EXPECT_TRUE(checks().found.empty());
  EXPECT_FALSE(checks().renews);
}

TEST_F(FolderCheckTest, TriesAgainAfterNewerWeightsHaveFailed) {
  start();
  finish();
  const Verdict known = of_red();
  write_file_atomically(live_, "no adapter");
  edition_ = 2;
  start();
  finish(known);
  EXPECT_TRUE(checks().failed);
  EXPECT_TRUE(checks().renews); // what is shown is of earlier weights
  EXPECT_EQ(of_red(), known);
  expect_rest();

  // Switched off and on again.
  write_adapter(live_, "tan");
  const auto show = [&](const bool wrong_first) {
    editor_.change("Order", [&](Document& document) { document.wrong_first = wrong_first; });
  };
  show(false);
  update();
  show(true);
  start();
  finish(known);
  EXPECT_FALSE(checks().failed);
  EXPECT_FALSE(checks().renews);
  EXPECT_EQ(of_red(), Verdict::unknown);

  // By newer weights.
  write_file_atomically(live_, "no adapter");
  edition_ = 3;
  start();
  finish(Verdict::unknown);
  EXPECT_TRUE(checks().failed);
  write_adapter(live_, "red");
  edition_ = 4;
  start();
  finish(Verdict::unknown);
  EXPECT_FALSE(checks().failed);
  EXPECT_EQ(of_red(), known);
}

TEST_F(FolderCheckTest, WakesTheWindowForNewerWeights) {
  start();
  finish();
  edition_ = 2;
  update();
  if (!checks().running) { // the training's turn is not over yet
    EXPECT_LE(editor_.frame_requests().at, editor_.clock() + std::chrono::duration<double>(pass_).count());
  }
  start();
  finish();
  editor_.training.paused = true;
  edition_ = 3;
  update();
  EXPECT_TRUE(checks().running); // at once
}

} // namespace
} // namespace hydrascope::app::tests
