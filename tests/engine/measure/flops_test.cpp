// Flops against what the Hydra paper prints, against each kernel's formula, and against the sizes of the
// weights of real checkpoints.
#include "engine/measure/flops.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/engine/models/golden.h"

namespace hydrascope {
namespace {

using test::message_of;
using testing::AllOf, testing::HasSubstr;

constexpr double giga = 1e9;

Flops image_flops(const std::string& architecture, int side, const ScheduleText& text) {
  const Architecture& named = architecture_named(architecture);
  return flops_of_image(named, side, side, parse_schedule(text, named.layers));
}

Flops text_flops(const std::string& architecture, int tokens, const ScheduleText& text) {
  const Architecture& named = architecture_named(architecture);
  return flops_of_text(named, tokens, parse_schedule(text, named.layers));
}

ScheduleText everywhere(const std::string& kernel) { return {.kernel = kernel}; }
ScheduleText hydra_in_the_last(int layers) {
  return {.replace = {"back:" + std::to_string(layers) + "=hydra-cosine"}};
}

// Hydra paper, tables 2 (224 px) and 3 (384 px), and the figure for PolyNL without its unused W_q.
TEST(Flops, TotalsAreThoseOfTheHydraPaper) {
  struct Case {
    int side = 0;
    ScheduleText schedule;
    double printed = 0;
  };
  const Case cases[] = {
      {224, everywhere("softmax"), 17.58},      {224, hydra_in_the_last(2), 17.46},
      {224, hydra_in_the_last(8), 17.11},       {224, everywhere("hydra-cosine"), 16.87},
      {224, hydra_in_the_last(12), 16.87},      {384, everywhere("softmax"), 55.54},
      {384, hydra_in_the_last(2), 54.52},       {384, hydra_in_the_last(7), 51.96},
      {384, everywhere("hydra-cosine"), 49.40}, {224, everywhere("poly-nl"), 15.47},
      {224, everywhere("aft-simple"), 16.87},
  };
  for (const Case& expected : cases)
    EXPECT_NEAR(image_flops("deit-base", expected.side, expected.schedule).total() / giga, expected.printed,
                0.01)
        << expected.side << " px, " << written_schedule(expected.schedule);
}

// Hydra paper, table 4.
TEST(Flops, BlocksAndSharesAreThoseOfTheHydraPaper) {
  struct Case {
    int side;
    double softmax, hydra, local_window, softmax_share;
  };
  const Case cases[] = {{384, 55.1, 49.0, 51.1, 11.13},
                        {448, 78.0, 66.7, 69.5, 14.56},
                        {1024, 657.3, 348.1, 362.8, 47.06},
                        {1280, 1298.9, 543.8, 566.9, 58.14}};
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.side);
    const Flops softmax = image_flops("deit-base", expected.side, everywhere("softmax"));
    const Flops hydra = image_flops("deit-base", expected.side, everywhere("hydra-cosine"));
    const Flops window = image_flops("deit-base", expected.side, everywhere("local-window"));
    EXPECT_NEAR(softmax.blocks() / giga, expected.softmax, 0.1);
    EXPECT_NEAR(hydra.blocks() / giga, expected.hydra, 0.1);
    EXPECT_NEAR(window.blocks() / giga, expected.local_window, 0.1);
    EXPECT_NEAR(100 * softmax.attention_share(), expected.softmax_share, 0.01);
    EXPECT_NEAR(100 * hydra.attention_share(), 0.02, 0.01);
    EXPECT_NEAR(100 * window.attention_share(), 4.10, 0.01);
  }
  EXPECT_NEAR(100 * image_flops("deit-base", 224, everywhere("softmax")).attention_share(), 4.10, 0.01);
}

// Hydra paper, table 4, at 224 px: 17.6 is the total of table 2 with one decimal, but its share, 4.10 %, is
// of the blocks as at the other sizes.
TEST(Flops, Table4MixesTheConventionsAt224Pixels) {
  for (const char* const name : {"deit-base", "vit-base"}) {
    const Flops softmax = image_flops(name, 224, everywhere("softmax"));
    EXPECT_NEAR(softmax.total() / giga, 17.6, 0.05);
    EXPECT_NEAR(softmax.blocks() / giga, 17.45, 0.005);
    EXPECT_GT(17.6 - softmax.blocks() / giga, 0.1) << "no rounding of the blocks";
    double attention = 0;
    for (const LayerFlops& layer : softmax.layers) attention += layer.attention;
    EXPECT_NEAR(100 * attention / softmax.blocks(), 4.10, 0.005);
    EXPECT_NEAR(100 * attention / softmax.total(), 4.07, 0.005) << "not of the total";
  }
}

