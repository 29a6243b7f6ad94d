// What LibTorch throws, with a subject and a remedy.
#include "engine/attention/interface/remedies.h"

#include <functional>
#include <new>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <dnnl.hpp>

#include "engine/base/device_error.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

using ::testing::StartsWith, ::testing::ThrowsMessage;

const Remedies remedies{.subject = "draw",
                        .memory = "buy some",
                        .device_memory = "move to the CPU",
                        .other = "draw less",
                        .device = "cpu"};

template <typename Thrown>
void throw_it() {
  with_remedies(remedies, []() -> int { throw Thrown(); });
}
auto fails_with(const char* const message) {
  return [message] { with_remedies(remedies, [&] { C10_THROW_ERROR(Error, message); }); };
}

TEST(WithRemedies, ReturnsWhatTheWorkDoes) {
  EXPECT_EQ(with_remedies(remedies, [] { return 3; }), 3);
  int done = 0;
  with_remedies(remedies, [&] { ++done; });
  EXPECT_EQ(done, 1);
}

TEST(WithRemedies, NamesTheMemoryThatDoesNotSuffice) {
  EXPECT_THAT(
      [] { with_remedies(remedies, [] { C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory"); }); },
      ThrowsMessage<Error>("draw: out of memory on cpu; move to the CPU"));
  for (const char* const message :
       {"CUDA error: out of memory\nwhat may help", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"})
    EXPECT_THAT(fails_with(message), ThrowsMessage<Error>("draw: out of memory on cpu; move to the CPU"));
  Remedies one = remedies;
  one.device_memory.clear();
  EXPECT_THAT([&] { with_remedies(one, [] { C10_THROW_ERROR(OutOfMemoryError, "none"); }); },
              ThrowsMessage<Error>("draw: out of memory on cpu; buy some"));

  EXPECT_THAT(throw_it<std::bad_alloc>, ThrowsMessage<Error>("draw: out of memory; buy some"));
  const auto too_large = [] { with_remedies(remedies, [] { at::empty({std::int64_t{1} << 50}); }); };
  EXPECT_THAT(too_large, ThrowsMessage<Error>("draw: out of memory; buy some"));
  const auto of_onednn = [] {
    with_remedies(remedies,
                  [] { throw dnnl::error(dnnl_out_of_memory, "could not create a memory object"); });
  };
  EXPECT_THAT(of_onednn, ThrowsMessage<Error>("draw: could not create a memory object; buy some"));
}

TEST(WithRemedies, SaysWhatElseFailsInOneLine) {
  EXPECT_THAT(fails_with("expected a matrix\nhere is a stack"),
              ThrowsMessage<Error>("draw: expected a matrix; draw less"));
}

TEST(WithRemedies, TellsADeviceThatDoesNoFurtherWork) {
  EXPECT_THAT(fails_with("CUDA error: unspecified launch failure\nwhat may help"),
              ThrowsMessage<BrokenDevice>(
                  StartsWith("draw: CUDA error: unspecified launch failure; restart the program")));
}

TEST(WithRemedies, LeavesTheProgramsOwnErrorsAsTheyAre) {
  EXPECT_THROW(throw_it<Cancelled>(), Cancelled);
  const auto misused = [] { with_remedies(remedies, [] { throw UsageError("--rows", "is empty"); }); };
  EXPECT_THAT(misused, ThrowsMessage<UsageError>("--rows: is empty"));
  const auto wrong = [] { with_remedies(remedies, [] { throw std::logic_error("a row is missing"); }); };
  EXPECT_THAT(wrong, ThrowsMessage<std::logic_error>("a row is missing"));
  EXPECT_THROW(throw_it<std::bad_function_call>(), std::bad_function_call);
}

} // namespace
} // namespace hydrascope
