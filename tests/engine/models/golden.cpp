#include "tests/engine/models/golden.h"

#include <cstdio>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include "engine/models/transformer/checkpoint.h"
#include "engine/run/model_store.h"
#include "engine/run/placement.h"
#include "tests/support/devices.h"

namespace hydrascope::test {

namespace fs = std::filesystem;

std::map<std::string, at::Tensor> read_tensors(const fs::path& file) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, view] : opened.tensors()) tensors[name] = tensor_of(view, opened);
  return tensors;
}

testing::AssertionResult close_to(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  if (!actual.defined()) return testing::AssertionFailure() << "undefined";
  if (actual.sizes() != expected.sizes())
    return testing::AssertionFailure() << "shape " << actual.sizes() << " instead of " << expected.sizes();
  if (!at::isfinite(actual).all().item<bool>()) return testing::AssertionFailure() << "not finite";
  const double largest = at::abs(expected).max().item<double>();
  const double difference = at::abs(actual - expected).max().item<double>();
  if (difference <= tolerance * largest) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "differs by " << difference << " where the largest value is "
                                     << largest;
}

namespace {

std::int64_t comparisons = 0;

class GoldenRun {
public:
  GoldenRun(const Model& model, const ModelInput& input, const std::map<std::string, at::Tensor>& expected)
      : model_(model), input_(placed(model, input)), mask_(input.mask), expected_(expected) {}

  void compare() const {
    const auto softmax = make_kernel(KernelSpec{});
    at::Tensor hidden = model_.embed(input_), before_last;
    compare("hidden.0", hidden, 1);
    for (int layer = 0; layer < model_.info().layers; ++layer) {
      AttentionTap tap;
      before_last = hidden;
      hidden = model_.block(layer, hidden, input_, *softmax, {}, {.tap = &tap});
      compare("hidden." + std::to_string(layer + 1), hidden, 1);
      compare("attention." + std::to_string(layer), softmax->weights(tap.input, {}), 2);
    }
    const at::Tensor logits = model_.logits(hidden, input_);
    if (logits.defined()) { // the classifier needs no more of the last block than the tokens it reads
      const at::Tensor last =
          model_.block(model_.info().layers - 1, before_last, input_, *softmax, {}, {.for_logits = true});
      EXPECT_TRUE(close_to(model_.logits(last, input_).cpu(), logits.cpu()));
    }
    if (!expected_.contains("logits"))
      EXPECT_FALSE(logits.defined());
    else
      compare("logits", logits, logits.dim() == 3 ? 1 : 0);
  }

private:
  // `tokens`: the dimension of tokens, 0 without one.
  void compare(const std::string& name, const at::Tensor& actual, const std::int64_t tokens) const {
    const at::Tensor host = actual.defined() ? actual.cpu() : actual;
    EXPECT_TRUE(close_to(real(host, tokens), real(expected_.at(name), tokens))) << name;
    count_comparison(model_.device());
  }
  // Rows of padding say nothing: they are dropped.
  at::Tensor real(const at::Tensor& x, const std::int64_t tokens) const {
    if (!mask_.defined() || !x.defined() || tokens == 0) return x;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
    shape[0] = x.size(0);
    shape[static_cast<std::size_t>(tokens)] = x.size(tokens);
    return x * mask_.to(at::kFloat).view(shape);
  }

  const Model& model_;
  ModelInput input_;
  at::Tensor mask_; // on the CPU
  const std::map<std::string, at::Tensor>& expected_;
};

} // namespace

void compare_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                 const std::map<std::string, at::Tensor>& expected) {
  const c10::NoGradGuard no_gradient;
  for (const c10::Device device : devices()) {
    SCOPED_TRACE(device.str());
    GoldenRun(*placed(model, {device, c10::kFloat}), input, expected).compare();
  }
}

void count_comparison(const c10::Device device) { comparisons += device.is_cpu() ? 0 : 1; }
void print_comparisons() {
  std::printf("%lld comparisons with golden files off the CPU\n", static_cast<long long>(comparisons));
}

void copy_model(const std::string& golden_model, const fs::path& to) {
  fs::copy(golden_folder() / "models" / golden_model, to, fs::copy_options::recursive);
}

} // namespace hydrascope::test