// As printed widely for the other sizes: Touvron et al. (2021) and its successors.
TEST(Flops, OtherSizesAgreeWithThePublishedFigures) {
  // Printed with one decimal; 1.258, 4.608 and 61.604 are counted.
  EXPECT_NEAR(image_flops("deit-tiny", 224, {}).total() / giga, 1.3, 0.05);
  EXPECT_NEAR(image_flops("deit-small", 224, {}).total() / giga, 4.6, 0.025);
  EXPECT_NEAR(image_flops("vit-large", 224, {}).total() / giga, 61.6, 0.0125);
}

// kernels.md's costs of the attention operation alone; D = H·d.
TEST(Flops, EachKernelHasItsOwnCost) {
  struct Case {
    const char* kernel;
    double (*formula)(double N, double H, double d);
  };
  const Case cases[] = {
      {"softmax", [](double N, double H, double d) { return 2 * N * N * H * d; }},
      {"sdpa", [](double N, double H, double d) { return 2 * N * N * H * d; }},
      {"softmax:heads=4", [](double N, double H, double d) { return 2 * N * N * H * d; }},
      {"local-window", [](double N, double H, double d) { return 2 * N * 64 * H * d; }},
      {"linear-cosine", [](double N, double H, double d) { return 2 * N * H * d * d; }},
      {"linear-cosine:heads=4", [](double N, double H, double d) { return 2 * N * H * d * H * d / 4; }},
      {"hydra-cosine", [](double N, double H, double d) { return 2 * N * H * d; }},
      {"hydra-l1", [](double N, double H, double d) { return 2 * N * H * d; }},
      {"elu", [](double N, double H, double d) { return 2 * N * H * d * d + N * H * d; }},
      {"exp-t2", [](double N, double H, double d) { return 2 * N * H * d * d + N * H * d; }},
      {"cosformer", [](double N, double H, double d) { return 2 * N * H * d * 2 * d + N * H * 2 * d; }},
      {"taylor", [](double N, double H, double d) { return (2 * N * H * d + N * H) * (1 + d + d * d); }},
      {"t2r", [](double N, double H, double d) { return 2 * N * H * d * d + N * H * d + 2 * N * H * d * d; }},
      {"hedgehog",
       [](double N, double H, double d) { return (2 * N * H * d + N * H) * 2 * d + 2 * N * H * d * d; }},
      {"performer:features=100",
       [](double N, double H, double d) { return (2 * N * H * d + N * H) * 100 + 2 * N * H * d * 100; }},
  };
  constexpr int tokens = 300;
  for (const Case& expected : cases) {
    const Flops flops = text_flops("minilm", tokens, everywhere(expected.kernel));
    for (const LayerFlops& layer : flops.layers)
      EXPECT_DOUBLE_EQ(layer.attention, expected.formula(tokens, 12, 32)) << expected.kernel;
  }
}

TEST(Flops, EveryKernelOfTheRegistryIsCounted) {
  for (const KernelInfo& info : kernel_infos()) {
    const Flops flops = image_flops("deit-small", 224, everywhere(info.name));
    EXPECT_GT(flops.attention_share(), 0) << info.name;
    EXPECT_LT(flops.attention_share(), 1) << info.name;
    const bool counted = flops.layers[0].attention_counted == flops.layers[0].attention;
    EXPECT_EQ(counted, !info.implied_weights) << info.name << ": element-wise products are not in total";
  }
}

TEST(Flops, AKernelsOwnLayerNormCountsInTotalAlone) {
  const Flops plain = image_flops("deit-base", 224, everywhere("hydra-cosine"));
  const Flops normed = image_flops("deit-base", 224, everywhere("hydra-cosine-ln"));
  EXPECT_DOUBLE_EQ(normed.total() - plain.total(), 12 * 5.0 * 197 * 768);
  EXPECT_DOUBLE_EQ(normed.blocks(), plain.blocks());
}

TEST(Flops, PolyNlNeedsNoQueryProjection) {
  const Flops hydra = image_flops("deit-base", 224, everywhere("hydra-mean"));
  const Flops poly = image_flops("deit-base", 224, everywhere("poly-nl"));
  EXPECT_DOUBLE_EQ(hydra.blocks() - poly.blocks(), 12 * 197.0 * 768 * 768);
}

