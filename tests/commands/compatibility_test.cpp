// Adapters and figures that earlier versions have written are used for ever: tests/golden/compatibility.
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;
using testing::Contains;

const fs::path golden_folder = source_folder() / "tests/golden";
const fs::path kept_folder = golden_folder / "compatibility";

class Compatible : public ProgramTest {
protected:
  // Figures name their inputs relative to the checkout.
  Compatible() : before_(fs::current_path()) { fs::current_path(source_folder()); }
  ~Compatible() override { fs::current_path(before_); }

  json answer(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.errors;
    return json::parse(outcome.output, nullptr, false);
  }
  void succeed(const std::string& arguments) const {
    const Outcome outcome = hydrascope(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.errors;
  }

  using Names = std::set<std::string>;

  static json metadata_of(const fs::path& adapter) {
    const std::string bytes = bytes_of(adapter);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return json::parse(bytes.substr(8, length)).at("__metadata__");
  }
  // The format and the entries of an adapter, those within its layers, too.
  static Names names_in_adapter(const fs::path& adapter) {
    const json metadata = metadata_of(adapter);
    Names names{metadata.at("format")};
    for (const auto& [name, value] : metadata.items()) names.insert(name);
    for (const json& layer : json::parse(metadata.at("layers").get<std::string>()))
      for (const auto& [name, value] : layer.items()) names.insert("layers/" + name);
    return names;
  }
  // The entries of a figure's provenance but those of a session, which has a version of its own.
  static Names names_in_provenance(const fs::path& csv) {
    std::string line;
    std::ifstream stream(csv);
    while (std::getline(stream, line))
      if (line.starts_with("# {")) break;
    Names names;
    const json provenance = json::parse(line.substr(2));
    for (const auto& [name, value] : provenance.items()) {
      names.insert(name);
      if (name == "session" || !value.is_structured()) continue;
      for (const auto& [inner, _] : (value.is_array() && !value.empty() ? value[0] : value).items())
        if (!value.is_array() || value.empty() || value[0].is_object())
          names.insert(fmt::format("{}/{}", name, inner));
    }
    return names;
  }
  static std::set<Names> kept_names(const std::string& kind, const std::string& ending,
                                    Names (*names_in)(const fs::path&)) {
    std::set<Names> all;
    for (const auto& entry : fs::directory_iterator(kept_folder / kind))
      if (entry.path().extension() == ending) all.insert(names_in(entry.path()));
    return all;
  }

private:
  fs::path before_; // the other tests' folder
};

// Each with a value that it alone gives: the most probable class or token, or the number.
TEST_F(Compatible, AdaptersRun) {
  const json expected = json::parse(bytes_of(kept_folder / "adapters/expected.json"));
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(kept_folder / "adapters"))
    if (entry.path().extension() == ".safetensors") {
      EXPECT_TRUE(expected.contains(entry.path().filename().string()))
          << "add it to expected.json: " << entry;
      ++found;
    }
  EXPECT_EQ(found, expected.size());
  for (const auto& [name, facts] : expected.items()) {
    SCOPED_TRACE(name);
    std::vector<std::string> files = facts.value("over", std::vector<std::string>{});
    files.push_back(name);
    std::string run_with_them = fmt::format("run --model {} --kernel {} --text 'the cat'",
                                            (golden_folder / facts.at("model").get<std::string>()).string(),
                                            facts.at("kernel").get<std::string>());
    for (const std::string& file : files)
      run_with_them += " --adapter " + (kept_folder / "adapters" / file).string();
    const json run = answer(run_with_them);
    ASSERT_EQ(run.at("adapters").size(), files.size());
    const json& first = run.at("predictions").at(0);
    EXPECT_EQ(first.at("label"), facts.at("label"));
    const char* const value = first.contains("number") ? "number" : "probability";
    constexpr double tolerance = 2e-4; // kernels differ between processors
    EXPECT_NEAR(first.at(value).get<double>(), facts.at("value").get<double>(), tolerance);
  }
}

