// A model that is loaded and dropped a thousand times leaves no memory behind.
#include <cstddef>

#include <gtest/gtest.h>

#include "engine/models/transformer/model.h"
#include "engine/run/run.h"
#include "engine/run/runner.h"
#include "tests/support/bytes_in_use.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

using test::bytes_in_use;

TEST(Loads, LeaveNoMemoryBehind) {
  const auto load_and_run = [](const char* const model, const RunInput& input) {
    RunRequest request;
    request.model_folder = test::source_folder() / "tests/golden" / model;
    request.input = input;
    Runner runner(default_cache_bytes,
                  make_model_store({load_model, [] { return std::vector<AdapterInfo>(); }}));
    ASSERT_FALSE(runner.run(request)->layers.empty());
  };
  const auto some = [&](const int loads) {
    for (int i = 0; i < loads; ++i)
      load_and_run(i % 2 == 0 ? "models/bert" : "decoders/written",
                   TextInput{"the cat sat on the mat", std::nullopt});
  };
  some(100);
  const std::size_t before = bytes_in_use();
  ASSERT_GT(before, 0U);
  some(1000);
  EXPECT_LT(static_cast<double>(bytes_in_use()), 1.02 * static_cast<double>(before));
}

} // namespace
} // namespace hydrascope
