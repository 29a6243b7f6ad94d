// Every kind of figure: it draws, the same bytes each time, and can be drawn again from its own metadata; and
// its numbers are those that follow from what transformers computed for a golden model.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/engine/run/quantities/spearman_definition.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string sentence = " --text 'the hedgehog eats a porcupine' ";

const std::string golden_picture =
    " --model '" + (source_folder() / "tests/golden/models/dinov2").string() + "' --PICTURE '" +
    (source_folder() / "tests/golden/images/pictures/gradient.png").string() + "' ";

const std::string golden_decoder =
    " --model '" + (source_folder() / "tests/golden/decoders/written").string() + "' ";

std::string with_option(std::string text, const std::string& name) {
  return text.replace(text.find("PICTURE"), 7, name);
}

struct Kind {
  const char* name;
  std::string arguments;
  std::size_t panels;
  bool measured = false; // times: another figure each time
};

void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

class FigureKinds : public ProgramTest, public testing::WithParamInterface<Kind> {
protected:
  std::string arguments() const {
    std::string text = GetParam().arguments;
    if (const auto data = text.find("DATA"); data != std::string::npos) text.replace(data, 4, at("data"));
    return "figure " + std::string(GetParam().name) + text;
  }
  void write(const std::string& text) const { std::ofstream(at("data")) << text; }
  void SetUp() override {
    const std::string kind = GetParam().name;
    if (kind == "loss") write("step,loss\n1,2.5\n2,1.25\n");
    if (kind == "recall") write(R"([{"kernel":"elu","accuracy":0.17,"entropy":3.0}])");
    if (kind == "roofline")
      write(R"([{"kernel":"elu","N":64,"flops_per_second":2e9,"bytes_per_second":1e9,)"
            R"("share_of_bandwidth":0.1,"share_of_flops":0.05}])");
    if (kind == "table" || kind == "kl") write("a hedgehog\nthe porcupine eats\n");
  }
};

TEST_P(FigureKinds, DrawsTheSameEachTimeAndAgain) {
  for (const std::string ending : {".json", ".svg", ".pdf", ".png"}) {
    const std::string first = at("first" + ending), again = at("again" + ending);
    const Outcome outcome = hydrascope(arguments() + " -o " + first);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    if (ending == ".json") {
      const auto figure = json::parse(bytes_of(first));
      EXPECT_EQ(figure["panels"].size(), GetParam().panels);
      EXPECT_FALSE(figure["title"].get<std::string>().empty());
      EXPECT_EQ(figure["provenance"]["program"], "hydrascope");
    }
    if (GetParam().measured) continue;
    const Outcome reproduced = hydrascope(fmt::format("reproduce {} -o {}", first, again));
    ASSERT_EQ(reproduced.status, 0) << reproduced.errors;
    EXPECT_EQ(reproduced.output, again + ": identical\n");
    EXPECT_EQ(bytes_of(first), bytes_of(again)) << ending;
  }
}