TEST_F(Compatible, FiguresAreDrawnAgain) {
  int drawn = 0;
  for (const auto& entry : fs::directory_iterator(kept_folder / "figures")) {
    const fs::path& file = entry.path();
    const bool with_its_array = file.string().ends_with(".npy.json");
    // Trained maps that were never published.
    if (with_its_array || file.filename() == "2026-11-25-weights.png") continue;
    SCOPED_TRACE(file.filename());
    const json again =
        answer("reproduce " + file.string() + " -o " + at("again" + file.extension().string()));
    ASSERT_TRUE(again.is_object());
    for (const json& differing : again.at("differs")) EXPECT_EQ(differing, "version");
    ++drawn;
  }
  EXPECT_GE(drawn, 12);
}

// What is written now is like a file that is kept. A change of the format needs a file more.
TEST_F(Compatible, AdaptersOfThePresentFormatAreThere) {
  std::ofstream(at("lines.txt")) << "the cat sat\nthe dog ran\nall of it\nmore text here\n";
  std::ofstream table(at("scores.tsv"));
  for (int i = 0; i < 20; ++i) table << "the cat " << i << '\t' << i % 5 << ".5\n";
  table.close();
  std::ofstream text(at("text.txt"));
  for (int i = 0; i < 60; ++i) text << "the cat sat on the mat and looked at number " << i << '\n';
  text.close();
  std::ofstream colours(at("colours.tsv"));
  for (int i = 0; i < 12; ++i) colours << (i % 2 == 0 ? "red" : "blue") << "\tthe cat " << i << '\n';
  colours.close();
  const std::string model = " --epochs 1 --model " + (golden_folder / "models/bert").string();
  const std::string bert = model + " --no-adapter";
  const auto adapter = [](const char* name) {
    return " --adapter " + (kept_folder / "adapters" / name).string();
  };
  const std::string over_two =
      model + adapter("1-2026-11-27-classes.safetensors") + adapter("1-2026-11-22-layers.safetensors");
  const std::string decoder = " --no-adapter --epochs 1 --chunk 32 --model " +
                              (golden_folder / "decoders/written").string() + " --data " + at("text.txt");
  const std::string source = "phi:" + (kept_folder / "adapters/own-map.py").string();
  succeed("distill --kernel hedgehog --data " + at("lines.txt") + bert + " -o " + at("maps.safetensors"));
  succeed("distill --kernel " + source + " --data " + at("lines.txt") + bert + " -o " +
          at("source.safetensors"));
  succeed("finetune --objective regression --train-layers 0-1,head --column 1 --label-column 2 --data " +
          at("scores.tsv") + bert + " -o " + at("regression.safetensors"));
  succeed("finetune --kernel hedgehog --lora rank=2,alpha=4" + decoder + " -o " + at("lora.safetensors"));
  succeed("finetune --kernel elu --train-layers 1.attention --column 2 --label-column 1 --data " +
          at("colours.tsv") + over_two + " -o " + at("over.safetensors"));
  const std::set<Names> kept = kept_names("adapters", ".safetensors", names_in_adapter);
  for (const char* name : {"maps", "source", "regression", "lora", "over"})
    EXPECT_THAT(kept, Contains(names_in_adapter(at(std::string(name) + ".safetensors"))))
        << name << ": adapters' metadata have changed: add such a file to " << kept_folder / "adapters"
        << ", and keep the others";
}

TEST_F(Compatible, FiguresOfThePresentFormatAreThere) {
  succeed("figure weights --layer 0 --head 0 --kernels softmax,elu --text 'the cat sat' --model " +
          (golden_folder / "models/bert").string() + " -o " + at("run.csv"));
  succeed("figure table --kernels elu,relu --limit 2 --data assets/sentences.txt --model " +
          (golden_folder / "models/bert").string() + " -o " + at("data.csv"));
  const std::string session =
      "figure --session " + (kept_folder / "figures/2026-11-27-view.csv").string() + " -o ";
  succeed(session + at("panels"));
  succeed(session + at("dark") + " --theme dark");
  const std::set<Names> kept = kept_names("figures", ".csv", names_in_provenance);
  for (const char* name : {"run.csv", "data.csv", "panels/focus.csv", "dark/focus.csv"})
    EXPECT_THAT(kept, Contains(names_in_provenance(at(name))))
        << name << ": figures' provenance has changed: add such a file to " << kept_folder / "figures"
        << ", and keep the others";
}

} // namespace
