// The first run finds its model loaded.
#include "app/jobs/preload.h"

#include <atomic>

#include <gmock/gmock.h>

#include "app/jobs/requests.h"
#include "engine/base/error.h"
#include "engine/run/runner.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

// Counts what it loads and how often it lists the bundled adapters, of which it has none.
struct CountedModels {
  std::atomic<int> loads = 0, lists = 0;
  std::shared_ptr<ModelStore> store = make_model_store({
      .load =
          [this](const std::filesystem::path& folder) {
            ++loads;
            return installed_models().load(folder);
          },
      .bundled =
          [this] {
            ++lists;
            return std::vector<AdapterInfo>();
          },
  });
};

TEST(PreloadTest, RunFindsAdaptersAndModel) {
  CountedModels models;
  const Document document = small_document();
  {
    Preload preload(models.store);
    preload.load_model(document);
  }
  EXPECT_EQ(models.loads, 1);
  EXPECT_EQ(models.lists, 1);
  Runner runner(0, models.store);
  EXPECT_FALSE(runner.run(make_run_request(document, Side::a, {}, 0))->layers.empty());
  EXPECT_EQ(models.loads, 1);
  EXPECT_EQ(models.lists, 1);
}

TEST(PreloadTest, WithoutAnInputLoadsNoModel) {
  CountedModels models;
  Document document = small_document();
  document.scene().input.reset();
  { Preload(models.store).load_model(document); }
  EXPECT_EQ(models.loads, 0);
}

TEST(PreloadTest, LeavesErrorsToTheRun) {
  std::atomic<int> failures = 0;
  const auto fail = [&] {
    ++failures;
    throw Error("disk", "is gone");
  };
  const auto models = make_model_store({.load = [&](const auto&) -> std::shared_ptr<const Model> {
                                          fail();
                                          return nullptr;
                                        },
                                        .bundled =
                                            [&] {
                                              fail();
                                              return std::vector<AdapterInfo>();
                                            }});
  const Document document = small_document();
  {
    Preload preload(models);
    preload.load_model(document);
  }
  EXPECT_EQ(failures, 2);
  EXPECT_THROW(Runner(0, models).run(make_run_request(document, Side::a, {}, 0)), Error);
}

} // namespace
} // namespace hydrascope::app::tests