const std::vector<Kind>& table() {
  static const std::vector<Kind> kinds = {
      {"focus", sentence + "--kernels softmax,hedgehog", 2},
      {"weights", sentence + "--kernels softmax,elu --layer 0,5 --head 0,mean", 8},
      {"compare", sentence + "--replace back:2=elu", 3},
      {"tokens", sentence + "--kernels softmax,elu --query 2", 2},
      {"vectors", sentence + "--kernels hedgehog --query 2 --key 4", 6},
      {"entropy", sentence, 1},
      {"kl", " --data DATA --kernels elu,hedgehog", 2},
      {"monotonicity", sentence + "--kernels softmax,taylor --head 3", 2},
      {"layers", sentence, 6},
      {"attention", sentence, 1},
      {"rollout", sentence, 1},
      {"norms", sentence, 1},
      {"predictions", with_option(golden_picture, "image"), 1},
      {"loss-strip", golden_decoder + "--text 'the cat sat on the mat' --kernels softmax,elu", 2},
      {"state", golden_decoder + "--kernels softmax,elu --lengths 4,8", 2, true},
      {"timing", sentence, 1, true},
      {"scaling", " --kernels elu,hydra-cosine --lengths 16,32", 2, true},
      {"roofline", " --data DATA", 1},
      {"loss", " --data DATA", 1},
      {"recall", " --data DATA", 1},
      {"heads",
       " --model minilm --counts 6,12 --data " + (source_folder() / "assets/sentences.txt").string() +
           " --limit 3",
       1},
      {"strategies", sentence + "--counts 0,3", 1},
      {"table", " --data DATA --kernels softmax,elu", 1},
      {"sheet", with_option(golden_picture, "images"), 1}};
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, FigureKinds, testing::ValuesIn(table()), [](const auto& kind) {
  std::string name = kind.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

class FigureTable : public ProgramTest {};

// `--lengths` is of what is measured on data, which monotonicity, of one input, is not.
TEST_F(FigureTable, LengthsNameTheKindsThatReadThem) {
  const std::string help = hydrascope("figure --help").output;
  const auto start = help.find("--lengths"), end = help.find("--joined");
  ASSERT_NE(end, std::string::npos);
  const std::string lengths = help.substr(start, end - start);
  for (const char* const kind : {"table", "entropy", "kl", "scaling", "state"})
    EXPECT_NE(lengths.find(kind), std::string::npos) << kind;
  EXPECT_EQ(lengths.find("monotonicity"), std::string::npos) << lengths;
}

// The kinds as `figure --help` lists them, one a line. What has no row, such as a quantity of heads, is drawn
// from a sentence with nothing else said.
TEST_F(FigureTable, EveryKindThatTheProgramListsHasARowOrDrawsASentence) {
  std::istringstream help(hydrascope("figure --help").output);
  std::string line;
  while (std::getline(help, line) && line != "Kinds:") {
  }
  std::set<std::string> listed, tested;
  for (std::string name; std::getline(help, line) && std::istringstream(line) >> name;) listed.insert(name);
  for (const Kind& kind : table()) tested.insert(kind.name);
  EXPECT_THAT(listed, testing::IsSupersetOf(tested)) << "a row's kind does not exist";
  for (const std::string& kind : listed) {
    if (tested.contains(kind)) continue;
    const Outcome outcome = hydrascope(
        std::string("figure ").append(kind).append(sentence).append("-o ").append(at("figure.json")));
    ASSERT_EQ(outcome.status, 0) << kind << ": " << outcome.errors << "; add a row to table()";
    const auto figure = json::parse(bytes_of(at("figure.json")));
    ASSERT_EQ(figure["panels"].size(), 1U) << kind;
    EXPECT_FALSE(figure["panels"][0]["values"].empty()) << kind;
  }
}

class FigureNumbers : public ProgramTest {
protected:
  json drawn(const std::string& arguments) const {
    const Outcome outcome = hydrascope("figure " + arguments + " -o " + at("f.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(bytes_of(folder_ / "f.json"));
  }
};

TEST_F(FigureNumbers, MeasuredTimesAreDrawnToo) {
  // Of passes after one that packs the weights and reads them from the disk.
  const std::string capture =
      " --capture '" + (source_folder() / "tests/golden/captures/vit.safetensors").string() + "'";
  for (const auto& [input, layers] : {std::pair{sentence, 6U}, std::pair{capture, 2U}}) {
    const json timing = drawn("timing" + input);
    const json& bars = timing["panels"][0];
    EXPECT_THAT(timing["subtitle"].get<std::string>(),
                testing::HasSubstr("median of 10 passes after a warm-up"));
    ASSERT_EQ(bars["values"].size(), layers);
    ASSERT_EQ(bars["marks"].size(), layers);
    EXPECT_EQ(bars["marks_are"], "p95 (ms)");
    for (std::size_t layer = 0; layer < layers; ++layer) {
      EXPECT_GT(bars["values"][layer].get<double>(), 0);
      EXPECT_LE(bars["values"][layer].get<double>(), bars["marks"][layer].get<double>());
    }
  }
  const auto panels = drawn("scaling --kernels elu,hydra-cosine --lengths 16,32")["panels"];
  for (const int panel : {0, 1}) { // time, memory
    const auto& lines = panels[panel]["lines"];
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0]["x"], json({16.0, 32.0}));
    for (const auto& value : lines[1]["y"]) EXPECT_GT(value.get<double>(), 0);
  }
}

TEST_F(FigureNumbers, LossesAreThoseOfRun) {
  const std::string what = golden_decoder + "--text 'the cat sat on the mat' ";
  const auto values = drawn("loss-strip" + what)["panels"][0]["values"];
  ASSERT_EQ(hydrascope("run" + what + "--tensors loss --output " + at("run.safetensors")).status, 0);
  const auto losses = tensor(bytes_of(folder_ / "run.safetensors"), "loss");
  ASSERT_EQ(values.size(), losses.size() + 1);
  EXPECT_TRUE(values[0].is_null()) << "nothing comes before the first token";
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(values[i + 1].get<float>(), losses[i]);
  expect_error("figure loss-strip --model minilm --text 'a cat' -o " + at("f.svg"), 2, "no decoder");
}

// Of a model that was fine-tuned to numbers.
TEST_F(FigureNumbers, APredictedNumberIsNoProbability) {
  const fs::path golden = source_folder() / "tests/golden";
  const json panels = drawn(fmt::format(
      "compare --text 'the cat' --kernel softmax --against elu --model {} --adapter {}",
      (golden / "models/bert").string(),
      (golden / "compatibility/adapters/1-2026-11-27-regression.safetensors").string()))["panels"];
  ASSERT_EQ(panels.size(), 3U);
  EXPECT_TRUE(panels[0]["title"].get<std::string>().ends_with("\nnumber 2.19")) << panels[0]["title"];
  EXPECT_EQ(panels[1]["title"].get<std::string>().find('%'), std::string::npos) << panels[1]["title"];
}

TEST_F(FigureNumbers, ALinearKernelsStateIsFlat) {
  const auto panels = drawn("state" + golden_decoder + "--kernels softmax,elu --lengths 4,16")["panels"];
  ASSERT_EQ(panels.size(), 2U);
  const json softmax = panels[1]["lines"][0]["y"], linear = panels[1]["lines"][1]["y"];
  EXPECT_GT(softmax[1].get<double>(), softmax[0].get<double>());
  EXPECT_EQ(linear[1], linear[0]);
  for (const json& time : panels[0]["lines"][1]["y"]) EXPECT_GT(time.get<double>(), 0);
}

TEST_F(FigureNumbers, TheStateOfAModelWithFewPositionsIsMeasuredAtTheMostItHasRoomFor) {
  const std::string model = (source_folder() / "tests/golden/decoders/gpt2").string();
  const auto panels = drawn("state --model '" + model + "'")["panels"];
  for (const json& panel : panels) EXPECT_EQ(panel["lines"][0]["x"], json({32.0})); // 48 − 16 positions
  EXPECT_EQ(panels.size(), 2U);
}

TEST_F(FigureNumbers, NumbersOfFilesAreDrawnAsTheyStand) {
  const auto line_of = [&](const std::string& kind, const std::string& text) {
    std::ofstream(at("data")) << text;
    const json lines = drawn(kind + " --data " + at("data"))["panels"][0]["lines"];
    const auto named = [](const json& line) { return line.value("style", "") != "dashed"; };
    return *std::find_if(lines.rbegin(), lines.rend(), named);
  };
  const json loss = line_of("loss", "step,loss\n1,2.5\n2,1.25\n");
  EXPECT_EQ(loss["x"], json({1.0, 2.0}));
  EXPECT_EQ(loss["y"], json({2.5, 1.25}));
  const json recall = line_of("recall", R"([{"kernel":"elu","accuracy":0.5,"entropy":3.25}])");
  EXPECT_EQ(recall["x"], json({3.25}));
  EXPECT_EQ(recall["y"], json({50.0})); // per cent
  const json roofline = line_of("roofline", R"([{"kernel":"elu","N":64,"flops_per_second":2e9,)"
                                            R"("bytes_per_second":1e9,"share_of_bandwidth":0.125,)"
                                            R"("share_of_flops":0.0625}])");
  EXPECT_EQ(roofline["x"], json({2.0})); // flops per byte
  EXPECT_EQ(roofline["y"], json({2.0})); // Gflop/s
  const std::string limits = R"(,"bytes_per_second":1e9,"share_of_bandwidth":0.125,"share_of_flops":0.0625})";
  const json types =
      line_of("roofline", R"([{"kernel":"elu","dtype":"float32","flops_per_second":2e9)" + limits +
                              R"(,{"kernel":"elu","dtype":"bfloat16","flops_per_second":8e9)" + limits + "]");
  EXPECT_EQ(types["y"], json({2.0})) << "each type has another limit";
  const json devices =
      line_of("roofline", R"([{"kernel":"elu","device":"cpu","flops_per_second":2e9)" + limits +
                              R"(,{"kernel":"elu","device":"GPU","flops_per_second":8e12)" + limits + "]");
  EXPECT_EQ(devices["y"], json({2.0})) << "each device has another limit";
  EXPECT_THAT(hydrascope("figure roofline --data " + at("data") + " -o " + at("f.svg")).errors,
              testing::HasSubstr("only the entries of cpu are drawn"));
}

// Each message names the file and what is wrong with it.
TEST_F(FigureNumbers, DataOfOtherProgramsAreRefusedByField) {
  const auto errors_of = [&](const std::string& kind, const std::string& contents) {
    std::ofstream(at("data")) << contents;
    const Outcome outcome = hydrascope("figure " + kind + " --data " + at("data") + " -o " + at("f.svg"));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_FALSE(std::filesystem::exists(at("f.svg")));
    return outcome.errors;
  };
  const std::string numbers = R"([{"kernel":"elu","flops_per_second":2e9,"bytes_per_second":1e9,)"
                              R"("share_of_bandwidth":0.1,"share_of_flops":0.05)";
  const auto has = [&](const std::string& reason) { return testing::HasSubstr(at("data") + ": " + reason); };
  EXPECT_THAT(errors_of("roofline", numbers + R"(,"N":"many"}])"),
              has("the entry of elu has no number as N; name what"));
  EXPECT_THAT(errors_of("roofline", numbers + R"(,"N":1e30}])"),
              has("the entry of elu has no whole number as N"));
  EXPECT_THAT(errors_of("roofline", numbers + R"(,"H":"six"}])"), has("the entry of elu has no number as H"));
  EXPECT_THAT(errors_of("roofline", numbers + R"(,"device":3}])"),
              has("the entry of elu has no text as device"));
  EXPECT_THAT(errors_of("roofline", R"([{"kernel":"elu"}])"),
              has("the entry of elu has no number as flops_per_second"));
  EXPECT_THAT(errors_of("roofline", R"([{"kernel":3}])"), has("an entry names no kernel"));
  EXPECT_THAT(errors_of("recall", R"([{"kernel":"elu","accuracy":0.5}])"),
              has("the entry of elu has no number as entropy"));
  EXPECT_THAT(errors_of("recall", "[]"), has("is no JSON list"));
  EXPECT_THAT(errors_of("loss", "step,loss\n1,high\n"), has("line 2 is not step,loss: '1,high'"));
  EXPECT_THAT(errors_of("loss", "epoch,loss\n"), has("is no loss curve"));
}

// The triad of the smaller input stays in the caches.
TEST_F(FigureNumbers, TheRoofIsTheBandwidthOfTheLargestInput) {
  std::ofstream(at("data"))
      << R"([{"kernel":"cosformer:m=100","N":197,"H":2,"d":16,"skipped":"at most 100"},)"
      << R"({"kernel":"elu","N":64,"H":2,"d":16,"flops_per_second":2e9,)"
      << R"("bytes_per_second":1e9,"share_of_bandwidth":0.005,"share_of_flops":0.0625},)"
      << R"({"kernel":"elu","N":4096,"H":2,"d":16,"flops_per_second":2e9,)"
      << R"("bytes_per_second":1e9,"share_of_bandwidth":0.125,"share_of_flops":0.0625}])";
  const json lines = drawn("roofline --data " + at("data"))["panels"][0]["lines"];
  ASSERT_EQ(lines.size(), 2U) << "what was skipped is no point";
  EXPECT_EQ(lines[0]["name"], "8 GB/s, 32 GFLOP/s");
  EXPECT_EQ(lines[1]["y"], json({2.0, 2.0}));
}

using Matrix = std::vector<std::vector<double>>;

// The golden BERT (2 layers, 3 heads of 8) and what transformers computed for one sentence of 15 tokens.
class GoldenFigures : public FigureNumbers {
protected:
  static constexpr std::size_t layers = 2, heads = 3, tokens = 15, width = 8;

  static fs::path folder() { return source_folder() / "tests/golden/models/bert"; }
  static std::string input() {
    return " --model '" + folder().string() + "' --text 'The Hydra attention sums over tokens, not heads!' ";
  }

  // The weights of transformers' softmax.
  Matrix weights(std::size_t layer, std::size_t head) const {
    const auto values = tensor(expected_, fmt::format("attention.{}", layer));
    Matrix rows(tokens, std::vector<double>(tokens));
    for (std::size_t i = 0; i < tokens; ++i)
      for (std::size_t j = 0; j < tokens; ++j)
        rows[i][j] = static_cast<double>(values[(head * tokens + i) * tokens + j]);
    return rows;
  }
  // x·Wᵀ + b of one head, x transformers' hidden states before the layer; part: query, key or value.
  Matrix projected(const std::string& part, std::size_t layer, std::size_t head) const {
    const auto hidden = tensor(expected_, fmt::format("hidden.{}", layer));
    const std::string name = fmt::format("bert.encoder.layer.{}.attention.self.{}.", layer, part);
    const auto weight = halves(model_, name + "weight"), bias = halves(model_, name + "bias");
    constexpr std::size_t all = heads * width;
    Matrix rows(tokens, std::vector<double>(width));
    for (std::size_t i = 0; i < tokens; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t feature = head * width + c;
        rows[i][c] = bias[feature];
        for (std::size_t f = 0; f < all; ++f)
          rows[i][c] += static_cast<double>(hidden[i * all + f]) * weight[feature * all + f];
      }
    return rows;
  }
  static Matrix products(const Matrix& a, const Matrix& b) { // a·bᵀ
    Matrix result(a.size(), std::vector<double>(b.size()));
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < b.size(); ++j)
        for (std::size_t c = 0; c < a[i].size(); ++c) result[i][j] += a[i][c] * b[j][c];
    return result;
  }
  // The weights of elu: φ(x) = 1 + x above 0, eˣ below.
  Matrix elu_weights(std::size_t layer, std::size_t head) const {
    const auto features = [&](const char* part) {
      Matrix x = projected(part, layer, head);
      for (auto& row : x)
        for (double& value : row) value = value < 0 ? std::exp(value) : 1 + value;
      return x;
    };
    Matrix w = products(features("query"), features("key"));
    for (auto& row : w) {
      double sum = 0;
      for (const double value : row) sum += value;
      for (double& value : row) value /= sum;
    }
    return w;
  }
  static double entropy(const Matrix& w) {
    double sum = 0;
    for (const auto& row : w)
      for (const double p : row) sum -= p * std::log(p);
    return sum / static_cast<double>(w.size());
  }
  static double divergence(const Matrix& p, const Matrix& w) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = 0; j < p.size(); ++j) sum += p[i][j] * std::log(p[i][j] / w[i][j]);
    return sum / static_cast<double>(p.size());
  }
  double order(std::size_t layer, std::size_t head) const { // Spearman's ρ of elu's weights
    const Matrix w = elu_weights(layer, head),
                 scores = products(projected("query", layer, head), projected("key", layer, head));
    double sum = 0;
    for (std::size_t i = 0; i < tokens; ++i) sum += spearman_by_definition(w[i], scores[i]);
    return sum / tokens;
  }
  static void expect_near(const json& found, const std::vector<double>& expected, const std::string& what) {
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i].get<double>(), expected[i], 3e-6) << what << ' ' << i;
  }
  Matrix mean_weights(std::size_t layer) const {
    Matrix mean(tokens, std::vector<double>(tokens));
    for (std::size_t head = 0; head < heads; ++head) {
      const Matrix one = weights(layer, head);
      for (std::size_t i = 0; i < tokens; ++i)
        for (std::size_t j = 0; j < tokens; ++j) mean[i][j] += one[i][j] / heads;
    }
    return mean;
  }

  const std::string expected_ = bytes_of(folder() / "expected.safetensors"),
                    model_ = bytes_of(folder() / "model.safetensors");
};

