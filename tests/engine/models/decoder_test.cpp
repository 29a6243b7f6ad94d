// Decoders against transformers: logits, hidden states and attention of tiny random checkpoints, and what
// their configurations may and may not say.
#include <cmath>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/model.h"
#include "engine/models/transformer/rotary.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

std::filesystem::path decoders() { return golden_folder() / "decoders"; }

class DecoderGolden : public testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
  static void TearDownTestSuite() { print_comparisons(); }
};

TEST_P(DecoderGolden, AgreesWithTransformers) {
  const auto& [name, file] = GetParam();
  const auto model = load_model(decoders() / name);
  const auto expected = read_tensors(decoders() / name / file);
  ModelInput input;
  input.token_ids = expected.at("input_ids");
  if (input.token_ids.size(0) > 1) input.mask = expected.at("attention_mask").to(at::kBool);
  compare_run(model, input, expected);
}

INSTANTIATE_TEST_SUITE_P(Decoders, DecoderGolden,
                         testing::Combine(testing::Values("gpt2", "llama-linear", "llama3-tied", "mistral",
                                                          "qwen2"),
                                          testing::Values("expected.safetensors", "expected-text.safetensors",
                                                          "expected-batch.safetensors")));

TEST(Decoder, ReadsTheLogitsOfTheTokensThatAreNamed) {
  const at::NoGradGuard no_gradients;
  const auto model = load_model(decoders() / "mistral");
  const auto expected = read_tensors(decoders() / "mistral" / "expected-text.safetensors");
  const at::Tensor hidden = expected.at("hidden.2");
  ModelInput input;
  input.token_ids = expected.at("input_ids");
  input.read = at::tensor({std::int64_t{4}, std::int64_t{18}}, at::kLong);
  const at::Tensor rows = expected.at("logits")[0].index_select(0, input.read);
  EXPECT_TRUE(close_to(model->logits(hidden, input), rows));
}

TEST(Decoder, StatesWhatItIs) {
  const ModelInfo info = read_model_info(decoders() / "llama3-tied");
  EXPECT_TRUE(info.causal);
  EXPECT_EQ(info.heads, 4);
  EXPECT_EQ(info.key_heads, 1);
  EXPECT_EQ(info.vocabulary, 61);
  EXPECT_EQ(info.max_tokens, 48);
  EXPECT_FALSE(read_model_info(golden_folder() / "models" / "bert").causal);
}

TEST(Decoder, RefusesIdsAndPositionsThatItLacks) {
  const auto model = load_model(decoders() / "gpt2");
  ModelInput input;
  input.token_ids = at::tensor({std::int64_t{3}, std::int64_t{61}}, at::kLong).unsqueeze(0);
  EXPECT_NE(message_of<UsageError>([&] { model->embed(input); }).find("vocabulary of 61"), std::string::npos);
  input.token_ids = at::tensor({std::int64_t{3}}, at::kLong).unsqueeze(0);
  input.first_position = 48;
  EXPECT_NE(message_of<UsageError>([&] { model->embed(input); }).find("48 positions"), std::string::npos);
}

// A copy of a decoder's config.json with other values.
class DecoderConfig : public testing::Test {
protected:
  std::filesystem::path with(const char* model, const nlohmann::json& changes) {
    auto config = nlohmann::json::parse(read_text_file(decoders() / model / "config.json"));
    config.merge_patch(changes);
    folder_.write("config.json", config.dump());
    return folder_.path();
  }
  template <typename E>
  std::string refusal(const char* model, const nlohmann::json& changes) {
    const auto folder = with(model, changes);
    return message_of<E>([&] { read_config(folder); });
  }

  ScratchFolder folder_;
};

TEST_F(DecoderConfig, NamesWhatIsNotSupported) {
  using Json = nlohmann::json;
  const auto names = [](const std::string& message, const char* part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(
      names(refusal<Error>("mistral", {{"rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
            "rope_scaling \"yarn\""));
  EXPECT_TRUE(names(refusal<Error>("mistral", {{"head_dim", 16}}), "head_dim"));
  EXPECT_TRUE(names(refusal<BrokenFile>("mistral", {{"num_key_value_heads", 3}}), "does not divide"));
  EXPECT_TRUE(names(refusal<Error>("mistral", {{"hidden_act", "xielu"}}), "hidden_act \"xielu\""));
  EXPECT_TRUE(names(refusal<Error>("gpt2", {{"scale_attn_by_inverse_layer_idx", true}}),
                    "scale_attn_by_inverse_layer_idx"));
  EXPECT_TRUE(
      names(refusal<Error>("gpt2", {{"architectures", Json::array({"GPT2ForSequenceClassification"})}}),
            "GPT2ForSequenceClassification"));
  EXPECT_TRUE(names(refusal<BrokenFile>("gpt2", {{"n_head", 5}}), "n_head"));
}

TEST_F(DecoderConfig, ASlidingWindowLimitsTheLength) {
  EXPECT_EQ(read_config(with("mistral", {{"sliding_window", 16}})).max_positions, 16);
  EXPECT_EQ(read_config(with("mistral", {{"sliding_window", nullptr}})).max_positions, 48);
  EXPECT_EQ(read_config(with("qwen2", {{"sliding_window", 16}})).max_positions, 48);
  EXPECT_EQ(read_config(with("qwen2", {{"sliding_window", 16}, {"use_sliding_window", true}})).max_positions,
            16);
}

TEST_F(DecoderConfig, ReadsRotaryPositionsOfOldAndNewFiles) {
  const nlohmann::json old = {{"rope_parameters", nullptr},
                              {"rope_theta", 777.0},
                              {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}};
  const RotaryConfig rotary = *read_config(with("llama-linear", old)).rotary;
  EXPECT_EQ(rotary.base, 777.0);
  EXPECT_EQ(rotary.scaling, RotaryConfig::Scaling::linear);
  EXPECT_EQ(rotary.factor, 2.0);
  EXPECT_EQ(read_config(decoders() / "llama3-tied").rotary->base, 500.0);
}

TEST(Rotary, StretchesLongWavelengthsAlone) {
  RotaryConfig config{.base = 500.0,
                      .scaling = RotaryConfig::Scaling::llama3,
                      .factor = 8,
                      .low_frequency_factor = 1,
                      .high_frequency_factor = 4,
                      .original_positions = 16};
  const std::vector<double> scaled = rotary_frequencies(config, 16);
  config.scaling = RotaryConfig::Scaling::none;
  const std::vector<double> plain = rotary_frequencies(config, 16);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double turns = 16 * plain[i] / (2 * std::numbers::pi);
    if (turns > 4) {
      EXPECT_EQ(scaled[i], plain[i]);
    } else if (turns < 1) {
      EXPECT_EQ(scaled[i], plain[i] / 8);
    } else {
      EXPECT_GT(scaled[i], plain[i] / 8);
      EXPECT_LT(scaled[i], plain[i]);
    }
  }
}

TEST(Rotary, PositionsMayBeGiven) {
  const at::NoGradGuard no_gradients;
  const Rotary rotary({}, 4000, 4, at::kCPU);
  const at::Tensor x = at::randn({1, 2, 3, 4});
  const at::Tensor named =
      rotary(x, at::tensor({std::int64_t{700}, std::int64_t{701}, std::int64_t{702}}, at::kLong));
  EXPECT_TRUE(at::allclose(named, rotary(x, {}, 700), 1e-6, 1e-6));
  EXPECT_FALSE(at::allclose(named, rotary(x), 1e-2, 1e-2));
}

} // namespace
} // namespace hydrascope::test
