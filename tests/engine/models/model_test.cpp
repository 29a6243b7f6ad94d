// Models against transformers: logits, hidden states and attention of tiny random checkpoints.
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/model.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

struct VisionCase {
  const char* model;
  const char* expected; // relative to tests/golden/models
};

class VisionGolden : public testing::TestWithParam<VisionCase> {
protected:
  static void TearDownTestSuite() { print_comparisons(); }
};

TEST_P(VisionGolden, AgreesWithTransformers) {
  const auto folder = golden_folder() / "models";
  const auto model = load_model(folder / GetParam().model);
  const auto expected = read_tensors(folder / GetParam().expected);
  ModelInput input;
  input.pixels = expected.at("pixels");
  compare_run(model, input, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Models, VisionGolden,
    testing::Values(VisionCase{"vit", "vit/expected.safetensors"},
                    VisionCase{"vit", "vit-interpolated/expected.safetensors"},
                    VisionCase{"vit", "vit-interpolated/expected-36x4.safetensors"},
                    VisionCase{"deit", "deit/expected.safetensors"},
                    VisionCase{"deit", "deit/expected-8x20.safetensors"},
                    VisionCase{"deit-distilled", "deit-distilled/expected.safetensors"},
                    VisionCase{"deit-distilled", "deit-distilled/expected-16x8.safetensors"},
                    VisionCase{"dinov2", "dinov2/expected.safetensors"},
                    VisionCase{"dinov2", "dinov2/expected-28x42.safetensors"},
                    VisionCase{"dinov2-swiglu", "dinov2-swiglu/expected.safetensors"},
                    VisionCase{"timm-vit", "timm-vit/expected.safetensors"},
                    VisionCase{"timm-deit-distilled", "timm-deit-distilled/expected.safetensors"},
                    VisionCase{"timm-deit3", "timm-deit3/expected.safetensors"}));

class TextGolden : public testing::TestWithParam<VisionCase> {
protected:
  static void TearDownTestSuite() { print_comparisons(); }
};

TEST_P(TextGolden, AgreesWithTransformers) {
  const auto folder = golden_folder() / "models";
  const auto model = load_model(folder / GetParam().model);
  const auto expected = read_tensors(folder / GetParam().expected);
  ModelInput input;
  input.token_ids = expected.at("input_ids");
  input.token_types = expected.at("token_type_ids");
  if (input.token_ids.size(0) > 1) input.mask = expected.at("attention_mask").to(at::kBool);
  compare_run(model, input, expected);
}

INSTANTIATE_TEST_SUITE_P(Models, TextGolden,
                         testing::Values(VisionCase{"bert", "bert/expected.safetensors"},
                                         VisionCase{"bert", "bert/expected-pair.safetensors"},
                                         VisionCase{"bert", "bert/expected-batch.safetensors"},
                                         VisionCase{"bert-gamma-beta",
                                                    "bert-gamma-beta/expected.safetensors"},
                                         VisionCase{"bert-mlm", "bert-mlm/expected.safetensors"}));

TEST(TextInput, GivesTheIdsAndTypesThatTransformersGives) {
  const auto folder = golden_folder() / "models" / "bert";
  const auto model = load_model(folder);
  for (const char* file : {"expected.safetensors", "expected-pair.safetensors"}) {
    const auto metadata = SafetensorsFile::open(folder / file).metadata();
    const auto expected = read_tensors(folder / file);
    const auto written = nlohmann::json::parse(metadata.at("input"));
    const auto& text = written.at("text");
    const auto& pair = written.at("pair");
    std::optional<std::string> second;
    if (pair.is_string()) second = pair.get<std::string>();
    const ModelInput input = model->prepare_text(text.get<std::string>(), second);
    EXPECT_TRUE(input.token_ids.equal(expected.at("input_ids"))) << file;
    EXPECT_TRUE(input.token_types.equal(expected.at("token_type_ids"))) << file;
    ASSERT_EQ(static_cast<std::int64_t>(input.tokens.size()), input.token_ids.size(1));
    EXPECT_EQ(input.tokens.front().text, "[CLS]");
    EXPECT_TRUE(input.tokens.front().special);
    EXPECT_EQ(input.tokens[1].word, 0);
    EXPECT_TRUE(input.note.empty());
  }
}

TEST(TextInput, IsCutAtThePositionTable) {
  const auto model = load_model(golden_folder() / "models" / "bert"); // 24 positions
  std::string text;
  for (int i = 0; i < 40; ++i) text += "cat ";
  const ModelInput one = model->prepare_text(text);
  EXPECT_EQ(one.token_ids.size(1), 24);
  EXPECT_EQ(one.note, "text cut at 24 of 42 tokens");
  EXPECT_EQ(one.tokens.back().text, "[SEP]");
  // Of a pair the longer part gives way.
  const ModelInput pair = model->prepare_text(text, "the cat");
  EXPECT_EQ(pair.token_ids.size(1), 24);
  EXPECT_EQ(pair.token_types.sum().item<std::int64_t>(), 3);
}

// The numbers of tokens are those of Hugging Face's tokenizers.
TEST(TextInput, OfAMegabyteIsCutWithANote) {
  std::string line;
  for (int i = 0; i < 250'000; ++i) line += "cat ";
  const std::string word(1'000'000, 'a');
  const auto bert = load_model(golden_folder() / "models" / "bert");
  EXPECT_EQ(bert->prepare_text(line).note, "text cut at 24 of 250002 tokens");
  const ModelInput unknown = bert->prepare_text(word);
  ASSERT_EQ(unknown.tokens.size(), 3U);
  EXPECT_EQ(unknown.tokens[1].text, "[UNK]");
  EXPECT_EQ(unknown.note, "");
  const ModelInput bytes = load_model(golden_folder() / "decoders" / "written")->prepare_text(word);
  EXPECT_EQ(bytes.token_ids.size(1), 512);
  EXPECT_EQ(bytes.note, "text cut at 512 of 1000000 tokens");
}

// Of 21 tokens beside the special ones the longer text gets 11, the second of two that are as long: what
// transformers' tokenizer gives with truncation to 24 tokens.
TEST(TextInput, OfAPairThatIsCutTheLongerTextGetsTheOddToken) {
  const auto model = load_model(golden_folder() / "models" / "bert");
  const auto tokens_of_second = [&](const int first, const int second) {
    std::string one, other;
    for (int i = 0; i < first; ++i) one += "cat ";
    for (int i = 0; i < second; ++i) other += "mat ";
    const ModelInput input = model->prepare_text(one, other);
    EXPECT_EQ(input.token_ids.size(1), 24);
    return input.token_types.sum().item<std::int64_t>() - 1; // its [SEP]
  };
  EXPECT_EQ(tokens_of_second(30, 30), 11);
  EXPECT_EQ(tokens_of_second(30, 31), 11);
  EXPECT_EQ(tokens_of_second(31, 30), 10);
  EXPECT_EQ(tokens_of_second(30, 10), 10);
  EXPECT_EQ(tokens_of_second(9, 30), 12);
}

TEST(Models, RefuseTheOtherKindOfInput) {
  const auto bert = load_model(golden_folder() / "models" / "bert");
  const auto vit = load_model(golden_folder() / "models" / "vit");
  EXPECT_THROW(bert->prepare_image(Image{1, 1, {0, 0, 0}}), UsageError);
  EXPECT_THROW(vit->prepare_text("cat"), UsageError);
  EXPECT_THROW(bert->embed(ModelInput{}), UsageError);
  EXPECT_THROW(vit->embed(ModelInput{}), UsageError);
}

TEST(Models, SayWhatTheyAre) {
  const auto folder = golden_folder() / "models";
  const ModelInfo deit = load_model(folder / "deit-distilled")->info();
  EXPECT_EQ(deit.family, "deit-distilled");
  EXPECT_EQ(deit.prefix_tokens, 2);
  EXPECT_EQ(deit.labels.size(), 6U);
  EXPECT_EQ(deit.labels.front(), "cat");
  EXPECT_TRUE(deit.has_classifier);
  EXPECT_EQ(deit.image_size, 12);
  const ModelInfo mlm = load_model(folder / "bert-mlm")->info();
  EXPECT_FALSE(mlm.has_classifier);
  EXPECT_EQ(mlm.max_tokens, 24);
  const ModelInfo read = read_model_info(folder / "dinov2");
  EXPECT_EQ(read.family, "dinov2");
  EXPECT_EQ(read.patch_size, 14);
  EXPECT_EQ(read.image_size, 28);
  EXPECT_TRUE(read.has_classifier);
}

} // namespace
} // namespace hydrascope::test
