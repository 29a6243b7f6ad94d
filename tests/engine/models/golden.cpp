#include "tests/engine/models/golden.h"

#include <cstdlib>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include "engine/models/transformer/checkpoint.h"

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

void compare_run(const Model& model, const ModelInput& input,
                 const std::map<std::string, at::Tensor>& expected) {
  const c10::NoGradGuard no_gradient;
  const auto softmax = make_kernel(KernelSpec{});
  // Rows of padding say nothing: they are dropped from (B,…,N,…), whose tokens lie in `dimension`.
  const auto real = [&](const at::Tensor& x, std::int64_t dimension) {
    if (!input.mask.defined() || !x.defined()) return x;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
    shape[0] = x.size(0);
    shape[static_cast<std::size_t>(dimension)] = x.size(dimension);
    return x * input.mask.to(at::kFloat).view(shape);
  };
  at::Tensor hidden = model.embed(input), before_last;
  EXPECT_TRUE(close_to(real(hidden, 1), real(expected.at("hidden.0"), 1))) << "hidden.0";
  for (int layer = 0; layer < model.info().layers; ++layer) {
    AttentionTap tap;
    before_last = hidden;
    hidden = model.block(layer, hidden, input, *softmax, {}, {.tap = &tap});
    const std::string number = std::to_string(layer);
    EXPECT_TRUE(close_to(real(hidden, 1), real(expected.at("hidden." + std::to_string(layer + 1)), 1)))
        << "hidden." << layer + 1;
    const at::Tensor weights = softmax->weights(tap.input, {});
    EXPECT_TRUE(close_to(real(weights, 2), real(expected.at("attention." + number), 2)))
        << "attention." << number;
  }
  const at::Tensor logits = model.logits(hidden, input);
  const auto found = expected.find("logits");
  if (logits.defined()) { // the classifier needs no more of the last block than the tokens it reads
    EXPECT_TRUE(close_to(model.logits(model.block(model.info().layers - 1, before_last, input, *softmax, {},
                                                  {.for_logits = true}),
                                      input),
                         logits));
  }
  if (found == expected.end())
    EXPECT_FALSE(logits.defined());
  else if (logits.dim() == 3)
    EXPECT_TRUE(close_to(real(logits, 1), real(found->second, 1))) << "logits";
  else
    EXPECT_TRUE(close_to(logits, found->second)) << "logits";
}

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "hydrascope-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void ScratchFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

void copy_model(const std::string& golden_model, const fs::path& to) {
  fs::copy(golden_folder() / "models" / golden_model, to, fs::copy_options::recursive);
}

} // namespace hydrascope::test
