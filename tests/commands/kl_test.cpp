// `kl` and `kernels --measure` as a user runs them, on the bundled text model and a small vision model.
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/support/free_port.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

const std::string sentences = (source_folder() / "assets/sentences.txt").string();
const std::string pictures = (deps_folder() / "examples").string();

class KlCommand : public ProgramTest {
protected:
  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }

  static const json& entry(const json& list, const std::string& kernel) {
    for (const json& one : list)
      if (one.at("kernel") == kernel) return one;
    throw std::runtime_error(kernel + " is missing");
  }
};

TEST_F(KlCommand, TellsEveryKernelsDistanceFromSoftmax) {
  const json list = answer("kl --limit 8 --data " + sentences);
  const json& softmax = entry(list, "softmax");
  EXPECT_NEAR(softmax.at("kl").get<double>(), 0, 1e-6);
  EXPECT_NEAR(softmax.at("spearman").get<double>(), 1, 1e-6);
  EXPECT_NEAR(softmax.at("change").at("cosine").get<double>(), 1, 1e-6);
  ASSERT_EQ(softmax.at("per_layer").size(), 6u);
  const json& scores = softmax["per_layer"][3].at("scores");
  ASSERT_EQ(scores.at("smallest").size(), 12u);
  for (int head = 0; head < 12; ++head) EXPECT_LT(scores["smallest"][head], scores.at("largest")[head]);
  const json& elu = entry(list, "elu");
  EXPECT_EQ(elu.at("items"), 8);
  EXPECT_TRUE(elu.at("length").is_null());
  EXPECT_GT(elu.at("kl").get<double>(), 0.1);
  double layers = 0;
  for (const json& layer : elu.at("per_layer")) layers += layer.at("kl").get<double>() / 6;
  EXPECT_NEAR(layers, elu["kl"].get<double>(), 1e-9);
}

TEST_F(KlCommand, DataWhoseNameIsNotUtf8IsNamedWithAReplacement) {
  fs::copy_file(sentences, folder_ / "caf\xe9.txt");
  const json list = answer("kl --limit 1 --kernels elu --data '" + at("caf\xe9.txt") + "'");
  EXPECT_EQ(entry(list, "elu").at("data"), at("caf\xef\xbf\xbd.txt"));
}

TEST_F(KlCommand, TrainedMapsApplyByThemselves) {
  const std::string arguments = "kl --limit 20 --kernels hedgehog,hedgehog-untrained --data " + sentences;
  const json trained = answer(arguments), plain = answer(arguments + " --no-adapter");
  EXPECT_EQ(entry(trained, "hedgehog").at("untrained"), false);
  EXPECT_LT(entry(trained, "hedgehog").at("kl"),
            0.5 * entry(trained, "hedgehog-untrained").at("kl").get<double>());
  EXPECT_EQ(entry(plain, "hedgehog").at("untrained"), true);
  EXPECT_NEAR(entry(plain, "hedgehog").at("kl").get<double>(),
              entry(plain, "hedgehog-untrained").at("kl").get<double>(), 1e-5);
}

TEST_F(KlCommand, SignedWeightsHaveNoDivergence) {
  const json list = answer("kl --limit 2 --kernels hydra-cosine --data " + sentences);
  EXPECT_TRUE(list[0].at("kl").is_null());
  EXPECT_TRUE(list[0].at("entropy").is_null());
  EXPECT_TRUE(list[0].at("change").at("ratio").is_number());
  const Outcome table = hydrascope("kl --limit 2 --kernels hydra-cosine --data " + sentences);
  EXPECT_NE(table.output.find("—"), std::string::npos) << table.output;
}

