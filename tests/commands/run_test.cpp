// `run`, `kernels`, `attend` and `tokenize` as a user runs them, on the bundled models.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class RunCommand : public ProgramTest {
protected:
  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }

  static bool names_a_cat(const json& run) {
    static const std::set<std::string> cats = {"tabby", "Egyptian cat", "Persian cat"};
    int rank = 0;
    for (const json& prediction : run.at("predictions"))
      if (rank++ < 5 && cats.contains(prediction.at("label").get<std::string>())) return true;
    return false;
  }
};

TEST_F(RunCommand, NamesACatForThePhotographOfOne) {
  EXPECT_TRUE(names_a_cat(answer("run --image " + picture)));
}

TEST_F(RunCommand, NamesACatWithHydraInTheLastTwoLayers) {
  const json run = answer("run --replace back:2=hydra-cosine --image " + picture);
  EXPECT_TRUE(names_a_cat(run));
  for (std::size_t layer = 0; layer < run.at("layers").size(); ++layer) {
    EXPECT_EQ(run["layers"][layer].at("kernel"), layer < 10 ? "softmax" : "hydra-cosine");
    EXPECT_EQ(run["layers"][layer].at("untrained"), false) << layer;
  }
  EXPECT_EQ(run.at("adapters").size(), 2u) << "the tail, then the layers trained through Hydra";
}

TEST_F(RunCommand, ReplacedLayersWithoutAnAdapterAreLabelledUntrained) {
  const json run = answer("run --replace back:1=hydra-cosine --image " + picture);
  EXPECT_EQ(run["layers"][11].at("untrained"), true);
}

TEST_F(RunCommand, SentencesRunOnDistilledHedgehogMaps) {
  const json run = answer("run --text \"The cat sat on the mat.\" --kernel hedgehog");
  EXPECT_EQ(run.at("tokens").size(), 9u);
  for (const json& layer : run.at("layers")) EXPECT_EQ(layer.at("untrained"), false);
}

