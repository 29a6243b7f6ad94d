// The runner over real architectures with random weights.
#include <cmath>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/run/quantities/focus_map.h"
#include "engine/run/runner.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

std::filesystem::path golden(const std::string& name) {
  return test::source_folder() / "tests/golden/models" / name;
}

std::shared_ptr<const Image> gradient() {
  Image image{40, 40, std::vector<std::uint8_t>(3 * 40 * 40)};
  for (std::size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<std::uint8_t>((i * 37) % 251);
  return std::make_shared<const Image>(std::move(image));
}

RunRequest request_for(const std::string& model) {
  RunRequest request;
  request.model_folder = golden(model);
  if (model.starts_with("bert"))
    request.input = TextInput{"the cat sat on a mat", std::nullopt};
  else
    request.input = ImageInput{gradient(), "gradient", {}};
  return request;
}

RunRequest with_focus(const std::string& model, const std::string& kernel) {
  RunRequest request = request_for(model);
  request.schedule = ScheduleText{.replace = {"back:1=" + kernel}};
  for (int layer = 0; layer < read_model_info(golden(model)).layers; ++layer)
    request.quantities.add(FocusKey{layer});
  return request;
}

class GoldenModels : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModels, FocusContributionsSumToTheTotal) {
  Runner runner;
  for (const char* kernel : {"softmax", "hydra-cosine", "hedgehog"}) {
    const auto result = runner.run(with_focus(GetParam(), kernel));
    for (const auto& entry : result->quantities.all<FocusKey>()) {
      const FocusResult& focus = *entry.result;
      double sum = 0, magnitude = 0;
      for (const float value : focus.contributions.values) {
        sum += static_cast<double>(value);
        magnitude += std::abs(static_cast<double>(value));
      }
      EXPECT_GT(magnitude, 0) << kernel << ", layer " << focus.layer;
      EXPECT_NEAR(sum, focus.total, 1e-4 * magnitude) << kernel << ", layer " << focus.layer;
    }
  }
}

TEST_P(GoldenModels, CachedPrefixGivesTheSameBits) {
  RunRequest request = request_for(GetParam());
  request.quantities = {LogitsKey{}};
  Runner warm;
  warm.run(request);
  request.schedule = ScheduleText{.replace = {"back:1=hydra-cosine"}};
  const auto continued = warm.run(request);
  Runner cold;
  EXPECT_TRUE(continued->layers.front().cached);
  EXPECT_EQ(test::logits(*continued), test::logits(*cold.run(request)));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModels,
                         testing::Values("vit", "deit", "deit-distilled", "dinov2", "bert"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(GoldenQueries, DefaultIsTheClassTokenOnlyWhereTheTargetReadsNothingElse) {
  Runner runner;
  for (const auto& [model, class_token] : {std::pair{"vit", true},
                                           {"deit", true},
                                           {"deit-distilled", false},
                                           {"dinov2", false},
                                           {"bert", true}}) {
    const auto result = runner.run(with_focus(model, "softmax"));
    EXPECT_EQ(result->query.has_value(), class_token) << model;
    if (class_token) {
      EXPECT_NEAR(result->quantities.all<FocusKey>().back().result->share, 1.0, 1e-6) << model;
    }
  }
  RunRequest pooled = with_focus("vit", "softmax");
  pooled.target = parse_target("norm");
  EXPECT_FALSE(runner.run(pooled)->query.has_value());
}

TEST(GoldenMaskedLm, HasTokenLogitsOnlyWhereAskedAndNoPredictions) {
  Runner runner;
  RunRequest request = request_for("bert-mlm");
  EXPECT_EQ(runner.run(request)->quantities.find(LogitsKey{}), nullptr);
  request.quantities = {LogitsKey{}};
  const auto result = runner.run(request);
  EXPECT_TRUE(result->predictions.empty());
  const Array& logits = test::read(*result, LogitsKey{});
  ASSERT_EQ(logits.shape.size(), 3U);
  EXPECT_EQ(logits.shape[1], static_cast<std::int64_t>(result->tokens.size()));
}

} // namespace
} // namespace hydrascope
