#include "engine/training/feature_cache.h"

#include <chrono>
#include <filesystem>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <gtest/gtest.h>

#include "engine/training/image_folder.h"
#include "engine/training/prepared_model.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using testing::toy_finetuning;
using testing::ToyFolder;

training::Features features_of(const FinetuneRequest& request, const int layer, const int copies,
                               int* computed) {
  const auto prepared = training::prepare_model(request.settings.model_folder, request.settings.adapters, {},
                                                request.settings.execution, true);
  const auto pictures = training::list_image_folder(request.data, training::class_folders(request.data), 0);
  training::FeatureRequest wanted;
  wanted.layer = layer;
  wanted.image_size = 28;
  wanted.copies = copies;
  return training::cached_features(prepared, pictures, wanted, [&](const TrainingProgress&) { ++*computed; },
                                   {});
}

TEST(FeatureCache, IsFilledOnceAndServesLaterLayers) {
  const ToyFolder folder;
  const FinetuneRequest request = toy_finetuning(folder);
  int computed = 0;
  const auto direct = features_of(request, 2, 2, &computed);
  EXPECT_GT(computed, 0);
  EXPECT_EQ(direct.hidden.sizes(), (std::vector<std::int64_t>{72, 5, 24}));
  computed = 0;
  const auto again = features_of(request, 2, 2, &computed);
  EXPECT_EQ(computed, 0);
  EXPECT_TRUE(again.hidden.equal(direct.hidden));
  EXPECT_FALSE(direct.hidden[0].equal(direct.hidden[1])); // the second copy is another crop

  const auto reference = direct.hidden.clone();
  std::filesystem::remove_all(folder / "cache");
  features_of(request, 1, 2, &computed);
  const auto from_earlier = features_of(request, 2, 2, &computed);
  const double scale = reference.abs().max().item<double>();
  EXPECT_LT((from_earlier.hidden.to(at::kFloat) - reference.to(at::kFloat)).abs().max().item<double>(),
            0.01 * scale);
}

TEST(FeatureCache, IsMadeAgainWhenAPictureChanges) {
  const ToyFolder folder;
  const FinetuneRequest request = toy_finetuning(folder);
  int computed = 0;
  features_of(request, 1, 1, &computed);
  std::filesystem::last_write_time(request.data / "red" / "0.ppm",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  computed = 0;
  features_of(request, 1, 1, &computed);
  EXPECT_GT(computed, 0);
}

} // namespace
} // namespace hydrascope
