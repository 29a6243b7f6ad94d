// A folder of pictures is measured in the background.
#include "app/jobs/folder_jobs.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "engine/base/device_error.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

TEST(FolderMeasureTest, EndsWhereTheDeviceDoesNoFurtherWork) {
  std::atomic<int> loads = 0;
  const auto models = make_model_store({.load = [&](const auto&) -> std::shared_ptr<const Model> {
                                          ++loads;
                                          throw BrokenDevice("run", "CUDA error: misaligned address");
                                        },
                                        .bundled = [] { return std::vector<AdapterInfo>(); }});
  Document document = small_document();
  document.folder = std::make_shared<const PictureFolder>(
      list_pictures(test::source_folder() / "tests/golden/images/pictures"));
  ASSERT_GT(document.folder->pictures.size(), 1U);
  Editor editor;
  editor.set_initial(std::move(document));
  FolderMeasure measure({}, models);
  measure.start(editor);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (editor.folder.running && std::chrono::steady_clock::now() < end) {
    measure.update(editor, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(editor.folder.running);
  EXPECT_TRUE(editor.folder.pictures.empty());
  EXPECT_EQ(loads, 1);
  ASSERT_FALSE(editor.messages().empty());
  EXPECT_THAT(editor.messages().back().text, testing::HasSubstr("; restart the program"));
}

} // namespace
} // namespace hydrascope::app::tests