TEST_F(GoldenFigures, WeightsTokensAndAttentionAreTransformers) {
  const json panels = drawn("weights --kernels softmax --layer 1 --head 2,mean" + input())["panels"];
  ASSERT_EQ(panels.size(), 2U);
  const Matrix one = weights(1, 2), mean = mean_weights(1);
  for (std::size_t row = 0; row < tokens; ++row) {
    expect_near(panels[0]["values"][row], one[row], "head 2");
    expect_near(panels[1]["values"][row], mean[row], "mean");
  }
  expect_near(drawn("tokens --kernels softmax --layer 0 --query 3" + input())["panels"][0]["values"],
              mean_weights(0)[3], "tokens");
  expect_near(drawn("attention" + input())["panels"][0]["values"], mean[0], "attention");
}

TEST_F(GoldenFigures, RolloutMultipliesTransformersWeights) {
  Matrix product(tokens, std::vector<double>(tokens));
  for (std::size_t i = 0; i < tokens; ++i) product[i][i] = 1;
  for (std::size_t layer = 0; layer < layers; ++layer) { // Ā = ½A + ½I, from the left
    const Matrix a = mean_weights(layer), before = product;
    for (std::size_t i = 0; i < tokens; ++i)
      for (std::size_t j = 0; j < tokens; ++j) {
        product[i][j] = 0.5 * before[i][j];
        for (std::size_t k = 0; k < tokens; ++k) product[i][j] += 0.5 * a[i][k] * before[k][j];
      }
  }
  expect_near(drawn("rollout" + input())["panels"][0]["values"], product[0], "class token's row");
}