TEST_F(KlCommand, ReadsColumnsOfSeveralFiles) {
  std::ofstream(at("a.tsv")) << "\xef\xbb\xbflabel\ttext\n1\tThe cat sat on the mat.\n0\tA second line.\n";
  std::ofstream(at("b.tsv")) << "label\ttext\n1\tThe cat sat on the mat.\n";
  const json list =
      answer("kl --column 2 --header --kernels elu,relu --data " + at("a.tsv") + "," + at("b.tsv"));
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].at("data"), at("a.tsv"));
  EXPECT_EQ(list[0].at("items"), 2);
  EXPECT_EQ(list[3].at("data"), at("b.tsv"));
  EXPECT_EQ(list[3].at("items"), 1);
  EXPECT_EQ(list[3].at("tokens"), 9);
}

TEST_F(KlCommand, ReadsPairs) {
  std::ofstream(at("pairs.tsv")) << "The cat sat on the mat.\t1\tA second line.\n";
  const std::string arguments = "kl --column 1 --kernels elu --data " + at("pairs.tsv");
  const json alone = answer(arguments), pair = answer(arguments + " --pair-column 3");
  EXPECT_EQ(alone[0].at("tokens"), 9);
  EXPECT_EQ(pair[0].at("tokens"), 9 + 5); // a, second, line, the dot and one more [SEP]
  const Outcome whole_lines = hydrascope("kl --kernels elu --pair-column 3 --data " + at("pairs.tsv"));
  EXPECT_EQ(whole_lines.status, 2);
  EXPECT_NE(whole_lines.errors.find("--column"), std::string::npos) << whole_lines.errors;
}

TEST_F(KlCommand, MeasuresOverLongerLengths) {
  const std::string arguments = "kl --limit 40 --kernels elu --lengths 64,128 --data " + sentences;
  const json list = answer(arguments);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].at("length"), 64);
  EXPECT_EQ(list[1].at("length"), 128);
  EXPECT_EQ(list[1].at("tokens"), 128 * list[1].at("items").get<int>());
  const Outcome joined = hydrascope(arguments + " --joined --json");
  EXPECT_EQ(joined.status, 0) << joined.errors;
  EXPECT_NE(joined.errors.find("one text of 64 tokens"), std::string::npos) << joined.errors;
  EXPECT_NE(json::parse(joined.output)[0].at("kl"), list[0].at("kl"));
}

TEST_F(KlCommand, MeasuresPictures) {
  const json list = answer("kl --kernels softmax,elu --data " + pictures + " --model " +
                           (source_folder() / "tests/golden/models/deit").string());
  EXPECT_GT(list[1].at("kl").get<double>(), 0);
  EXPECT_EQ(list[0].at("items"), list[1].at("items"));
}

TEST_F(KlCommand, KernelsTellHowSpikyAndMonotonicTheyAre) {
  std::map<std::string, json> kernels;
  for (const json& kernel : answer("kernels --measure --limit 10")) kernels[kernel.at("name")] = kernel;
  EXPECT_NEAR(kernels.at("softmax").at("spiky").get<double>(), 1, 1e-9);
  EXPECT_NEAR(kernels.at("softmax").at("monotonic").get<double>(), 1, 1e-6);
  EXPECT_GT(kernels.at("elu").at("spiky").get<double>(), 1.05);
  EXPECT_LT(kernels.at("elu").at("monotonic").get<double>(), 0.95);
  EXPECT_LT(kernels.at("hedgehog").at("spiky"), kernels.at("hedgehog-untrained").at("spiky"));
  EXPECT_TRUE(kernels.at("hydra-cosine").at("spiky").is_null());
  const Outcome table = hydrascope("kernels --measure --limit 2");
  EXPECT_NE(table.output.find("spiky"), std::string::npos);
  EXPECT_FALSE(answer("kernels")[0].contains("spiky"));
}

