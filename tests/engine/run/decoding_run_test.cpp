// Decoders token by token, by state: against what transformers gives for the whole text, and against the same
// text read at once. A block computes a single token by other code than several (encoder_layer_token.cpp).
#include "engine/run/decoding_run.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/run/model_store.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

AppliedModel decoder(const std::string& name, const at::ScalarType type,
                     const std::map<std::string, at::Tensor>& more = {}) {
  AppliedModel model;
  model.model =
      placed(load_model(golden_folder() / "decoders" / name)->with_parameters(more), {at::kCPU, type});
  return model;
}

DecodingRun run_of(const AppliedModel& model, const std::string& kernel, const at::ScalarType type) {
  const Schedule schedule = resolved(ScheduleText{.kernel = kernel}, model.model->info().layers);
  return {model, schedule.layers, {at::kCPU, type}, 32};
}

class DecodingRunOf : public testing::TestWithParam<std::tuple<const char*, at::ScalarType>> {
protected:
  const char* name() const { return std::get<0>(GetParam()); }
  at::ScalarType type() const { return std::get<1>(GetParam()); }
  double tolerance() const { return type() == at::kFloat ? 1e-4 : 5e-2; }
};

TEST_P(DecodingRunOf, TokenByTokenAgreesWithTransformers) {
  const auto expected = read_tensors(golden_folder() / "decoders" / name() / "expected-text.safetensors");
  const at::Tensor &ids = expected.at("input_ids"), &logits = expected.at("logits");
  const AppliedModel model = decoder(name(), type());
  for (const std::string& parameter : model.model->parameter_names())
    EXPECT_TRUE(model.model->parameter(parameter).is_contiguous())
        << parameter << ": single tokens would be read as several are";
  DecodingRun run = run_of(model, "softmax", type());
  for (std::int64_t token = 0; token < ids.size(1); ++token)
    EXPECT_TRUE(close_to(run.read(ids.narrow(1, token, 1)), logits[0][token], tolerance()))
        << "token " << token;
}

// Kernels with maps of their own, that read the layer's input, whose output is normalised once more, with a
// window. Whole texts are read three times: from the second on a model folds maps into its projections.
TEST_P(DecodingRunOf, TokenByTokenIsTheWholeText) {
  const auto expected = read_tensors(golden_folder() / "decoders" / name() / "expected-text.safetensors");
  const at::Tensor& ids = expected.at("input_ids");
  const ModelInfo info = decoder(name(), type()).model->info();
  const std::int64_t width = info.width / info.heads;
  std::map<std::string, at::Tensor> maps;
  for (int layer = 0; layer < info.layers; ++layer) {
    maps[fmt::format("kernel.{}.hedgehog.query_map.weight", layer)] =
        0.3 * at::randn({info.heads, width, width});
    maps[fmt::format("kernel.{}.hedgehog.key_map.weight", layer)] =
        0.3 * at::randn({info.key_heads, width, width});
    maps[fmt::format("kernel.{}.hedgehog.query_map.bias", layer)] = 0.3 * at::randn({info.heads, width});
    maps[fmt::format("kernel.{}.hedgehog.key_map.bias", layer)] = 0.3 * at::randn({info.key_heads, width});
  }
  const AppliedModel model = decoder(name(), type(), maps);
  for (const std::string kernel :
       {"hedgehog", "elu", "poly-nl", "hydra-cosine", "hydra-cosine-ln", "hedgehog-window:w=4"}) {
    DecodingRun one = run_of(model, kernel, type());
    at::Tensor last;
    for (std::int64_t token = 0; token < ids.size(1); ++token) last = one.read(ids.narrow(1, token, 1));
    for (int time = 0; time < 3; ++time) {
      DecodingRun whole = run_of(model, kernel, type());
      EXPECT_TRUE(close_to(last, whole.read(ids), tolerance())) << kernel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, DecodingRunOf,
                         testing::Combine(testing::Values("gpt2", "llama-linear", "llama3-tied", "mistral",
                                                          "qwen2"),
                                          testing::Values(at::kFloat, at::kBFloat16)));

} // namespace
} // namespace hydrascope::test