TEST_F(GoldenFigures, RolloutDropsWhatRunDrops) {
  const json figure = drawn("rollout --discard 0.5" + input());
  const std::string file = at("run.safetensors");
  ASSERT_EQ(hydrascope("run --tensors rollout --discard 0.5 --output " + file + input()).status, 0);
  const auto rollout = tensor(bytes_of(file), "rollout");
  const json &panel = figure["panels"][0], &values = panel["values"];
  ASSERT_EQ(values.size(), tokens);
  for (std::size_t key = 0; key < tokens; ++key) EXPECT_EQ(values[key].get<float>(), rollout[key]) << key;
  EXPECT_NE(values, drawn("rollout" + input())["panels"][0]["values"]);
  EXPECT_NE(panel["title"].get<std::string>().find("lowest 50 % of weights dropped"), std::string::npos);
  expect_error("figure rollout --discard 1" + input() + "-o " + at("f.svg"), 2, "--discard 1");
}

// Of two heads none is head 2: the mean of both stands for it, which the figure and the command say.
TEST_F(GoldenFigures, RolloutFusesAllHeadsWhereAKernelHasNoneOfTheChosen) {
  const std::string what = " --head 2 --replace back:1=softmax:heads=2" + input(),
                    file = at("run.safetensors");
  const std::string lacking = "mean of heads in 1 layer without head 2";
  const json panel = drawn("rollout" + what)["panels"][0];
  EXPECT_NE(panel["title"].get<std::string>().find(lacking), std::string::npos) << panel["title"];
  EXPECT_NE(hydrascope("run --tensors rollout --output " + file + what).errors.find("rollout: " + lacking),
            std::string::npos);
  ASSERT_EQ(hydrascope("run --tensors attention --replace back:1=softmax:heads=2 --output " + file + input())
                .status,
            0);
  const auto second = tensor(bytes_of(file), "attention.1");
  constexpr std::size_t cells = tokens * tokens;
  ASSERT_EQ(second.size(), 2 * cells);
  const Matrix first = weights(0, 2);
  std::vector<double> row(tokens); // the class token's of (½A₁ + ½I)(½A₀ + ½I)
  for (std::size_t k = 0; k < tokens; ++k) {
    const double mean = (static_cast<double>(second[k]) + static_cast<double>(second[cells + k])) / 2;
    const double factor = 0.5 * mean + (k == 0 ? 0.5 : 0);
    for (std::size_t j = 0; j < tokens; ++j) row[j] += factor * (0.5 * first[k][j] + (j == k ? 0.5 : 0));
  }
  expect_near(panel["values"], row, "class token's row");
  expect_error("figure rollout --head 2 --kernel softmax:heads=2" + input() + "-o " + at("f.svg"), 2,
               "none of the kernels has head 2; use 0 to 1");
}

