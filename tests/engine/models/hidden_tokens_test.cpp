// Tokens that are hidden: what was on them makes no difference any more, and what is left does.
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"
#include "engine/models/transformer/model.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

at::Tensor logits_of(const Model& model, const ModelInput& input, const char* kernel_name) {
  const auto kernel = make_kernel({.name = kernel_name, .parameters = {}});
  at::Tensor hidden = model.embed(input);
  const ModelInfo& info = model.info();
  for (int layer = 0; layer < info.layers; ++layer)
    hidden = model.block(layer, hidden, input, *kernel,
                         kernel->initial_parameters({info.heads, info.width / info.heads}, layer));
  return model.logits(hidden, input);
}

TEST(HiddenTokens, AMaskedWordNoLongerMatters) {
  const auto model = load_model(golden_folder() / "models" / "bert");
  ModelInput one = model->prepare_text("the cat sat on the mat");
  ASSERT_GT(one.token_ids.size(1), 5);
  ModelInput other = one;
  other.token_ids = one.token_ids.clone();
  other.token_ids.select(1, 2).fill_(one.token_ids[0][5]);
  ASSERT_FALSE(one.token_ids.equal(other.token_ids));
  const std::vector<std::int64_t> hidden = {2};
  for (const char* kernel : {"softmax", "hydra-cosine", "hedgehog"}) {
    EXPECT_GT((logits_of(*model, one, kernel) - logits_of(*model, other, kernel)).abs().max().item<float>(),
              1e-6F)
        << kernel;
    const at::Tensor without = logits_of(*model, model->with_hidden(one, hidden), kernel);
    EXPECT_TRUE(without.equal(logits_of(*model, model->with_hidden(other, hidden), kernel))) << kernel;
    EXPECT_FALSE(without.equal(logits_of(*model, one, kernel))) << kernel;
  }
  EXPECT_FALSE(one.mask.defined()); // the input itself stays as it was
}

TEST(HiddenTokens, AHiddenPatchNoLongerMatters) {
  const auto model = load_model(golden_folder() / "models" / "vit");
  const ModelInfo& info = model->info();
  const std::int64_t side = info.image_size, patch = info.patch_size;
  ModelInput input;
  input.pixels = at::rand({1, 3, side, side}) * 2 - 1;
  input.layout = {info.prefix_tokens, side / patch, side / patch};
  const at::Tensor before = input.pixels.clone();
  // Row 1, column 0.
  const std::vector<std::int64_t> tokens = {input.layout.prefix + input.layout.columns};
  const ModelInput hidden = model->with_hidden(input, tokens);
  EXPECT_TRUE(input.pixels.equal(before));
  const auto cell = [&](const at::Tensor& pixels) {
    return pixels.narrow(2, patch, patch).narrow(3, 0, patch);
  };
  EXPECT_EQ(cell(hidden.pixels).abs().max().item<float>(), 0.0F);
  EXPECT_EQ((hidden.pixels != before).sum().item<std::int64_t>(),
            (cell(before) != 0).sum().item<std::int64_t>());
  EXPECT_FALSE(logits_of(*model, hidden, "softmax").equal(logits_of(*model, input, "softmax")));
}

TEST(HiddenTokens, RefusesWhatTheResultIsReadFrom) {
  const auto text = load_model(golden_folder() / "models" / "bert");
  const ModelInput words = text->prepare_text("the cat sat");
  const std::vector<std::int64_t> first = {0}, beyond = {99}, negative = {-1};
  for (const auto& tokens : {first, beyond, negative})
    EXPECT_THROW(text->with_hidden(words, tokens), UsageError);
  const auto vision = load_model(golden_folder() / "models" / "deit-distilled");
  ModelInput picture;
  const std::int64_t side = vision->info().image_size;
  picture.pixels = at::rand({1, 3, side, side});
  picture.layout = {2, side / vision->info().patch_size, side / vision->info().patch_size};
  const std::vector<std::int64_t> distillation = {1};
  EXPECT_THROW(vision->with_hidden(picture, distillation), UsageError);
  EXPECT_THROW(vision->with_hidden(picture, beyond), UsageError);
}

} // namespace
} // namespace hydrascope::test
