// Golden files made with transformers (tests/golden): reading them, and comparing with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <gtest/gtest.h>

#include "engine/models/transformer/model.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope::test {

inline std::filesystem::path golden_folder() { return test::source_folder() / "tests" / "golden"; }

std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& file);

// Within 1e-4 of the largest expected magnitude, and finite.
testing::AssertionResult close_to(const at::Tensor& actual, const at::Tensor& expected,
                                  double tolerance = 1e-4);

// Runs all blocks with softmax on every device of devices() and compares hidden states, attention and logits
// with the golden file's, over the rows of real tokens only.
void compare_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                 const std::map<std::string, at::Tensor>& expected);
// Counts a comparison with a golden file, off the CPU.
void count_comparison(c10::Device device);
// Prints how many there were so far.
void print_comparisons();

// A copy of a golden model folder.
void copy_model(const std::string& golden_model, const std::filesystem::path& to);

// The message of the exception of type E that `call` throws.
template <typename E, typename F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

} // namespace hydrascope::test