TEST_F(GoldenFigures, EntropyAndDivergenceFollowFromTheWeights) {
  const json entropies = drawn("entropy" + input())["panels"][0]["values"],
             divergences = drawn("kl --kernels elu" + input())["panels"][0]["values"];
  for (std::size_t layer = 0; layer < layers; ++layer)
    for (std::size_t head = 0; head < heads; ++head) {
      const Matrix p = weights(layer, head);
      EXPECT_NEAR(entropies[layer][head].get<double>(), entropy(p), 3e-6);
      EXPECT_NEAR(divergences[layer][head].get<double>(), divergence(p, elu_weights(layer, head)), 1e-5);
    }
}

TEST_F(GoldenFigures, VectorsAreTheProjectionsOfTheHiddenStates) {
  const json panels = drawn("vectors --kernels elu --layer 1 --head 2 --query 2 --key 4" + input())["panels"];
  const auto line = [&](const std::string& name) {
    for (const json& panel : panels)
      for (const json& one : panel["lines"])
        if (one["name"] == name) return one["y"];
    return json();
  };
  expect_near(line("q"), projected("query", 1, 2)[2], "q");
  expect_near(line("k"), projected("key", 1, 2)[4], "k");
}

TEST_F(GoldenFigures, MonotonicityIsSpearmansOfTheRows) {
  const json panel = drawn("monotonicity --kernels elu --layer 0 --head 1" + input())["panels"][0];
  EXPECT_EQ(panel["title"], fmt::format("elu\nρ {:.3f}", order(0, 1)));
}

