// ROUGE against PyPI's rouge-score (tools/golden/make_rouge.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/paths.h"
#include "engine/measure/rouge.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Rouge, AgreesWithTheUsualImplementation) {
  const auto cases =
      nlohmann::json::parse(read_text_file(test::source_folder() / "tests" / "golden" / "rouge.json"));
  ASSERT_GT(cases.size(), 30U);
  for (const auto& one : cases) {
    const auto answer = one["answer"].get<std::string>(), reference = one["reference"].get<std::string>();
    const Rouge score = rouge(answer, reference);
    EXPECT_NEAR(score.rouge1, one["rouge1"].get<double>(), 1e-12) << answer << " | " << reference;
    EXPECT_NEAR(score.rouge2, one["rouge2"].get<double>(), 1e-12) << answer << " | " << reference;
    EXPECT_NEAR(score.rougeL, one["rougeL"].get<double>(), 1e-12) << answer << " | " << reference;
  }
}

TEST(Rouge, WordsAreLettersAndDigits) {
  EXPECT_THAT(rouge_words("It's A.B@example, 3.14\n(a\tb)"),
              ElementsAre("it", "s", "a", "b", "example", "3", "14", "a", "b"));
  EXPECT_THAT(rouge_words("...—!"), IsEmpty());
}

} // namespace
} // namespace hydrascope
