#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::StartsWith;

std::string usage_message(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<std::string> texts(const std::vector<KernelSpec>& specs) {
  std::vector<std::string> all;
  for (const KernelSpec& spec : specs) all.push_back(spec.text());
  return all;
}

TEST(KernelSpec, NameAndParameters) {
  EXPECT_EQ(parse_kernel_spec("softmax").text(), "softmax");
  const KernelSpec spec = parse_kernel_spec(" hedgehog : shared=1 , bias=0 ");
  EXPECT_EQ(spec.name, "hedgehog");
  EXPECT_EQ(spec.text(), "hedgehog:bias=0,shared=1");
  EXPECT_EQ(parse_kernel_spec(spec.text()), spec);
}

TEST(KernelSpec, EveryKernelIsFoundMadeAndDescribed) {
  std::set<std::string> seen;
  for (const KernelInfo& info : kernel_infos()) {
    EXPECT_TRUE(seen.insert(info.name).second) << info.name << " is registered twice";
    EXPECT_EQ(&kernel_info(info.name), &kernel_info(parse_kernel_spec(info.name).name));
    const std::unique_ptr<Kernel> kernel = make_kernel({info.name, {}});
    EXPECT_EQ(kernel->info().name, info.name);
    for (const std::string* text : {&info.definition, &info.complexity, &info.feature_width, &info.source})
      EXPECT_FALSE(text->empty()) << info.name;
    EXPECT_THAT(info.devices, testing::Contains("cpu"));
    EXPECT_EQ(kernel->initial_parameters({2, 4}).size() > kernel->fixed_parameters().size(), info.trainable)
        << info.name;
  }
}

TEST(KernelSpec, AFormOfHedgehogsSoftmaxIsDescribedAsItIs) {
  const auto info = [](const char* text) { return kernel_info(parse_kernel_spec(text)); };
  const KernelInfo two = info("hedgehog-softmax:shared=1"), one = info("hedgehog-softmax:form=eq5"),
                   joint = info("hedgehog-softmax:form=joint");
  EXPECT_EQ(two.feature_width, "2d");
  EXPECT_EQ(two.definition, kernel_info("hedgehog-softmax").definition);
  EXPECT_EQ(one.feature_width, "d");
  EXPECT_THAT(one.definition, HasSubstr("φ(x) = softmax y"));
  EXPECT_EQ(joint.feature_width, "2d");
  EXPECT_THAT(joint.definition, HasSubstr("softmax [2y, −2y]"));
  EXPECT_TRUE(one.trainable && one.normalised && joint.normalised);
}

TEST(KernelSpec, AnUnknownNameGetsTheNearestAndTheList) {
  EXPECT_THAT(
      usage_message([] { parse_kernel_spec("hydra-cosin", "--replace"); }),
      AllOf(StartsWith("--replace: there is no kernel \"hydra-cosin\""),
            HasSubstr("the nearest name is hydra-cosine"), HasSubstr("softmax, sdpa, flash, local-window")));
  EXPECT_THAT(usage_message([] { kernel_info("edgehog"); }), HasSubstr("the nearest name is hedgehog"));
  EXPECT_THAT(usage_message([] {
                make_kernel({"hedgehogs", {}});
              }),
              HasSubstr("the nearest name is hedgehog"));
  EXPECT_THAT(usage_message([] { parse_kernel_spec(""); }), HasSubstr("no kernel is named"));
}

TEST(KernelSpec, ParametersAreChecked) {
  const auto message = [](std::string_view text) { return usage_message([&] { parse_kernel_spec(text); }); };
  EXPECT_THAT(message("softmax:seed=3"),
              AllOf(HasSubstr("softmax has no parameter \"seed\""), HasSubstr("heads")));
  EXPECT_THAT(message("elu:heads=3"), HasSubstr("elu takes none"));
  EXPECT_THAT(message("softmax:heads=0"), HasSubstr("heads"));
  EXPECT_THAT(message("softmax:heads=2.5"), HasSubstr("\"2.5\""));
  EXPECT_THAT(message("softmax:heads=99999999999"), HasSubstr("heads"));
  EXPECT_THAT(message("performer:features=65537"),
              HasSubstr("\"65537\", not a whole number from 1 to 65536"));
  EXPECT_EQ(parse_kernel_spec("performer:features=65536").text(), "performer:features=65536");
  EXPECT_THAT(message("softmax:heads"), HasSubstr("name=value"));
  EXPECT_THAT(message("softmax:"), HasSubstr("name=value"));
  EXPECT_THAT(message("softmax:heads=2,heads=4"), HasSubstr("given twice"));
  EXPECT_THAT(message("hedgehog:shared=yes"), HasSubstr("shared=0 or shared=1"));
}

TEST(KernelList, AnItemWithAnEqualSignContinuesTheOneBefore) {
  EXPECT_THAT(texts(parse_kernel_list("softmax,hedgehog:shared=1,bias=0,elu")),
              ElementsAre("softmax", "hedgehog:bias=0,shared=1", "elu"));
  EXPECT_THAT(texts(parse_kernel_list("softmax:heads=2,softmax:heads=4")),
              ElementsAre("softmax:heads=2", "softmax:heads=4"));
  EXPECT_THAT(texts(parse_kernel_list("softmax,heads=2")), ElementsAre("softmax:heads=2"));
  EXPECT_THAT(split_kernel_list("softmax, hedgehog-window:w=64,shared=1,phi:my.py"),
              ElementsAre("softmax", "hedgehog-window:w=64,shared=1", "phi:my.py")); // as written
  EXPECT_THROW(parse_kernel_list("heads=2,softmax"), UsageError);
  EXPECT_THROW(parse_kernel_list("softmax,,elu"), UsageError);
}

TEST(KernelSpec, LeavesOutWhatIsAsByDefault) {
  EXPECT_EQ(parse_kernel_spec("hedgehog-window:w=64"), parse_kernel_spec("hedgehog-window"));
  EXPECT_EQ(parse_kernel_spec("hedgehog-window:w=32,shared=0").text(), "hedgehog-window:w=32");
  EXPECT_EQ(parse_kernel_spec("performer:seed=0").text(), "performer:seed=0"); // --seed would give another
}

TEST(KernelCost, FollowsThePapersCounts) {
  const AttentionShape shape{.heads = 12, .tokens = 197, .head_width = 64};
  const auto count = [&](const char* name) {
    return make_kernel({name, {}})->cost(shape).multiply_accumulates;
  };
  EXPECT_DOUBLE_EQ(count("softmax"), 2.0 * 197 * 197 * 768);
  EXPECT_DOUBLE_EQ(count("sdpa"), count("softmax"));
  EXPECT_DOUBLE_EQ(count("hydra-cosine"), 2.0 * 197 * 768);
  EXPECT_DOUBLE_EQ(count("elu"), 2.0 * 197 * 768 * 64 + 197.0 * 12 * 64);
  EXPECT_DOUBLE_EQ(count("hedgehog-untrained"), 2.0 * 197 * 768 * 128 + 197.0 * 12 * 128);
  EXPECT_DOUBLE_EQ(count("hedgehog"), count("hedgehog-untrained") + 2.0 * 197 * 768 * 64);
  EXPECT_DOUBLE_EQ(make_kernel({"elu", {}})->cost(shape).bytes, 4.0 * 197 * 768 * 4);
  EXPECT_DOUBLE_EQ(count("taylor"), (2.0 * 197 * 768 + 197 * 12) * (1 + 64 + 64 * 64));
}

// taylor's features y_i·y_j and y_j·y_i are made once.
TEST(KernelCost, IsLessWhereFeaturesRepeat) {
  const AttentionShape shape{.heads = 12, .tokens = 197, .head_width = 64};
  EXPECT_DOUBLE_EQ(make_kernel({"taylor", {}})->cost(shape).computed(),
                   (2.0 * 197 * 768 + 197 * 12) * (1 + 64 + 64 * 65 / 2.0));
  const Cost hedgehog = make_kernel({"hedgehog", {}})->cost(shape);
  EXPECT_DOUBLE_EQ(hedgehog.computed(), hedgehog.multiply_accumulates);
}

TEST(KernelSupport, HeadsMustDivideTheModelWidth) {
  const auto kernel = make_kernel(parse_kernel_spec("softmax:heads=5"));
  const AttentionShape shape{.heads = 3, .tokens = 4, .head_width = 8};
  EXPECT_FALSE(kernel->supports(shape).ok);
  EXPECT_THAT(kernel->supports(shape).reason, HasSubstr("heads=5"));
  EXPECT_TRUE(make_kernel(parse_kernel_spec("softmax:heads=6"))->supports(shape).ok);
}

} // namespace
} // namespace hydrascope