TEST_F(GoldenFigures, PredictionsAreTheSoftmaxOfTransformersLogits) {
  const auto logits = tensor(expected_, "logits");
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const auto probability = [&](std::size_t index) {
    return std::exp(static_cast<double>(logits[index])) / sum;
  };
  const json panel = drawn("predictions" + input())["panels"][0];
  EXPECT_EQ(panel["labels"], json({"maybe", "no", "yes"}));
  expect_near(panel["values"], {probability(1), probability(0), probability(2)}, "probability");
}

// KL, entropy, ρ, and the output's ratio of norms, cosine and relative error, mean over layers and heads.
TEST_F(GoldenFigures, TableFollowsFromTheWeightsAndValues) {
  std::ofstream(at("texts")) << "The Hydra attention sums over tokens, not heads!\n";
  std::vector<double> means(6);
  for (std::size_t layer = 0; layer < layers; ++layer)
    for (std::size_t head = 0; head < heads; ++head) {
      const Matrix p = weights(layer, head), w = elu_weights(layer, head),
                   v = projected("value", layer, head);
      double aa = 0, bb = 0, ab = 0;
      for (std::size_t i = 0; i < tokens; ++i)
        for (std::size_t c = 0; c < width; ++c) {
          double a = 0, b = 0;
          for (std::size_t j = 0; j < tokens; ++j) {
            a += p[i][j] * v[j][c];
            b += w[i][j] * v[j][c];
          }
          aa += a * a;
          bb += b * b;
          ab += a * b;
        }
      const double numbers[] = {divergence(p, w),        entropy(w),
                                order(layer, head),      std::sqrt(bb / aa),
                                ab / std::sqrt(aa * bb), std::sqrt((aa + bb - 2 * ab) / aa)};
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += numbers[i] / (layers * heads);
    }
  const json table =
      drawn("table --kernels elu --model '" + folder().string() + "' --data " + at("texts"))["panels"][0];
  expect_near(table["values"][0], means, "column");
}