TEST(Flops, LayersFollowTheScheduleAndAddUp) {
  const Flops flops = image_flops("deit-base", 224, {.layers = {"3=hydra-cosine;5,7=elu"}});
  ASSERT_EQ(flops.layers.size(), 12u);
  double total = flops.embedding + flops.norms + flops.head, blocks = 0;
  for (std::size_t layer = 0; layer < 12; ++layer) {
    const std::string expected = layer == 3 ? "hydra-cosine" : layer == 5 || layer == 7 ? "elu" : "softmax";
    EXPECT_EQ(flops.layers[layer].kernel.text(), expected) << layer;
    total += flops.layers[layer].total();
    blocks += flops.layers[layer].blocks();
  }
  EXPECT_DOUBLE_EQ(flops.total(), total);
  EXPECT_DOUBLE_EQ(flops.blocks(), blocks);
  EXPECT_DOUBLE_EQ(flops.embedding, 196.0 * 3 * 16 * 16 * 768);
  EXPECT_DOUBLE_EQ(flops.head, 768 * 1000.0);
}

TEST(Flops, TextHasNoPatchesAndEmbedsWithANorm) {
  for (const int tokens : {1, 128, 4096}) {
    const double N = tokens, D = 768;
    const Flops flops = text_flops("bert-base", tokens, {});
    EXPECT_EQ(flops.tokens, tokens);
    EXPECT_DOUBLE_EQ(flops.blocks(), 12 * (12 * N * D * D + 2 * N * N * D));
    EXPECT_DOUBLE_EQ(flops.total(), flops.blocks() + 25 * 5 * N * D);
  }
}

TEST(Flops, PicturesNeedNotBeSquare) {
  const Architecture& base = architecture_named("deit-base-distilled");
  const Flops flops = flops_of_image(base, 160, 320, parse_schedule({}, base.layers));
  EXPECT_EQ(flops.tokens, 2 + 10 * 20);
  EXPECT_DOUBLE_EQ(flops.head, 2 * 768 * 1000.0);
}

TEST(Flops, SizesThatMakeNoSenseAreRefused) {
  EXPECT_THAT(message_of<UsageError>([] { image_flops("deit-base", 225, {}); }),
              AllOf(HasSubstr("--image-size"), HasSubstr("225"), HasSubstr("224 or 240")));
  EXPECT_THAT(message_of<UsageError>([] { image_flops("deit-base", 8, {}); }), HasSubstr("choose 16"));
  EXPECT_THAT(message_of<UsageError>([] { text_flops("minilm", 0, {}); }), HasSubstr("--tokens"));
  EXPECT_THAT(message_of<UsageError>([] { text_flops("deit-base", 8, {}); }), HasSubstr("pictures"));
  EXPECT_THAT(message_of<UsageError>([] { image_flops("minilm", 224, {}); }), HasSubstr("text"));
  EXPECT_THAT(message_of<UsageError>([] { image_flops("deit-base", 224, everywhere("softmax:heads=7")); }),
              HasSubstr("heads=7"));
  const Architecture& base = architecture_named("deit-base");
  EXPECT_THAT(message_of<UsageError>([&] { flops_of_image(base, 224, 224, parse_schedule({}, 6)); }),
              HasSubstr("12"));
}

TEST(Architecture, UnknownNamesAreToldTheNearest) {
  EXPECT_THAT(
      message_of<UsageError>([] { architecture_named("diet-base"); }),
      AllOf(HasSubstr("--architecture"), HasSubstr("nearest name is deit-base"), HasSubstr("minilm")));
}

// The matrix products of a block are its weights, once for each token; those of the head are the head's.
class ArchitectureOfModel : public testing::TestWithParam<const char*> {};

TEST_P(ArchitectureOfModel, CountsTheCheckpointsWeights) {
  std::filesystem::path folder = test::golden_folder() / "models" / GetParam();
  if (!std::filesystem::exists(folder)) folder = test::golden_folder() / "decoders" / GetParam();
  const Architecture architecture = architecture_of_model(folder);
  const auto model = load_model(folder);
  double block_weights = 0, head_weights = 0, token_head_weights = 0, patch_weights = 0, word_weights = 0;
  for (const std::string& name : model->parameter_names()) {
    const at::Tensor parameter = model->parameter(name);
    const auto entries = static_cast<double>(parameter.numel());
    if (parameter.dim() < 2) continue;
    if (name.starts_with("encoder.layer.")) block_weights += entries;
    if (name.find("classifier") != std::string::npos || name.starts_with("pooler")) head_weights += entries;
    if (name.starts_with("cls.predictions.transform") || name == "lm_head.weight")
      token_head_weights += entries;
    if (name == "embeddings.word_embeddings.weight" || name == "embed_tokens.weight") word_weights = entries;
    if (name == "embeddings.patch_embeddings.projection.weight") patch_weights += entries;
  }
  constexpr int tokens = 9, patches = 3;
  const Schedule schedule = parse_schedule({}, architecture.layers);
  const bool image = architecture.input == InputKind::image;
  const Flops flops = image ? flops_of_image(architecture, patches * architecture.patch_height,
                                             patches * architecture.patch_width, schedule)
                            : flops_of_text(architecture, tokens, schedule);
  double products = 0;
  for (const LayerFlops& layer : flops.layers) products += layer.projections + layer.mlp;
  EXPECT_DOUBLE_EQ(products, block_weights * static_cast<double>(flops.tokens));
  EXPECT_DOUBLE_EQ(flops.embedding, patches * patches * patch_weights);
  const bool decoder = model->info().causal;
  EXPECT_GT(head_weights + token_head_weights + (decoder ? word_weights : 0), 0)
      << "the checkpoint has a head";
  // The last product is often with the table of words.
  if (decoder ? token_head_weights == 0 : token_head_weights > 0) token_head_weights += word_weights;
  EXPECT_DOUBLE_EQ(flops.head, token_head_weights > 0 ? token_head_weights * tokens : head_weights);
}

