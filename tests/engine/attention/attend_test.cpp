#include "engine/attention/interface/attend.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "tests/engine/attention/broken_kernels.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;
using testing_inputs::make_input, testing_inputs::relative_error;

class Attend : public testing::Test {
protected:
  Attend() {
    folder_ = std::filesystem::temp_directory_path() / ("hydrascope-attend-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    request.kernel = {"softmax", {}};
    request.input = folder_ / "input.safetensors";
    request.output = folder_ / "output.safetensors";
  }
  ~Attend() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void write(const std::map<std::string, at::Tensor>& tensors) const {
    std::map<std::string, TensorView> views;
    std::vector<at::Tensor> alive;
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor& dense = alive.emplace_back(tensor.contiguous());
      const ElementType type = dense.scalar_type() == at::kByte     ? ElementType::u8
                               : dense.scalar_type() == at::kDouble ? ElementType::f64
                               : dense.scalar_type() == at::kHalf   ? ElementType::f16
                                                                    : ElementType::f32;
      views[name] = {
          type, dense.sizes().vec(), {static_cast<const std::byte*>(dense.data_ptr()), dense.nbytes()}};
    }
    write_safetensors(request.input, views);
  }

  at::Tensor result(const std::string& name) const {
    const SafetensorsFile file = SafetensorsFile::open(request.output);
    const TensorView& view = file.tensors().at(name);
    EXPECT_EQ(view.type, ElementType::f32);
    at::Tensor tensor = at::empty(view.shape);
    std::ranges::copy(view.bytes, static_cast<std::byte*>(tensor.data_ptr()));
    return tensor;
  }

  std::string message() const {
    try {
      attend_file(request);
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(request.output)) << "something half-written was left";
      return error.what();
    }
    return "nothing was thrown";
  }

  AttendRequest request;

private:
  std::filesystem::path folder_;
};

TEST_F(Attend, EveryKernelFromFileToFile) {
  for (const reference::Row& row : reference::rows()) {
    SCOPED_TRACE(row.spec);
    request.kernel = parse_kernel_spec(row.spec);
    const bool causal = make_kernel(request.kernel)->supports({.has_layer_input = true, .causal = true}).ok;
    const testing_inputs::Case shape{2, 2, 13, 6, true, causal};
    const AttentionInput input = make_input(shape, 3);
    const auto parameters = testing_inputs::moved_parameters(*make_kernel(request.kernel), shape, 4);
    std::map<std::string, at::Tensor> tensors{{"q", input.q},
                                              {"k", input.k},
                                              {"v", input.v},
                                              {"mask", input.mask.to(at::kByte)},
                                              {"unused", input.mask.to(at::kDouble)}};
    tensors.insert(parameters.begin(), parameters.end());
    tensors.emplace("x", input.layer_input);
    write(tensors);
    request.causal = causal;
    request.weights = true;
    request.rows = {5, 0};
    attend_file(request);
    const reference::Result expected = row.compute(input, parameters, input.v);
    const bool normed = parameters.contains("norm.weight");
    const at::Tensor out = normed ? reference::layer_norm(input, expected.out, parameters) : expected.out;
    EXPECT_LT(relative_error(result("output"), out), 2e-5);
    EXPECT_LT(relative_error(result("weights"), expected.weights.index_select(2, at::tensor(request.rows))),
              2e-5);
  }
}

TEST_F(Attend, WithoutWeightsOnlyTheOutputIsWritten) {
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  write({{"q", input.q}, {"k", input.k}, {"v", input.v}});
  attend_file(request);
  EXPECT_EQ(SafetensorsFile::open(request.output).tensors().size(), 1U);
  const at::Tensor expected = make_kernel(request.kernel)->run(input, {}).out;
  if (automatic_device().device.is_cuda())
    EXPECT_LT(relative_error(result("output"), expected), 2e-5);
  else
    EXPECT_TRUE(at::equal(result("output"), expected));
}

TEST_F(Attend, BadInputIsNamed) {
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  EXPECT_THAT(message(), HasSubstr("input.safetensors"));
  write({{"q", input.q}, {"k", input.k}});
  EXPECT_THAT(message(), HasSubstr("no tensor \"v\""));
  write({{"q", input.q}, {"k", input.k}, {"v", input.v.slice(2, 0, 3)}});
  EXPECT_THAT(message(), HasSubstr("(1,2,3,4)"));
  write({{"q", input.q}, {"k", input.k}, {"v", input.v.to(at::kDouble)}});
  EXPECT_THAT(message(), AllOf(HasSubstr("F64"), HasSubstr("F32")));
  write({{"q", input.q[0]}, {"k", input.k[0]}, {"v", input.v[0]}});
  EXPECT_THAT(message(), HasSubstr("(2,5,4)"));
  write({{"q", input.q},
         {"k", input.k},
         {"v", input.v},
         {"mask", at::tensor({1, 0, 1}).to(at::kByte).unsqueeze(0)}});
  EXPECT_THAT(message(), HasSubstr("mask"));
}

