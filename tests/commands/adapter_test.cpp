// `run --adapter --output` against what transformers computes with tools/load_adapter.py
// (tools/golden/make_adapters.py).
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "engine/base/safetensors.h"
#include "tests/commands/program.h"

namespace {

using namespace hydrascope::test;
using hydrascope::SafetensorsFile;

const fs::path golden = source_folder() / "tests/golden";

std::vector<float> values_of(const SafetensorsFile& file, const std::string& name) {
  const auto& view = file.tensors().at(name);
  std::vector<float> values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

class RunAdapter : public ProgramTest {
protected:
  // Within 1e-4 of the largest value of each tensor.
  void expect_as_transformers(const std::string& adapter, const std::string& arguments) const {
    const std::string model = (golden / "models" / adapter.substr(0, adapter.find('-'))).string();
    const std::string file = (golden / "adapters" / (adapter + ".safetensors")).string();
    const Outcome outcome = hydrascope("run --model " + model + " --adapter " + file + " --output " +
                                       at("run.safetensors") + " --tensors logits,hidden " + arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const SafetensorsFile found = SafetensorsFile::open(at("run.safetensors"));
    const SafetensorsFile expected = SafetensorsFile::open(golden / "adapters/expected/expected.safetensors");
    for (const std::string name : {"logits", "hidden.2"}) {
      const std::string of_adapter = fmt::format("{}.{}", adapter, name);
      const auto ours = values_of(found, name), theirs = values_of(expected, of_adapter);
      ASSERT_EQ(ours.size(), theirs.size()) << name;
      float worst = 0, largest = 0;
      for (std::size_t i = 0; i < ours.size(); ++i) {
        worst = std::max(worst, std::abs(ours[i] - theirs[i]));
        largest = std::max(largest, std::abs(theirs[i]));
      }
      EXPECT_LE(worst, 1e-4F * largest) << name;
    }
  }
};

TEST_F(RunAdapter, HydraLayersOfAVisionModel) {
  expect_as_transformers("dinov2-hydra-cosine", "--kernel hydra-cosine --image " +
                                                    (golden / "images/pictures/gradient.png").string());
}

TEST_F(RunAdapter, HedgehogMapsOfATextModel) {
  expect_as_transformers("bert-hedgehog",
                         "--layers '0,1=hedgehog' --text 'The cat tokenizes a word of the mat.'");
}

} // namespace
