// A training that takes a few seconds: a tiny model and a file of made-up texts.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/hub_server.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

// A tiny "bert" or "deit" whose queries and keys are large enough for attention that is not nearly uniform.
std::filesystem::path make_toy_model(const std::filesystem::path& folder, const std::string& family = "bert");

// What the form holds for the input that is shown.
TrainingPlan& training_plan();

// Opens the tiny model with a sentence in the layout Train, and fills the form in. What the program keeps for
// its user goes into the test's own folder as long as this lives.
struct ToyTraining {
  explicit ToyTraining(ImGuiTestContext* context);

  std::filesystem::path folder = fresh_folder("training");
  test::ScopedEnvironment environment;
  std::filesystem::path text = folder / "lines.txt", output = folder / "maps.safetensors";
};

} // namespace hydrascope::app::window_tests
