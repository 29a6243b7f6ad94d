#include "engine/attention/interface/schedule.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

using testing::AllOf, testing::ElementsAre, testing::HasSubstr;

std::vector<std::string> names(const Schedule& schedule) {
  std::vector<std::string> all;
  for (const KernelSpec& kernel : schedule.layers) all.push_back(kernel.text());
  return all;
}

std::string usage_message(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ReplacedLayers, FrontAndBack) {
  EXPECT_THAT(replaced_layers(Strategy::front, 3, 12), ElementsAre(0, 1, 2));
  EXPECT_THAT(replaced_layers(Strategy::back, 3, 12), ElementsAre(11, 10, 9));
  EXPECT_THAT(replaced_layers(Strategy::back, 0, 12), ElementsAre());
}

TEST(ReplacedLayers, InterleaveAlternatesFromTheBack) {
  EXPECT_THAT(replaced_layers(Strategy::interleave, 12, 12),
              ElementsAre(11, 9, 7, 5, 3, 1, 10, 8, 6, 4, 2, 0));
  EXPECT_THAT(replaced_layers(Strategy::interleave, 7, 12), ElementsAre(11, 9, 7, 5, 3, 1, 10));
  EXPECT_THAT(replaced_layers(Strategy::interleave, 5, 5), ElementsAre(4, 2, 0, 3, 1));
}

TEST(ReplacedLayers, MoreThanThereAreIsAnError) {
  EXPECT_THROW(replaced_layers(Strategy::back, 13, 12), UsageError);
  EXPECT_THROW(replaced_layers(Strategy::back, -1, 12), UsageError);
}

TEST(ParseSchedule, SoftmaxByDefault) {
  const Schedule schedule = parse_schedule({}, 3);
  EXPECT_THAT(names(schedule), ElementsAre("softmax", "softmax", "softmax"));
  EXPECT_TRUE(schedule.all_exact_softmax());
  EXPECT_EQ(schedule.summary(), "softmax ×3");
}

TEST(ParseSchedule, KernelThenReplaceThenLayers) {
  const Schedule schedule = parse_schedule({.kernel = "elu",
                                            .replace = {"back:2=hydra-cosine", "front:1=sdpa"},
                                            .layers = {"3=softmax:heads=2; 0-1=hedgehog"}},
                                           4);
  EXPECT_THAT(names(schedule), ElementsAre("hedgehog", "hedgehog", "hydra-cosine", "softmax:heads=2"));
  EXPECT_FALSE(schedule.all_exact_softmax());
  EXPECT_EQ(schedule.summary(), "hedgehog ×2, hydra-cosine ×1, softmax:heads=2 ×1");
}

TEST(ParseSchedule, RangesAndListsOfLayers) {
  const Schedule schedule = parse_schedule({.layers = {"0-9=softmax;10,11=hydra-cosine"}}, 12);
  EXPECT_EQ(schedule.summary(), "softmax ×10, hydra-cosine ×2");
  EXPECT_EQ(schedule.layers[10].name, "hydra-cosine");
  EXPECT_EQ(schedule.layers[11].name, "hydra-cosine");
}

TEST(ParseSchedule, ParametersMayHoldCommasAndEqualSigns) {
  const Schedule schedule = parse_schedule({.layers = {"0,2=hedgehog:shared=1,bias=0;1=sdpa"}}, 3);
  EXPECT_THAT(names(schedule), ElementsAre("hedgehog:bias=0,shared=1", "sdpa", "hedgehog:bias=0,shared=1"));
}

TEST(ParseSchedule, AnotherNumberOfHeadsIsNotTheModelsSoftmax) {
  EXPECT_TRUE(parse_schedule({.kernel = "sdpa"}, 2).all_exact_softmax());
  EXPECT_FALSE(parse_schedule({.kernel = "softmax:heads=3"}, 2).all_exact_softmax());
}

TEST(ParseSchedule, ErrorsNameTheOptionTheReasonAndTheRemedy) {
  const auto message = [](const ScheduleText& text) {
    return usage_message([&] { parse_schedule(text, 12); });
  };
  EXPECT_THAT(message({.kernel = "sofmax"}),
              AllOf(HasSubstr("--kernel"), HasSubstr("nearest name is softmax")));
  EXPECT_THAT(message({.replace = {"middle:2=elu"}}), AllOf(HasSubstr("--replace"), HasSubstr("middle")));
  EXPECT_THAT(message({.replace = {"back:13=elu"}}), AllOf(HasSubstr("--replace"), HasSubstr("12 layers")));
  EXPECT_THAT(message({.replace = {"back:x=elu"}}), HasSubstr("\"x\""));
  EXPECT_THAT(message({.replace = {"back:-1=elu"}}), HasSubstr("\"-1\""));
  EXPECT_THAT(message({.replace = {"back=elu"}}), HasSubstr("STRATEGY:k=KERNEL"));
  EXPECT_THAT(message({.layers = {"12=elu"}}), AllOf(HasSubstr("--layers"), HasSubstr("no layer 12")));
  EXPECT_THAT(message({.layers = {"0-3=elu;3=sdpa"}}), HasSubstr("layer 3 is named twice"));
  EXPECT_THAT(message({.layers = {"3-1=elu"}}), HasSubstr("\"3-1\""));
  EXPECT_THAT(message({.layers = {"elu"}}), HasSubstr("LAYERS=KERNEL"));
  EXPECT_THAT(message({.layers = {"1=elus"}}), HasSubstr("nearest name is elu"));
  EXPECT_THAT(message({.layers = {""}}), HasSubstr("--layers"));
}

} // namespace
} // namespace hydrascope