// As numbers that were added up in another order.
void expect_near(const json& found, const json& expected, const std::string& where) {
  ASSERT_EQ(found.type(), expected.type()) << where;
  ASSERT_EQ(found.size(), expected.size()) << where;
  if (expected.is_structured())
    for (const auto& [key, value] : expected.items())
      expect_near(expected.is_array() ? found.at(std::stoul(key)) : found.at(key), value,
                  fmt::format("{}/{}", where, key));
  else if (expected.is_number_float())
    EXPECT_NEAR(found.get<double>(), expected.get<double>(), 1e-5 + 1e-5 * std::abs(expected.get<double>()))
        << where;
  else
    EXPECT_EQ(found, expected) << where;
}

// Runs as many processes as torchrun would; rank 0's answer. The others have nothing to say.
class KlTogether : public KlCommand {
protected:
  json together(int size, const std::string& arguments) const {
    std::string script = fmt::format("cd '{}'; ", folder_.string());
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      script += fmt::format(
          "RANK={0} WORLD_SIZE={1} MASTER_ADDR=127.0.0.1 MASTER_PORT={2} OMP_NUM_THREADS=1 "
          "'{3}' {4} --json >out{0} 2>err{0} & p{0}=$!; ",
          rank, size, port, program().string(), arguments);
    }
    for (int rank = 0; rank < size; ++rank) script += fmt::format("wait $p{} || touch failed; ", rank);
    EXPECT_EQ(std::system(script.c_str()), 0);
    EXPECT_FALSE(fs::exists(folder_ / "failed")) << bytes_of(at("err0")) << bytes_of(at("err1"));
    for (int rank = 1; rank < size; ++rank) EXPECT_EQ(bytes_of(at("out" + std::to_string(rank))), "");
    return json::parse(bytes_of(at("out0")));
  }
};

TEST_F(KlTogether, MeasuresWhatOneProcessDoes) {
  const std::string arguments = "kl --limit 21 --kernels softmax,elu,hedgehog --data " + sentences;
  const json alone = answer(arguments);
  expect_near(together(2, arguments), alone, "2");
  expect_near(together(3, arguments), alone, "3");
}

TEST_F(KlTogether, MeasuresLongPiecesAndPictures) {
  const std::string pieces = "kl --limit 40 --kernels softmax,elu --lengths 64,128 --data " + sentences;
  expect_near(together(2, pieces), answer(pieces), "pieces");
  const std::string images = "kl --limit 3 --data " + pictures + " --model " +
                             (source_folder() / "tests/golden/models/deit").string();
  expect_near(together(2, images), answer(images), "pictures");
}

TEST_F(KlTogether, SaysWhatIsWrongWithTheEnvironment) {
  setenv("RANK", "0", 1);
  expect_error("kl --limit 1 --data " + sentences, 2, "WORLD_SIZE: is not set, while RANK is");
  setenv("WORLD_SIZE", "2", 1);
  expect_error("kl --limit 1 --data " + sentences, 2, "MASTER_ADDR");
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
}

TEST_F(KlCommand, BadRequestsAreOneLineWithTheirStatus) {
  const std::string good = "kl --data " + sentences + " ";
  expect_error("kl", 2, "--data");
  expect_error("kl --data missing.txt", 1, "missing.txt");
  expect_error(good + "--column 3", 1, "column 3");
  expect_error(good + "--kernels hedgeog", 2, "hedgehog");
  expect_error(good + "--lengths 1000000", 2, "--lengths 1000000");
  expect_error(good + "--lengths x", 2, "--lengths");
  expect_error(good + "--lengths 0", 2, "--lengths");
  expect_error(good + "--limit 2 --kernels softmax:heads=7", 2, "heads=7");
  expect_error(good + "--kernel elu", 2, "--kernels");
  expect_error(good + "--model vit-small", 2, "sentences.txt");
  expect_error("kl --model minilm --data " + pictures, 2, "examples");
  expect_error(good + "--device nonsense", 2, "nonsense");
  expect_error(good + "--device cuda:99", 1, "--device cuda:99");
  expect_error("kernels --data " + sentences, 2, "--measure");
}

} // namespace