TEST_F(FigureNumbers, TableIsThatOfKl) {
  std::ofstream(at("texts")) << "a hedgehog\nthe porcupine eats what is left\n";
  const std::string what = " --data " + at("texts") + " --kernels elu,hedgehog,hydra-cosine";
  const auto table = drawn("table" + what)["panels"][0];
  const auto list = json::parse(hydrascope("kl --json" + what).output);
  ASSERT_EQ(table["rows"].size(), list.size());
  for (std::size_t row = 0; row < list.size(); ++row) {
    EXPECT_EQ(table["values"][row][0], list[row]["kl"]);
    EXPECT_EQ(table["values"][row][1], list[row]["entropy"]);
    EXPECT_EQ(table["values"][row][4], list[row]["change"]["cosine"]);
  }
  EXPECT_TRUE(table["values"][2][0].is_null()) << "signed weights have no KL";
}

TEST_F(FigureNumbers, DataOfOneFileNameAreToldApart) {
  for (const char* const folder : {"a", "b"}) {
    std::filesystem::create_directory(folder_ / folder);
    std::ofstream(folder_ / folder / "dev.txt") << "a hedgehog\n" << (*folder == 'b' ? "a porcupine\n" : "");
    std::ofstream(folder_ / folder / "loss.csv") << "step,loss\n1,2.5\n";
  }
  const auto both = [&](const std::string& name) { return at("a/" + name) + "," + at("b/" + name); };
  const auto panels = drawn("table --kernels elu --data " + both("dev.txt"))["panels"];
  ASSERT_EQ(panels.size(), 2U);
  EXPECT_THAT(panels[0]["title"].get<std::string>(), testing::StartsWith("a/dev.txt: 1 items"));
  EXPECT_THAT(panels[1]["title"].get<std::string>(), testing::StartsWith("b/dev.txt: 2 items"));
  EXPECT_EQ(panels[0]["rows"].size(), 1U);
  EXPECT_THAT(hydrascope("kl --kernels elu --data " + both("dev.txt")).output,
              testing::HasSubstr("b/dev.txt"));
  const auto lines = drawn("loss --data " + both("loss.csv"))["panels"][0]["lines"];
  EXPECT_EQ(lines[0]["name"], "a/loss");
  EXPECT_EQ(lines[1]["name"], "b/loss");
}

TEST_F(FigureNumbers, TablesAreThoseOfRun) {
  const std::string what = sentence + "--kernel elu ";
  for (const std::string kind : {"entropy", "kl"}) {
    const auto rows = drawn(kind + what)["panels"][0]["values"];
    ASSERT_EQ(
        hydrascope(fmt::format("run{}--tensors {} --output {}", what, kind, at("run.safetensors"))).status,
        0);
    const auto values = tensor(bytes_of(folder_ / "run.safetensors"), kind);
    ASSERT_EQ(values.size(), rows.size() * rows[0].size());
    std::size_t index = 0;
    for (const auto& row : rows)
      for (const auto& cell : row) EXPECT_EQ(cell.get<float>(), values[index++]) << kind;
  }
}

TEST_F(FigureNumbers, ThePicturesHeadsAreUnchangedAtTheModelsOwnNumber) {
  const auto panel = drawn("heads --kernels softmax --model minilm --counts 6,12 --limit 3 --data " +
                           (source_folder() / "assets/sentences.txt").string())["panels"][0];
  EXPECT_NEAR(panel["lines"][0]["y"][1].get<double>(), 1, 1e-5);
  EXPECT_LT(panel["lines"][0]["y"][0].get<double>(), 0.99);
}

