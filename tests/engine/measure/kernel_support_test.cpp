// What is said of a kernel before anything is run: the kernel's own reasons, and its parameters.
#include "engine/measure/kernel_support.h"

#include <gtest/gtest.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/map_source.h"
#include "tests/support/devices.h"

namespace hydrascope {
namespace {

const LayerShape photograph{
    .heads = 6, .head_width = 64, .tokens = 257, .prefix_tokens = 1, .rows = 16, .columns = 16};
const LayerShape sentence{.heads = 12, .head_width = 32, .tokens = 15};

bool says(const KernelSpec& kernel, const LayerShape& shape, const char* words) {
  return why_unsupported(kernel, shape).find(words) != std::string::npos;
}

TEST(KernelSupportTest, EveryKernelRunsByDefault) {
  for (const KernelInfo& info : kernel_infos()) {
    EXPECT_EQ(why_unsupported({info.name, {}}, photograph), "") << info.name;
    EXPECT_EQ(why_unsupported({info.name, {}}, sentence), "") << info.name;
  }
}

TEST(KernelSupportTest, SaysWhatTheKernelSays) {
  EXPECT_TRUE(says({"linear-cosine", {{"heads", "5"}}}, photograph, "heads=5 does not divide"));
  EXPECT_TRUE(says({"softmax", {{"heads", "7"}}}, sentence, "heads=7 does not divide"));
  EXPECT_TRUE(says({"cosformer", {{"m", "64"}}}, photograph, "257 tokens are more than m=64"));
  EXPECT_TRUE(says({"performer", {{"features", "many"}}}, photograph, "features"));
  EXPECT_TRUE(says({"no-such-kernel", {}}, photograph, "no-such-kernel"));
  LayerShape odd = photograph;
  odd.tokens = 200;
  EXPECT_TRUE(says({"local-window", {}}, odd, "200 tokens are not 1 prefix tokens and 16 × 16 patches"));
}

TEST(KernelSupportTest, SaysWhatTheDeviceCannot) {
  LayerShape elsewhere = photograph;
  elsewhere.device = "cuda";
  EXPECT_EQ(why_unsupported({"softmax", {}}, elsewhere).empty(), cuda_status().available);
  elsewhere.device = test::accelerator().str();
  EXPECT_EQ(why_unsupported({"softmax", {}}, elsewhere), "");
  elsewhere.device = "quantum";
  EXPECT_TRUE(says({"softmax", {}}, elsewhere, "there is no device"));
  LayerShape half = photograph;
  half.device = "cpu";
  half.dtype = "float16";
  EXPECT_TRUE(says({"elu", {}}, half, "the CPU computes in float32 or bfloat16"));
  half.dtype = "bfloat16";
  EXPECT_EQ(why_unsupported({"elu", {}}, half), "");
}

TEST(KernelSupportTest, CountsProducts) {
  EXPECT_EQ(attention_products({"softmax", {}}, sentence), 2.0 * 15 * 15 * 384);
  EXPECT_EQ(attention_products({"hydra-cosine", {}}, sentence), 2.0 * 15 * 384);
  EXPECT_EQ(attention_products({"softmax", {{"heads", "5"}}}, sentence), 0);
}

TEST(KernelSupportTest, Divisors) {
  EXPECT_EQ(divisors_of(12), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 12}));
}

// The table that commands and window read is what the kernels take.
TEST(ParameterInfoTest, EveryValueThatIsOfferedIsTaken) {
  for (const KernelInfo& info : kernel_infos()) {
    for (const ParameterInfo& parameter : info.parameters) {
      const std::string where = info.name + ":" + parameter.name;
      EXPECT_FALSE(parameter.meaning.empty()) << where;
      EXPECT_FALSE(parameter.initial.empty()) << where;
      std::vector<std::string> values = parameter.choices;
      if (parameter.kind == ParameterInfo::Kind::flag) values = {"0", "1"};
      if (parameter.kind == ParameterInfo::Kind::source)
        values = {kernel_of_source("typed", bundled_map("elu")).parameters.at("map")};
      for (const LayerShape& shape : {photograph, sentence}) {
        if (parameter.range) {
          const ParameterRange range = parameter.range(shape);
          EXPECT_LE(range.least, range.most) << where;
          values = {std::to_string(range.least), std::to_string(range.most), std::to_string(range.initial)};
        }
        ASSERT_FALSE(values.empty()) << where;
        for (const std::string& value : values)
          EXPECT_EQ(why_unsupported({info.name, {{parameter.name, value}}}, shape), "") << where << value;
      }
    }
  }
}

// Of wide heads, too, whose usual number of features is large.
TEST(ParameterInfoTest, NoMoreFeaturesAreOfferedThanAreTaken) {
  const auto range = kernel_info("performer").parameter("features")->range;
  EXPECT_EQ(range({.head_width = 4096}).most, 65'536);
  EXPECT_EQ(range(photograph).most, 4 * range(photograph).initial);
}

TEST(ParameterInfoTest, InitialValueIsWhatLeavingItOutMeans) {
  const auto initial = [](const char* kernel, const char* parameter) {
    return kernel_info(kernel).parameter(parameter)->range(photograph).initial;
  };
  EXPECT_EQ(initial("linear-cosine", "heads"), 6);
  EXPECT_EQ(initial("local-window", "w"), 14);
  EXPECT_EQ(initial("cosformer", "m"), 257);
  EXPECT_EQ(initial("performer", "features"),
            make_kernel({"performer", {}})->initial_parameters({6, 64}).at("omega").size(0));
}

} // namespace
} // namespace hydrascope
