#include "tests/window/training_toy.h"

#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/document/edits.h"
#include "engine/base/safetensors.h"
#include "tests/support/checkout.h"

namespace hydrascope::app::window_tests {

namespace fs = std::filesystem;

fs::path make_toy_model(const fs::path& folder, const std::string& family) {
  const fs::path golden = test::source_folder() / "tests/golden/models" / family;
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(golden))
    if (entry.path().extension() != ".safetensors")
      fs::copy_file(entry.path(), folder / entry.path().filename());
  const SafetensorsFile file = SafetensorsFile::open(golden / "model.safetensors");
  std::map<std::string, TensorView> tensors = file.tensors();
  std::map<std::string, std::vector<float>> sharpened;
  for (auto& [name, tensor] : tensors) {
    if (name.find(".query.weight") == std::string::npos && name.find(".key.weight") == std::string::npos)
      continue;
    std::vector<float>& values = sharpened[name];
    values.resize(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    for (float& value : values) value *= 8;
    tensor.bytes = std::as_bytes(std::span(values));
  }
  write_safetensors(folder / "model.safetensors", tensors, file.metadata());
  return folder;
}

TrainingPlan& training_plan() {
  TrainingForm& form = editor().training_form;
  return form.plan(form.kind, training_data(document()));
}

ToyTraining::ToyTraining(ImGuiTestContext* context)
    : environment(std::map<std::string, std::string>{{"XDG_CACHE_HOME", (folder / "cache").string()},
                                                     {"XDG_DATA_HOME", (folder / "data").string()}}) {
  std::string lines;
  for (unsigned int line = 0; line < 48; ++line) {
    for (unsigned int letter = 0; letter < 4 + line * 7 % 12; ++letter)
      lines += {static_cast<char>('a' + (line * 31 + letter * letter * 17) % 26), ' '};
    lines += '\n';
  }
  std::ofstream(text) << lines;
  open_text(editor(), "a b c d e");
  open_model(editor(), make_toy_model(folder / "toy-bert").string());
  application().run("view.layout.train");
  context->Yield(4);
  settle(context);
  editor().training_form.live_seconds = 0.05;
  TrainingPlan& plan = training_plan();
  plan.set("data", text.string());
  plan.set("output", output.string());
  plan.set("batch", 4);
  plan.set("epochs", 60); // long enough for what tests do meanwhile, however quick the machine
  plan.set("patience", 0);
  plan.set("validation_share", 0.2);
  context->SetRef("//###training");
}

} // namespace hydrascope::app::window_tests