TEST_F(RunCommand, LogitsOfAModelWithoutAClassifierAreLeftOut) {
  const Outcome outcome =
      hydrascope("run --text hello --tensors logits,hidden --output " + at("x.safetensors"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("the model has no classifier"), std::string::npos) << outcome.errors;
  EXPECT_EQ(bytes_of(at("x.safetensors")).find("\"logits\""), std::string::npos);
  EXPECT_FALSE(tensor(bytes_of(at("x.safetensors")), "hidden.0").empty());
}

TEST_F(RunCommand, BadRequestsAreOneLineWithTheirStatus) {
  expect_error("run", 2, "--image");
  expect_error("run --text hello --kernel hedgeog", 2, "hedgehog");
  expect_error("run --text hello --layers 0-9=elu", 2, "0 to 5");
  expect_error("run --image missing.png", 1, "missing.png");
  expect_error("run --image " + (source_folder() / "LICENSE").string(), 1, "picture");
  expect_error("run --text hello --model " + source_folder().string(), 1, "config.json");
  expect_error("run --text hello --output " + at("x.safetensors") + " --tensors nonsense", 2, "nonsense");
  EXPECT_FALSE(fs::exists(at("x.safetensors")));
  expect_error("run --text hello --no-such-option", 2, "no-such-option");
  expect_error("run --text hello --device cuda:99", 1, "--device cuda:99");
  expect_error("run --text hello --dtype float16", 2, "the CPU computes in float32 or bfloat16");
}

TEST_F(RunCommand, MutedHeadsAreComparedWithNoneMuted) {
  const json plain = answer("run --image " + picture);
  const json run = answer("run --mute 11:5,10,11:0 --image " + picture);
  ASSERT_EQ(run.at("muted_heads").size(), 8u) << "all six of layer 10";
  EXPECT_EQ(run["muted_heads"][0], json({{"layer", 10}, {"head", 0}}));
  EXPECT_EQ(run["muted_heads"][7], json({{"layer", 11}, {"head", 5}}));
  EXPECT_EQ(run.at("notes").back(), "8 heads muted");
  EXPECT_NE(run["predictions"][0]["probability"], plain["predictions"][0]["probability"]);
  EXPECT_EQ(run.at("whole").at("predictions")[0], plain["predictions"][0]);
  EXPECT_FALSE(plain.contains("muted_heads"));
  expect_error("run --text hello --mute 6:0", 2, "layer 6");
  expect_error("run --text hello --mute 0:12", 2, "head 12");
  expect_error("run --text hello --mute x", 2, "LAYER:HEAD");
}

TEST_F(RunCommand, TellsHeadsLikeOneAndTheDeletionCurve) {
  const json run = answer("run --like 3:2 --deletion 4 --layer 11 --image " + picture);
  const json& similar = run.at("similar_heads");
  EXPECT_EQ(similar.at("distances").at(3).at(2), 0.0);
  ASSERT_EQ(similar.at("nearest").size(), 10u);
  EXPECT_GT(similar["nearest"][0].at("distance"), 0.0);
  EXPECT_LE(similar["nearest"][0]["distance"], similar["nearest"][9]["distance"]);
  const json& deletion = run.at("deletion");
  EXPECT_EQ(deletion.at("shares"), json({0.0, 0.25, 0.5, 0.75, 1.0}));
  for (const char* order : {"most_first", "least_first", "random"}) {
    EXPECT_EQ(deletion.at(order).at("probabilities").size(), 5u);
    EXPECT_NEAR(deletion[order]["probabilities"][0].get<double>(),
                run["predictions"][0]["probability"].get<double>(), 1e-4);
  }
  // What the last layer's map marks is what the class needs.
  EXPECT_LT(deletion["most_first"]["area"], deletion["least_first"]["area"]);
  expect_error("run --text hello --like 3", 2, "--like 3");
  expect_error("run --text hello --like 9:0", 2, "layer 9");
}

TEST_F(RunCommand, IndependentLabelsAreSaidToBe) {
  const fs::path folder = at("labels");
  fs::copy(source_folder() / "tests/golden/models/bert", folder, fs::copy_options::recursive);
  json config = json::parse(bytes_of(folder / "config.json"));
  config["problem_type"] = "multi_label_classification";
  std::ofstream(folder / "config.json") << config.dump();
  const std::string arguments = "run --text \"the cat\" --model " + folder.string();
  EXPECT_NE(hydrascope(arguments).output.find("most likely labels, each by itself"), std::string::npos);
  const json run = answer(arguments);
  EXPECT_EQ(run.at("model").at("independent_labels"), true);
  double total = 0;
  for (const json& prediction : run.at("predictions")) total += prediction.at("probability").get<double>();
  EXPECT_GT(std::abs(total - 1), 1e-3);
  EXPECT_FALSE(answer("run --text hello").at("model").contains("independent_labels"));
}

TEST_F(RunCommand, TruncatedWeightsAreRefusedByName) {
  const fs::path folder = at("model");
  fs::create_directories(folder);
  for (const std::string name : {"config.json", "vocab.txt", "tokenizer.json"})
    fs::copy_file(deps_folder() / "models/minilm" / name, folder / name);
  const std::string whole = bytes_of(deps_folder() / "models/minilm/model.safetensors");
  std::ofstream(folder / "model.safetensors", std::ios::binary) << whole.substr(0, 1'000'000);
  expect_error("run --text hello --model " + folder.string(), 1, "model.safetensors");
}

TEST_F(RunCommand, WeightsThatAreNotNumbersAreRefusedByName) {
  const fs::path folder = at("model");
  fs::create_directories(folder);
  for (const std::string name : {"config.json", "vocab.txt", "tokenizer.json", "model.safetensors"})
    fs::copy_file(deps_folder() / "models/minilm" / name, folder / name);
  fs::permissions(folder / "model.safetensors", fs::perms::owner_write, fs::perm_options::add);
  std::fstream file(folder / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  std::uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  std::string text(header, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header));
  const json tensors = json::parse(text);
  const std::string name = "encoder.layer.2.intermediate.dense.bias";
  file.seekp(static_cast<std::streamoff>(sizeof header + header +
                                         tensors.at(name).at("data_offsets").at(0).get<std::uint64_t>()));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  file.write(reinterpret_cast<const char*>(&nan), sizeof nan);
  file.close();
  const std::string options = " --text hello --model " + folder.string() + " --output " + at("x.safetensors");
  expect_error("run" + options, 1, name);
  EXPECT_FALSE(fs::exists(at("x.safetensors")));
}

TEST_F(RunCommand, AnAdapterOfAnotherModelIsRefused) {
  const std::string adapter = (source_folder() / "assets/adapters/minilm-hedgehog.safetensors").string();
  expect_error("run --image '" + picture + "' --adapter " + adapter, 1, "minilm-hedgehog");
}

TEST_F(RunCommand, KernelsListsTheRegistry) {
  std::set<std::string> names;
  for (const json& kernel : answer("kernels")) names.insert(kernel.at("name"));
  for (const char* name : {"softmax",
                           "sdpa",
                           "local-window",
                           "linear-cosine",
                           "hydra-cosine",
                           "hydra-tanh-l2",
                           "hydra-mean",
                           "hydra-cosine-ln",
                           "hydra-tanh-l2-ln",
                           "hydra-tanh-softmax",
                           "hydra-sigmoid-softmax",
                           "hydra-l1",
                           "poly-nl",
                           "elu",
                           "relu",
                           "t2r",
                           "t2r-hh",
                           "performer",
                           "cosformer",
                           "exp-t1",
                           "exp-t2",
                           "taylor",
                           "hedgehog",
                           "hedgehog-softmax",
                           "hedgehog-untrained"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(RunCommand, TokenizeAnswersEachLine) {
  std::ofstream(at("lines.txt")) << "Hello world\n\nA pair\tof texts";
  const Outcome outcome = hydrascope("tokenize < " + at("lines.txt"));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  std::istringstream lines(outcome.output);
  std::vector<json> ids;
  for (std::string line; std::getline(lines, line);) ids.push_back(json::parse(line));
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[0], json({101, 7592, 2088, 102}));
  EXPECT_EQ(ids[1], json({101, 102}));
  EXPECT_EQ(ids[2], json({101, 1037, 3940, 102, 1997, 6981, 102}));
}

TEST_F(RunCommand, TokenizeReadsDecodersTokenizersWithoutTheirModels) {
  const fs::path folder = at("decoder");
  fs::create_directories(folder);
  fs::copy_file(source_folder() / "tests/golden/byte_pair/llama3/tokenizer.json", folder / "tokenizer.json");
  std::ofstream(folder / "config.json") << "{}";
  std::ofstream(at("lines.txt")) << "the\n\n\t<|begin_of_text|>\n";
  const Outcome outcome = hydrascope("tokenize --model " + folder.string() + " < " + at("lines.txt"));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  std::istringstream lines(outcome.output);
  std::vector<json> ids;
  for (std::string line; std::getline(lines, line);) ids.push_back(json::parse(line));
  ASSERT_EQ(ids.size(), 3u);
  const json begin = ids[1].at(0);
  EXPECT_EQ(ids[1], json::array({begin}));
  EXPECT_EQ(ids[0].size(), 2u);
  EXPECT_EQ(ids[2].size(), 3u); // a tab separates nothing here
  EXPECT_EQ(ids[2][2], begin);
  std::ofstream(folder / "tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {}, "byte_fallback": true}})";
  expect_error("tokenize --model " + folder.string() + " < " + at("lines.txt"), 1, "byte_fallback");
}

} // namespace