TEST_F(FigureNumbers, NoLayerReplacedIsSoftmaxItself) {
  const auto panel = drawn("strategies" + sentence + "--counts 0,6")["panels"][0];
  ASSERT_EQ(panel["lines"].size(), 3u);
  for (const auto& line : panel["lines"]) {
    EXPECT_NEAR(line["y"][0].get<double>(), 1, 1e-6);
    EXPECT_LT(line["y"][1].get<double>(), 0.99);
    EXPECT_EQ(line["y"][1], panel["lines"][0]["y"][1]) << "all layers are all layers, whatever the order";
  }
}

TEST_F(FigureNumbers, TheScatterCountsEveryPairOnce) {
  const auto figure = drawn("monotonicity --kernels softmax --head 0" + sentence);
  double pairs = 0;
  for (const auto& row : figure["panels"][0]["values"])
    for (const auto& cell : row)
      if (!cell.is_null()) pairs += cell.get<double>();
  const double tokens = std::sqrt(pairs);
  EXPECT_EQ(tokens, std::floor(tokens));
  EXPECT_GT(tokens, 5);
}

TEST_F(FigureNumbers, PresetsGiveTheColumnsWidth) {
  for (const auto& [preset, width] : {std::pair{"single", "85mm"}, std::pair{"double", "170mm"}}) {
    ASSERT_EQ(hydrascope("figure layers" + sentence + "--preset " + preset + " -o " + at("f.svg")).status, 0);
    EXPECT_NE(bytes_of(folder_ / "f.svg").find("width=\"" + std::string(width) + "\""), std::string::npos);
  }
  expect_error("figure layers" + sentence + "--preset broad -o " + at("f.svg"), 2, "single, double or slide");
}

TEST_F(FigureNumbers, WhatCannotBeDrawnIsSaid) {
  expect_error("figure focus" + sentence + "-o " + at("f.tex"), 2, "only a table");
  expect_error("figure loss -o " + at("f.svg"), 2, "--data");
  std::ofstream(at("not.csv")) << "a,b\n";
  expect_error("figure loss --data " + at("not.csv") + " -o " + at("f.svg"), 1, "step,loss");
  std::ofstream(at("broken.csv")) << "step,loss\n1,2\nx\n";
  expect_error("figure loss --data " + at("broken.csv") + " -o " + at("f.svg"), 1, "line 3");
  expect_error("figure compare" + sentence + "-o " + at("f.svg"), 2, "--against");
  expect_error("figure strategies --measure accuracy -o " + at("f.svg"), 2, "sub-folder");
  expect_error("figure heads --kernels elu --counts 6 -o " + at("f.svg"), 2, "number of heads");
  const std::string study = "figure strategies" + sentence + "-o " + at("f.svg") + " ";
  expect_error(study + "--untrained --trained .", 2, "--trained");
  expect_error(study + "--untrained --no-adapter", 2, "--no-adapter");
  expect_error(study + "--trained " + at("none"), 2, "no folder that holds adapters");
  expect_error("figure layers" + sentence + "--untrained -o " + at("f.svg"), 2, "--no-adapter");
  expect_error("figure heads --untrained --data x -o " + at("f.svg"), 2, "accuracy");
  expect_error("figure -o " + at("f.svg"), 2, "no kind");
  expect_error("figure vectors" + sentence + "--query all -o " + at("f.svg"), 2, "--query");
}

class Reproduce : public ProgramTest {};

TEST_F(Reproduce, SaysWhatHasChanged) {
  const std::string copy = at("picture.png");
  fs::copy_file(picture, copy);
  ASSERT_EQ(hydrascope("figure predictions --image " + copy + " -o " + at("f.csv")).status, 0);
  fs::copy_file(deps_folder() / "examples/coffee.png", copy, fs::copy_options::overwrite_existing);
  const auto outcome = json::parse(hydrascope("reproduce --json " + at("f.csv")).output);
  EXPECT_EQ(outcome["identical"], false);
  EXPECT_EQ(outcome["differs"], json({"input"}));
  EXPECT_TRUE(fs::exists(at("f-reproduced.csv")));
}

TEST_F(Reproduce, RefusesWhatItCannot) {
  expect_error("reproduce " + picture, 1, "does not say where it came from");
  expect_error("reproduce " + at("missing.svg"), 1, "missing.svg");
  ASSERT_EQ(hydrascope("figure layers" + sentence + "-o " + at("f.svg")).status, 0);
  expect_error("reproduce " + at("f.svg") + " -o " + at("f.svg"), 2, "would replace the file of figure");
}

} // namespace
