// What labels say about runs: changes between A and B, times, adapters, checked weights.
#include <limits>

#include <gtest/gtest.h>

#include "app/views/adapter_view.h"
#include "app/views/focus_view.h"
#include "app/views/scaling_view.h"
#include "app/views/table_views.h"
#include "app/views/timing_view.h"
#include "app/views/training_view.h"
#include "app/views/weights_check.h"
#include "app/views/weights_view.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"

namespace hydrascope::app::tests {
namespace {

constexpr int layers = 4;

RunResult run_of_layers(const std::string& last_kernel) {
  RunResult run;
  run.device = "cpu";
  run.dtype = "float32";
  run.layers.resize(layers);
  run.layers.back().kernel.name = last_kernel;
  return run;
}

TEST(PredictionChange, IsAMinusB) {
  EXPECT_EQ(difference_in_points(0.75, 0.5), "+25.0");
  EXPECT_EQ(difference_in_points(0.5, 0.75), "−25.0");
  EXPECT_EQ(difference_in_points(0.5, 0.50001), "0.0");
}

RunResult run_with_hidden_patches(const Prediction& now) {
  RunResult run = run_of_layers("softmax");
  run.rows = 2;
  run.hidden_tokens = {1, 2};
  run.predictions = {now};
  run.whole = WholeInput{.predictions = {{.index = 3, .label = "cat", .probability = 0.75, .logit = 1}},
                         .similarity = 1};
  return run;
}

TEST(HidingEffect, NamesTheSideWhereBothAreShown) {
  const RunResult a = run_with_hidden_patches({.index = 3, .label = "cat", .probability = 0.5, .logit = 0.5});
  RunResult b = run_with_hidden_patches({.index = 4, .label = "dog", .probability = 0.25, .logit = 0});
  EXPECT_EQ(effect_lines(&a, nullptr, false), std::vector<std::string>{"2 hidden: cat 75 % → 50 %"});
  const std::string of_b = "B, 2 hidden: cat 75 % became dog 25 %";
  EXPECT_EQ(effect_lines(&a, &b, true), (std::vector<std::string>{"A, 2 hidden: cat 75 % → 50 %", of_b}));
  EXPECT_EQ(effect_lines(nullptr, &b, true), std::vector<std::string>{of_b}); // A has failed
  b.whole.reset();
  EXPECT_EQ(effect_lines(&a, &b, true), std::vector<std::string>{"A, 2 hidden: cat 75 % → 50 %"});
  const RunResult whole = run_of_layers("softmax");
  EXPECT_TRUE(effect_lines(&whole, nullptr, false).empty());
}

TEST(PredictionsFigure, SaysThatLabelsAreIndependent) {
  RunResult run = run_of_layers("softmax");
  run.predictions = {{.index = 0, .label = "indoors", .probability = 0.75, .logit = 1},
                     {.index = 1, .label = "night", .probability = 0.5, .logit = 0}};
  const std::vector<const RunResult*> runs = {&run};
  const auto label = [&] { return std::get<BarsPanel>(predictions_figure(runs).panels.front()).x_label; };
  EXPECT_EQ(label(), "probability");
  run.model.independent_labels = true;
  EXPECT_EQ(label(), "probability of each label");
}

TEST(KernelLabels, NameAMapAsItsUserDoes) {
  const KernelSpec map = kernel_of_source("my-map", "def phi(x):\n    return x * x\n");
  EXPECT_EQ(map.label(), "phi my-map");
  EXPECT_EQ(parse_kernel_spec(map.text()), map); // what is stored is another thing
  EXPECT_EQ((KernelSpec{.name = "phi", .parameters = {}}).label(), "phi");
  EXPECT_EQ((KernelSpec{.name = "performer", .parameters = {{"features", "32"}}}).label(),
            "performer:features=32");
  EXPECT_EQ((Schedule{.layers = {{}, map, map}}).summary(), "softmax ×1, phi my-map ×2");
}

TEST(HeadLabels, NameTheHeadsThatThereAre) {
  const HeadChoice beyond{.head = 5, .fusion = HeadFusion::mean},
      some{.head = std::nullopt, .fusion = HeadFusion::max, .subset = {1, 5}};
  EXPECT_EQ(existing_heads(beyond, 6), beyond);
  EXPECT_EQ(existing_heads(beyond, 3).text(), "head 2");
  EXPECT_EQ(existing_heads(some, 3).text(), "maximum of heads 1");
  EXPECT_EQ(existing_heads(some, 1).text(), "head 0");
  EXPECT_EQ(existing_heads({}, 1).text(), "mean of heads");
}

TEST(HeadLabels, NoOtherHeadIsDrawnUnderTheName) {
  RunResult run = run_of_layers("elu");
  run.tokens = {{"the", 0, false}, {"cat", 1, false}};
  AttentionRowResult row;
  row.key = {.layer = 3, .query = 0};
  row.weights = {{1, 2}, {0.25F, 0.75F}};
  EXPECT_EQ(attention_map(run, row, {.head = 0, .fusion = HeadFusion::mean}, {}).values.values,
            row.weights.values);
  try {
    attention_map(run, row, {.head = 1, .fusion = HeadFusion::mean}, {});
    FAIL() << "head 1 of 1";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--head: the kernel of layer 3 has 1 heads and no head 1; heads are numbered from 0");
  }
}

TEST(TimingLabels, NameTheSettingInWords) {
  const RunResult run = run_of_layers("softmax");
  EXPECT_EQ(execution_text(run, path_text("composed")), "CPU · float32 · reference");
  EXPECT_EQ(execution_text(run, path_text("fused cpu")), "CPU · float32 · fused");
  EXPECT_EQ(path_text("composed, fused cpu"), "reference, fused");
  EXPECT_EQ(path_text("LibTorch sdpa, flash"), "LibTorch sdpa, flash");
  EXPECT_EQ(execution_text(run, ""), "CPU · float32");
  EXPECT_EQ(execution_text("cuda:1", "bfloat16"), "CUDA:1 · bfloat16");
  EXPECT_EQ(scaling_caption({.heads = 6, .head_width = 64, .threads = 1, .device = "cpu"}),
            "H = 6, d = 64, batch 1, attention alone, CPU · float32, 1 thread");
}

TEST(WeightsCheck, ADifferenceIsMoreThanAHalfTypesRounding) {
  WeightsResult weights;
  weights.check = 5e-4;
  EXPECT_FALSE(differs_from_output(weights));
  weights.check = 0.02;
  EXPECT_TRUE(differs_from_output(weights));
  weights.rounding = 0.03;
  EXPECT_FALSE(differs_from_output(weights));
  weights.check = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(differs_from_output(weights)) << "it was not checked";
}

TEST(WeightsScale, SaysWhatItCutsOff) {
  WeightsOptions options;
  EXPECT_EQ(positive_weights_scale(0.5, options).label, "attention weight");
  options.logarithmic = true;
  const Scale scale = positive_weights_scale(0.5, options);
  EXPECT_EQ(scale.label, "attention weight, from 10⁻⁴ of the largest");
  EXPECT_DOUBLE_EQ(scale.low, 0.5e-4);
}

TEST(TimingLabels, NameTheMemoryOfTheDevice) {
  RunResult run = run_of_layers("softmax");
  run.peak_bytes = 312'000'000;
  EXPECT_EQ(memory_text(run), "312 MB");
  run.device_bytes = 1'200'000'000;
  run.device_total_bytes = 85'000'000'000;
  EXPECT_EQ(memory_text(run), "1.2 GB of 85.0 GB");
}

TEST(TimingLabels, NameTheLayersWithoutATimeOnce) {
  RunResult run = run_of_layers("elu");
  TimingRecord times;
  TimingView view = timing_view(run, times, {});
  EXPECT_EQ(view.runs, "0 runs");
  EXPECT_EQ(untimed_layers(view), "layers 0–3");
  for (LayerRun& layer : run.layers) layer.cached = true;
  run.layers[1].cached = false;
  times.add(run);
  view = timing_view(run, times, {});
  EXPECT_EQ(view.runs, "0–1 runs");
  EXPECT_EQ(untimed_layers(view), "layers 0, 2–3");
  EXPECT_EQ(cold_layers(view), "layer 1");
  for (LayerRun& layer : run.layers) layer.cached = false;
  times.add(run);
  view = timing_view(run, times, {});
  EXPECT_EQ(view.runs, "1 run");
  EXPECT_EQ(untimed_layers(view), "");
  EXPECT_EQ(cold_layers(view), "layers 0, 2–3");
}

TEST(TrainingResult, SaysWhatWasGainedAndWhereItIs) {
  TrainingReport report;
  report.state = TrainingState::finished;
  report.kernel.name = "hedgehog";
  report.outcome.steps = 180;
  report.outcome.adapter.path = "/adapters/maps.safetensors";
  report.outcome.before.divergence = 0.8402;
  report.outcome.held_out.divergence = 0.0704;
  report.seconds = 11.4;
  EXPECT_EQ(training_result_text(report),
            "hedgehog's weights are 12 times closer to softmax's: KL 0.84 → 0.0704 nats in 11 s, on held-out "
            "data, after 180 steps.\n"
            "Kept in /adapters/maps.safetensors");
  report.seconds = 2.34;
  EXPECT_EQ(training_gain_text(report),
            "hedgehog's weights are 12 times closer to softmax's: KL 0.84 → 0.0704 nats in 2.3 s");
  report.kind = TrainingKind::finetune;
  report.outcome.before.accuracy = 0.5;
  report.outcome.held_out.accuracy = 0.75;
  report.seconds = 65;
  EXPECT_EQ(training_gain_text(report), "Top-1 50 % → 75 % in 1:05 min");
  report.outcome.held_out.constant_answer = 0.625;
  EXPECT_EQ(training_gain_text(report),
            "Top-1 50 % → 75 % (62.5 % for always the commonest class) in 1:05 min");
  report.outcome.held_out.measure = HeldOutMeasure::correlation;
  report.outcome.before.pearson = 0.25;
  report.outcome.held_out.pearson = 0.5;
  report.outcome.held_out.constant_answer = 0;
  EXPECT_EQ(training_gain_text(report), "Pearson correlation 0.25 → 0.5 in 1:05 min");
  report.outcome.held_out.measure = HeldOutMeasure::perplexity;
  report.outcome.before.perplexity = 40;
  report.outcome.held_out.perplexity = 20;
  EXPECT_EQ(training_gain_text(report), "Perplexity 40 → 20 in 1:05 min");
}

TEST(AdapterState, SaysWhatAnAdapterNeeds) {
  RunResult run = run_of_layers("hydra-cosine");
  run.layers.back().untrained = true;
  EXPECT_EQ(adapter_state(run, 3, {}).text, "untrained: model not adapted to hydra-cosine in layer 3");
  FoundAdapter adapter{.info = {}, .bundled = true, .applied = false, .holds = true};
  adapter.info.name = "tail";
  for (const int layer : {2, 3}) adapter.info.layers.push_back({layer, {.name = "hydra-cosine"}});
  EXPECT_EQ(adapter_state(run, 3, {adapter}).text,
            "untrained: needs hydra-cosine in layers 2 and 3: tail, bundled");
  run.layers[2].kernel.name = "hydra-cosine";
  EXPECT_EQ(adapter_state(run, 3, {adapter}).text, "untrained: adapter not in use: tail, bundled");
}

TEST(PrefixNames, AreOfRegistersWhereThereAreMoreThanTwo) {
  RunResult run;
  run.rows = run.columns = 2;
  run.prefix_tokens = 2;
  run.tokens.resize(6);
  run.tokens[1].text = "[distillation]";
  EXPECT_EQ(prefix_name(run, 1), "distillation token");
  run.prefix_tokens = 5;
  run.tokens.resize(9);
  run.tokens[1].text = "[register 1]";
  EXPECT_EQ(prefix_name(run, 0), "class token");
  EXPECT_EQ(query_text(run, 1), "query: [register 1]");
}

TEST(FocusNote, SaysWhereAPatchHasAnEffect) {
  RunResult run = run_of_layers("softmax");
  run.rows = run.columns = 2;
  run.prefix_tokens = 1;
  run.tokens.resize(5);
  run.query = 2;
  FocusResult focus;
  focus.layer = layers - 1;
  focus.contributions = {{5}, {0, 0, 0, 0, 0}};
  focus.zero_gradient = true;
  EXPECT_EQ(focus_map(run, focus, {}).note,
            "this patch cannot affect the prediction here; try layer 2 or attention");
  focus.zero_gradient = false;
  focus.share = -3.11;
  focus.contributions.values = {0.08f, 1, 0, 0, 0};
  const TokenMap map = focus_map(run, focus, {});
  EXPECT_EQ(map.note, prefix_name(run, 0) + " itself 0.08");
  EXPECT_EQ(map.details, "This query carries −311 % of the target's sum over all queries.");
}

} // namespace
} // namespace hydrascope::app::tests
