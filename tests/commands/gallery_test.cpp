// Each lesson of the gallery is run, and says the numbers that come of it.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;
using Values = std::vector<double>;

double sum(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double share(const Values& map, const std::vector<std::size_t>& patches) {
  double part = 0;
  for (const std::size_t patch : patches) part += map.at(patch);
  return part / sum(map);
}

std::ptrdiff_t brightest(const Values& map) { return std::ranges::max_element(map) - map.begin(); }

// Patches of a 12 × 12 map from row and column (from 1) to row and column.
std::vector<std::size_t> patches(std::size_t top, std::size_t left, std::size_t bottom, std::size_t right) {
  std::vector<std::size_t> all;
  for (std::size_t row = top; row <= bottom; ++row)
    for (std::size_t column = left; column <= right; ++column) all.push_back((row - 1) * 12 + column - 1);
  return all;
}

double cosine(const Values& left, const Values& right) {
  const auto dot = [](const Values& a, const Values& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  return dot(left, right) / std::sqrt(dot(left, left) * dot(right, right));
}

// Σ p log(p/q) of each row, and their mean. Square matrices.
double divergence(const Values& p, const Values& q) {
  double total = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) total += p[i] * std::log(p[i] / std::max(q[i], 1e-12));
  return total / std::sqrt(static_cast<double>(p.size()));
}

double entropy(const Values& p) {
  double total = 0;
  for (const double each : p) total -= each > 0 ? each * std::log(each) : 0;
  return total / std::sqrt(static_cast<double>(p.size()));
}

class Gallery : public ProgramTest {
protected:
  // A lesson by the start of its file's name.
  void open(const std::string& number) {
    for (const auto& entry : fs::directory_iterator(source_folder() / "assets/gallery"))
      if (entry.path().extension() == ".json" && entry.path().filename().string().starts_with(number))
        file_ = entry.path();
    ASSERT_FALSE(file_.empty()) << number;
    session_ = json::parse(bytes_of(file_));
    const std::string kind = session_["document"]["kind"];
    scene_ = session_["document"]["scenes"][kind];
  }
  // The values of each part of a panel's figure, as the session shows them. Draws all panels.
  std::map<int, Values> shown(const std::string& panel) {
    if (!fs::exists(folder_ / "figures" / (panel + ".csv"))) {
      const Outcome outcome = hydrascope("figure --session '" + file_.string() + "' -o " + at("figures"));
      EXPECT_EQ(outcome.status, 0) << outcome.errors;
    }
    return parts(folder_ / "figures" / (panel + ".csv"));
  }
  static std::map<int, Values> parts(const fs::path& csv) {
    std::istringstream lines(bytes_of(csv));
    std::map<int, Values> all;
    std::string line;
    std::getline(lines, line); // provenance
    std::getline(lines, line); // header
    while (std::getline(lines, line))
      all[std::stoi(line)].push_back(std::strtod(line.c_str() + line.rfind(',') + 1, nullptr));
    return all;
  }
  json run(const std::string& options) const {
    const Outcome outcome = hydrascope("run --json " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return outcome.status == 0 ? json::parse(outcome.output) : json();
  }
  // The weights (query, key) of each head of a layer.
  std::vector<Values> weights(const std::string& options, int layer) const {
    const std::string file = at("weights.safetensors");
    const auto tokens =
        static_cast<std::ptrdiff_t>(run(options + " --tensors attention --output " + file)["tokens"].size());
    const auto all = tensor(bytes_of(file), fmt::format("attention.{}", layer));
    std::vector<Values> heads;
    for (auto head = all.begin(); head != all.end(); head += tokens * tokens)
      heads.emplace_back(head, head + tokens * tokens);
    return heads;
  }
  std::string picture_of_scene() const {
    const std::string name = scene_["input"]["name"];
    return "--image '" + (deps_folder() / "examples" / name).string() + "'";
  }
  std::string sentence() const { return scene_["input"]["text"].get<std::string>(); }
  std::string text_option() const { return "--text '" + sentence() + "'"; }

  // What the lesson's text says.
  void says(const std::string& words) const {
    const json& lesson = session_["lesson"];
    const std::string all = lesson["text"].get<std::string>() + "\n" + lesson["look"].get<std::string>() +
                            "\n" + lesson["shows"].get<std::string>();
    EXPECT_NE(all.find(words), std::string::npos) << words << " is not in:\n" << all;
  }
  void says_percent(double fraction, int digits = 0) const {
    says(fmt::format("{:.{}f} %", 100 * fraction, digits));
  }

  fs::path file_;
  json session_, scene_;
};

double probability(const json& run, const std::string& label) {
  for (const json& each : run["predictions"])
    if (each["label"] == label) return each["probability"].get<double>();
  return 0;
}

TEST_F(Gallery, HydraKeepsTheCat) {
  open("01-");
  const auto predictions = shown("predictions"), focus = shown("focus");
  says_percent(predictions.at(0).at(0)); // tabby in A
  says_percent(predictions.at(1).at(0)); // and in B
  EXPECT_EQ(brightest(predictions.at(0)), 0);
  EXPECT_EQ(brightest(focus.at(0)), brightest(focus.at(1)));
  EXPECT_EQ(brightest(focus.at(0)), 91); // the nose: row 8, column 8
  std::vector<std::size_t> eyes = patches(4, 3, 6, 6), right = patches(5, 10, 7, 11);
  eyes.insert(eyes.end(), right.begin(), right.end());
  says_percent(share(focus.at(0), eyes));
  says_percent(share(focus.at(1), eyes));
}

TEST_F(Gallery, HedgehogFollowsAHeadAndPerformerDoesNot) {
  open("02-");
  const auto matrices = shown("weights");
  says(fmt::format("Hedgehog lies {:.3f} nats", divergence(matrices.at(0), matrices.at(1))));
  says(fmt::format("Performer {:.3f}", divergence(matrices.at(0), matrices.at(2))));
  const auto tokens = static_cast<std::size_t>(std::sqrt(static_cast<double>(matrices.at(0).size())));
  double next = 0;
  for (std::size_t query = 1; query + 2 < tokens; ++query) next += matrices.at(0)[query * tokens + query + 1];
  EXPECT_GT(next / static_cast<double>(tokens - 3), 0.5); // most of the weight
}

TEST_F(Gallery, AHeadLooksOneWordBack) {
  open("03-");
  const std::vector<std::string> texts = {sentence(), "Two gulls fought over a chip.",
                                          "The bank raised its rates after the river flooded the town."};
  for (const std::string& text : texts) {
    const Values matrix =
        weights("--text '" + text + "'", scene_["layer"]).at(scene_["head"]["head"].get<std::size_t>());
    const auto tokens = static_cast<std::size_t>(std::sqrt(static_cast<double>(matrix.size())));
    for (std::size_t query = 1; query < tokens; ++query) says_percent(matrix[query * tokens + query - 1]);
  }
}

TEST_F(Gallery, LayerFourHasASink) {
  open("04-");
  const int layer = scene_["layer"];
  const auto first_share = [&](const std::string& options) {
    double total = 0;
    for (const Values& matrix : weights(options, layer)) {
      const auto tokens = static_cast<std::size_t>(std::sqrt(static_cast<double>(matrix.size())));
      double first = 0;
      for (std::size_t query = 0; query < tokens; ++query) first += matrix[query * tokens];
      total += first / sum(matrix) / 12;
    }
    return total;
  };
  says_percent(first_share(text_option()));
  says_percent(first_share(text_option() + " --value-weighted"));
  says_percent(1.0 / static_cast<double>(run(text_option())["tokens"].size()));
  const Values by_layer = shown("sink").at(0);
  EXPECT_EQ(brightest(by_layer), layer);
}

TEST_F(Gallery, AnUntrainedMapIsEven) {
  open("05-");
  const auto matrices = shown("weights");
  says(fmt::format("{:.3f} nats from softmax", divergence(matrices.at(0), matrices.at(1))));
  says(fmt::format("untrained, {:.3f}", divergence(matrices.at(0), matrices.at(2))));
  const double even = 0.5 * std::log(static_cast<double>(matrices.at(2).size()));
  EXPECT_GT(entropy(matrices.at(2)), 0.95 * even);
}

TEST_F(Gallery, CostGrowsWithTheSquareOrInProportion) {
  open("06-");
  const auto millions = [&](const std::string& kernel, int tokens) {
    const Outcome outcome = hydrascope(
        fmt::format("flops --model minilm --tokens {} --kernel {} --per-layer --json", tokens, kernel));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output)[0]["layers"][0]["attention"].get<double>() * 1e3; // given in GFLOPs
  };
  const double softmax = millions("softmax", 4096);
  says(fmt::format("{},{:03} million", static_cast<int>(std::lround(softmax)) / 1000,
                   std::lround(softmax) % 1000));
  says(fmt::format("{:.0f} million with Hedgehog", millions("hedgehog", 4096)));
  says(fmt::format("{:.1f} million with Hydra", millions("hydra-cosine", 4096)));
  says(fmt::format("{:.0f} times as much", softmax / millions("softmax", 512)));
  EXPECT_NEAR(millions("hedgehog", 4096) / millions("hedgehog", 512), 8, 0.01);
}

TEST_F(Gallery, DeletionTellsWhereTheModelLooks) {
  open("07-");
  for (const int layer : {11, 10}) {
    const json curve = run(picture_of_scene() + fmt::format(" --layer {} --deletion 10", layer))["deletion"];
    ASSERT_DOUBLE_EQ(curve["shares"][5], 0.5);
    const double most = curve["most_first"]["probabilities"][5],
                 least = curve["least_first"]["probabilities"][5];
    says_percent(most);
    says_percent(least);
    EXPECT_EQ(most > least, layer == 11);
  }
  EXPECT_EQ(scene_["layer"], 11);
}

TEST_F(Gallery, TwoAdaptersGiveOneAnswer) {
  open("08-");
  const auto predictions = shown("predictions"), focus = shown("focus");
  says_percent(predictions.at(0).at(0));
  says_percent(predictions.at(1).at(0));
  says(fmt::format("{:.2f}", cosine(focus.at(0), focus.at(1))));
  EXPECT_GT(share(focus.at(0), patches(7, 6, 10, 9)), 0.7); // the spoon
  EXPECT_LT(share(focus.at(1), patches(7, 6, 10, 9)), 0.5);
  EXPECT_EQ(brightest(focus.at(1)), 33); // row 3, column 10: beside the cup
}

TEST_F(Gallery, SoftmaxIsSpikyAndMonotone) {
  open("09-");
  const std::string options =
      fmt::format("{} --layer {} --head {} --kernels softmax,hedgehog,elu -o {}", text_option(),
                  scene_["layer"].get<int>(), scene_["head"]["head"].get<int>(), at("figure.csv"));
  ASSERT_EQ(hydrascope("figure weights --teacher-forced " + options).status, 0);
  const auto matrices = parts(at("figure.csv"));
  says(fmt::format("{:.2f} nats for softmax, {:.2f} for Hedgehog and {:.2f} for ELU", entropy(matrices.at(0)),
                   entropy(matrices.at(1)), entropy(matrices.at(2))));
  ASSERT_EQ(hydrascope("figure monotonicity " + options).status, 0);
  const std::string figure = bytes_of(at("figure.csv"));
  std::string numbers;
  for (const std::string kernel : {"softmax", "hedgehog", "elu"}) {
    const std::string title = kernel + " ρ ";
    const auto found = figure.find("map," + title);
    ASSERT_NE(found, std::string::npos);
    numbers += fmt::format("{:.2f} ", std::stod(figure.substr(found + 4 + title.size(), 6)));
  }
  EXPECT_EQ(numbers, "1.00 0.87 0.68 ");
  says("1.00, 0.87 and 0.68");
}

TEST_F(Gallery, OneLayerIsTooMany) {
  open("10-");
  const json eight = run(picture_of_scene() + " --layers 8=hydra-cosine");
  EXPECT_EQ(scene_["schedules"][0][8], "hydra-cosine");
  says("teapot " + fmt::format("{:.0f} %", 100 * eight["predictions"][0]["probability"].get<double>()));
  EXPECT_EQ(eight["predictions"][0]["label"], "teapot");
  const std::string file = at("logits.safetensors");
  run(picture_of_scene() + " --layers 8=hydra-cosine --tensors logits --output " + file);
  const std::vector<float> logits = tensor(bytes_of(file), "logits");
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  constexpr std::size_t tabby = 30; // class
  says_percent(std::exp(static_cast<double>(logits.at(tabby))) / total, 1);
  EXPECT_NEAR(shown("predictions").at(0).at(0), eight["predictions"][0]["probability"].get<double>(), 1e-4);
  says_percent(probability(run(picture_of_scene() + " --layers 9=hydra-cosine"), "tabby"));
  says_percent(probability(run(picture_of_scene() + " --replace back:4=hydra-cosine"), "tabby"));
  const json coffee =
      run("--image '" + (deps_folder() / "examples/coffee.png").string() + "' --layers 8=hydra-cosine");
  EXPECT_EQ(coffee["predictions"][0]["label"], "espresso");
}

} // namespace