TEST_F(Attend, ParametersOfTheWrongShapeRowsAndGridsThatDoNotFit) {
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  write({{"q", input.q}, {"k", input.k}, {"v", input.v}, {"query_map.weight", input.q[0]}});
  request.kernel = {"hedgehog", {}};
  EXPECT_THAT(message(), AllOf(HasSubstr("query_map.weight"), HasSubstr("(2,4,4)")));
  request.kernel = {"softmax", {{"heads", "3"}}};
  EXPECT_THAT(message(), HasSubstr("heads=3"));
  request.kernel = {"softmax", {}};
  request.weights = true;
  request.rows = {0, 5};
  EXPECT_THAT(message(), AllOf(HasSubstr("--rows"), HasSubstr("row 5")));
  request.rows = {};
  request.grid_rows = 3;
  request.grid_columns = 2;
  EXPECT_THAT(message(), HasSubstr("--grid"));
}

// They were left out in silence, and the kernel ran on its starting values.
TEST_F(Attend, WhatTheKernelUsesIsFloat32) {
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  write({{"q", input.q},
         {"k", input.k},
         {"v", input.v},
         {"x", input.layer_input.to(at::kHalf)},
         {"query_map.weight", testing_inputs::normal({2, 4, 4}, 4).to(at::kHalf)}});
  request.kernel = {"hedgehog", {}};
  EXPECT_THAT(message(), AllOf(HasSubstr("\"query_map.weight\" is F16"), HasSubstr("store it as F32")));
  request.kernel = {"poly-nl", {}};
  EXPECT_THAT(message(), AllOf(HasSubstr("\"x\" is F16"), HasSubstr("store it as F32")));
  request.kernel = {"elu", {}}; // uses neither
  attend_file(request);
}

TEST_F(Attend, NaNIsRefusedAtRealTokens) {
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  for (const auto& [name, kernel] : {std::pair{"v", "softmax"}, {"x", "poly-nl"}}) {
    SCOPED_TRACE(name);
    std::map<std::string, at::Tensor> tensors{
        {"q", input.q}, {"k", input.k}, {"v", input.v}, {"x", input.layer_input}};
    at::Tensor& x = tensors.at(name);
    x = x.clone();
    x.select(x.dim() - 2, 2).fill_(NAN);
    write(tensors);
    request.kernel = {kernel, {}};
    std::filesystem::remove(request.output);
    EXPECT_THAT(message(), HasSubstr('"' + std::string(name) + "\" holds NaN"));
    tensors["mask"] = at::tensor({1, 1, 0, 1, 1}).to(at::kByte).unsqueeze(0);
    write(tensors);
    attend_file(request);
    EXPECT_FALSE(result("output").isnan().any().item<bool>());
  }
}

TEST_F(Attend, WeightsAboveFourGibibytesAreRefusedWithAnEstimate) {
  const at::Tensor x = testing_inputs::normal({1, 12, 10000, 1}, 3);
  write({{"q", x}, {"k", x}, {"v", x}});
  request.kernel = {"hydra-cosine", {}};
  request.weights = true;
  EXPECT_THAT(message(), AllOf(HasSubstr("4.5 GiB"), HasSubstr("--rows")));
  request.rows = {9999};
  attend_file(request);
  EXPECT_EQ(result("weights").sizes(), (std::vector<std::int64_t>{1, 12, 1, 10000}));
}

TEST_F(Attend, AsksForARestartWhereTheDeviceDoesNoFurtherWork) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  const AttentionInput input = make_input({1, 2, 5, 4}, 3);
  write({{"q", input.q}, {"k", input.k}, {"v", input.v}});
  request.kernel = {"hydra-cosine", {}};
  request.device = test::fake_device().str();
  const testing_inputs::BrokenKernels broken;
  EXPECT_THAT(message(), AllOf(HasSubstr("hydra-cosine failed: CUDA error: an illegal memory access"),
                               HasSubstr("; restart the program"), Not(HasSubstr("\n"))));
}

TEST_F(Attend, TakesKeysAndValuesThatHeadsShare) {
  const AttentionInput input = make_input({1, 4, 9, 8}, 3);
  const at::Tensor k = input.k.slice(1, 0, 2), v = input.v.slice(1, 0, 2);
  request.kernel = {"hedgehog", {}};
  request.causal = true;
  write({{"q", input.q}, {"k", k}, {"v", v}});
  attend_file(request);
  const at::Tensor grouped = result("output");
  write({{"q", input.q}, {"k", k.repeat_interleave(2, 1)}, {"v", v.repeat_interleave(2, 1)}});
  attend_file(request);
  EXPECT_LT(relative_error(grouped, result("output")), 1e-6);
  write({{"q", input.q}, {"k", input.k.slice(1, 0, 3)}, {"v", input.v.slice(1, 0, 3)}});
  EXPECT_THROW(attend_file(request), UsageError);
}

} // namespace
} // namespace hydrascope
