// Names of tensors: Hugging Face's → ours → Hugging Face's again.
#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/hub_names.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

using ::testing::ElementsAreArray;

class HubNames : public testing::TestWithParam<const char*> {};

TEST_P(HubNames, ComeBackAsTheyWere) {
  const std::filesystem::path folder = golden_folder() / GetParam();
  const TensorMap stored = read_tensors(folder / "model.safetensors");
  const TensorMap again = hub_tensors(read_config(folder).family, canonical_tensors(stored));
  std::vector<std::string> names, expected;
  for (const auto& [name, tensor] : again) names.push_back(name);
  for (const auto& [name, tensor] : stored) expected.push_back(name);
  ASSERT_THAT(names, ElementsAreArray(expected));
  for (const auto& [name, tensor] : stored) EXPECT_TRUE(again.at(name).equal(tensor)) << name;
}

INSTANTIATE_TEST_SUITE_P(Models, HubNames,
                         testing::Values("models/bert", "models/bert-mlm", "models/vit", "models/deit",
                                         "models/deit-distilled", "models/dinov2", "decoders/gpt2",
                                         "decoders/llama-linear", "decoders/llama3-tied", "decoders/mistral",
                                         "decoders/qwen2", "decoders/written"),
                         [](const auto& folder) {
                           std::string name = folder.param;
                           std::ranges::replace_if(
                               name, [](const char c) { return c == '/' || c == '-'; }, '_');
                           return name;
                         });

TEST(HubNamesOfAFamily, ThatIsUnknownAreRefused) { EXPECT_THROW(hub_tensors("decoder", {}), Error); }

} // namespace
} // namespace hydrascope::test