INSTANTIATE_TEST_SUITE_P(Golden, ArchitectureOfModel,
                         testing::Values("deit", "deit-distilled", "vit", "timm-vit", "timm-deit-distilled",
                                         "dinov2", "bert", "bert-mlm", "gpt2", "llama-linear", "llama3-tied"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ArchitectureOfModel, ReadsAGatedMlpAndTheSizeOfPreprocessing) {
  const test::ScratchFolder scratch;
  scratch.write("config.json", R"({"model_type": "dinov2", "architectures": ["Dinov2Model"],
    "hidden_size": 48, "num_attention_heads": 2, "num_hidden_layers": 2, "mlp_ratio": 4,
    "use_swiglu_ffn": true, "image_size": 518, "patch_size": 14})");
  scratch.write("preprocessor_config.json", R"({"image_processor_type": "BitImageProcessor",
    "do_center_crop": true, "crop_size": {"height": 230, "width": 140}, "size": {"shortest_edge": 256}})");
  const Architecture architecture = architecture_of_model(scratch.path());
  EXPECT_EQ(architecture.image_height, 224) << "16 whole patches of 14";
  EXPECT_EQ(architecture.image_width, 140);
  EXPECT_EQ(architecture.head_products, 0);
  const Flops flops = flops_of_image(architecture, 224, 140, parse_schedule({}, 2));
  EXPECT_DOUBLE_EQ(flops.layers[0].mlp, 3.0 * (1 + 16 * 10) * 48 * 128) << "SwiGLU's hidden width is 2/3";
}

TEST(FlopsTable, DefaultsAreTheRowsOfThePaper) {
  const Architecture& base = architecture_named("deit-base");
  const auto rows = flops_table(base, default_sizes(base), default_schedules(base));
  const auto row = [&](int side, const std::string& schedule) {
    const auto found = std::ranges::find_if(rows, [&](const FlopsRow& candidate) {
      return candidate.size.height == side && candidate.schedule == schedule;
    });
    return found == rows.end() ? std::nan("") : found->flops.total() / giga;
  };
  EXPECT_NEAR(row(224, "back:8=hydra-cosine"), 17.11, 0.01);
  EXPECT_NEAR(row(384, "back:7=hydra-cosine"), 51.96, 0.01);
  EXPECT_NEAR(row(224, "softmax"), 17.58, 0.01);
  EXPECT_NEAR(row(224, "poly-nl"), 15.47, 0.01);
  EXPECT_GT(row(1280, "local-window"), 566.9);
}

TEST(FlopsTable, DefaultsFitEveryArchitectureAndPatchSize) {
  for (Architecture architecture : known_architectures()) {
    for (const int patch : {architecture.patch_height, 13, 32, 500}) {
      architecture.patch_height = architecture.patch_width = patch;
      const auto sizes = default_sizes(architecture);
      EXPECT_FALSE(sizes.empty());
      EXPECT_NO_THROW(flops_table(architecture, sizes, {ScheduleText{}}))
          << architecture.name << ' ' << patch;
    }
  }
}

TEST(FlopsTable, SchedulesAreWrittenAsOnTheCommandLine) {
  EXPECT_EQ(written_schedule({}), "softmax");
  EXPECT_EQ(written_schedule({.kernel = "elu"}), "elu");
  EXPECT_EQ(written_schedule({.replace = {"back:2=hydra-cosine"}}), "back:2=hydra-cosine");
  EXPECT_EQ(written_schedule({.kernel = "elu", .replace = {"front:1=softmax"}, .layers = {"5=sdpa"}}),
            "elu front:1=softmax 5=sdpa");
}

} // namespace
} // namespace hydrascope
