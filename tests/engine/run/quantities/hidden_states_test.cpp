#include "engine/run/quantities/hidden_states.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

TEST(HiddenNorms, AreTheLengthsOfTheHiddenStates) {
  Runner runner(std::size_t{1} << 20, fake_source(std::make_shared<const FakeModel>(FakeOptions{})));
  RunRequest request = fake_request("the cat sat on the warm mat", "2=elu");
  request.quantities = {HiddenNormsKey{}, HiddenStatesKey{}};
  const auto run = runner.run(request);
  const Array& norms = test::read(*run, HiddenNormsKey{});
  const std::vector<Array>& hidden = test::read(*run, HiddenStatesKey{});
  const auto tokens = static_cast<std::int64_t>(run->tokens.size());
  ASSERT_THAT(norms.shape, testing::ElementsAre(static_cast<std::int64_t>(hidden.size()), tokens));
  for (std::size_t state = 0; state < hidden.size(); ++state) {
    const std::int64_t width = hidden[state].extent(2);
    for (std::int64_t token = 0; token < tokens; ++token) {
      double squares = 0;
      for (std::int64_t feature = 0; feature < width; ++feature) {
        const double value = hidden[state].values[static_cast<std::size_t>(token * width + feature)];
        squares += value * value;
      }
      EXPECT_NEAR(norms.slice(static_cast<std::int64_t>(state))[static_cast<std::size_t>(token)],
                  std::sqrt(squares), 1e-5 * std::sqrt(squares));
    }
  }
}

} // namespace
} // namespace hydrascope
