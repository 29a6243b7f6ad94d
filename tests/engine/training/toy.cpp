#include "tests/engine/training/toy.h"

#include <cstdlib>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <unistd.h>

#include "engine/models/transformer/model.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/training_files.h"
#include "tests/support/checkout.h"

namespace hydrascope::testing {

ToyFolder::ToyFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hydrascope-training-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
  setenv("XDG_CACHE_HOME", (path_ / "cache").c_str(), 1);
}

ToyFolder::~ToyFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path make_toy_model(const ToyFolder& folder, const std::string& family) {
  const bool decoder = family == "written";
  const auto golden = test::source_folder() / "tests/golden" / (decoder ? "decoders" : "models") / family;
  const auto target = folder / family;
  std::filesystem::create_directories(target);
  for (const auto& entry : std::filesystem::directory_iterator(golden))
    if (entry.path().extension() != ".safetensors")
      std::filesystem::copy_file(entry.path(), target / entry.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing);
  const auto model = load_model(golden);
  std::map<std::string, at::Tensor> parameters;
  for (const auto& name : model->parameter_names()) {
    const bool sharpened = name.find(".query.weight") != std::string::npos ||
                           name.find(".key.weight") != std::string::npos || name.ends_with("q_proj.weight");
    parameters[name] = model->parameter(name).to(at::kFloat) * (!sharpened ? 1.0 : decoder ? 3.0 : 8.0);
  }
  training::write_tensors(target / "model.safetensors", parameters, {{"format", "pt"}});
  return target;
}

std::filesystem::path make_toy_pictures(const ToyFolder& folder, const int count) {
  constexpr int side = 30;
  const std::vector<std::string> classes{"red", "green", "blue"};
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const auto target = folder / "pictures" / classes[label];
    std::filesystem::create_directories(target);
    for (int i = 0; i < count; ++i) {
      std::string bytes = fmt::format("P6\n{} {}\n255\n", side, side);
      for (std::uint64_t pixel = 0; pixel < side * side; ++pixel)
        for (std::size_t channel = 0; channel < 3; ++channel) {
          const double noise =
              training::unit(training::mix({label, static_cast<std::uint64_t>(i), pixel, channel}));
          bytes += static_cast<char>(static_cast<int>(100 * noise + (channel == label ? 150 : 0)));
        }
      std::ofstream(target / fmt::format("{}.ppm", i), std::ios::binary) << bytes;
    }
  }
  return folder / "pictures";
}

std::filesystem::path make_toy_text(const ToyFolder& folder, const int lines) {
  std::string text;
  for (std::uint64_t line = 0; line < static_cast<std::uint64_t>(lines); ++line) {
    const std::uint64_t letters = 4 + training::mix({line}) % 12;
    for (std::uint64_t i = 0; i < letters; ++i) {
      text += static_cast<char>('a' + training::mix({line, i}) % 26);
      text += ' ';
    }
    text += '\n';
  }
  std::ofstream(folder / "lines.txt") << text;
  return folder / "lines.txt";
}

std::filesystem::path make_toy_table(const ToyFolder& folder, const int lines) {
  std::ofstream table(folder / "table.tsv");
  table << "label\tfirst\tsecond\n";
  for (std::uint64_t line = 0; line < static_cast<std::uint64_t>(lines); ++line) {
    table << (line % 2 == 0 ? "late" : "early");
    for (std::uint64_t column = 0; column < 2; ++column) {
      table << '\t';
      for (std::uint64_t i = 0; i < 3 + training::mix({line, column}) % 6; ++i)
        table << static_cast<char>('a' + static_cast<char>(training::mix({line, column, i}) % 13) +
                                   (line % 2 == 0 ? 13 : 0))
              << ' ';
    }
    table << '\n';
  }
  return folder / "table.tsv";
}

std::filesystem::path make_running_text(const ToyFolder& folder, const std::string& name,
                                        const int sentences) {
  static const std::vector<std::string> subjects{"the hedgehog", "the token", "a head", "the line"};
  static const std::vector<std::string> verbs{"meets", "measures", "sits on", "looks at"};
  std::string text;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(sentences); ++i) {
    const std::uint64_t subject = training::mix({i, 1}) % 4;
    // What follows a subject is certain but for the verb.
    text += subjects[subject] + " " + verbs[training::mix({i, 2}) % 4];
    text += " " + subjects[(subject + 1) % 4] + ".\n";
  }
  std::ofstream(folder / name) << text;
  return folder / name;
}

const std::vector<std::string>& toy_sentences() {
  static const std::vector<std::string> sentences = {
      "the cat sat on a mat",      "hydra attention is linear not soft",
      "sum over the token",        "a word",
      "not on the mat ! ? -",      "tokenize the head over a linear softmax",
      "the linear sum is not soft"};
  return sentences;
}

DistillRequest toy_distillation(const ToyFolder& folder) {
  DistillRequest request;
  request.settings.model_folder = make_toy_model(folder, "bert");
  request.settings.adapters.automatic = false;
  request.kernel.name = "hedgehog";
  request.data = {make_toy_text(folder, 48)};
  request.settings.epochs = 3;
  request.settings.batch = 4;
  request.settings.validation_share = 0.2;
  request.settings.output = folder / "maps.safetensors";
  return request;
}

FinetuneRequest toy_finetuning(const ToyFolder& folder) {
  FinetuneRequest request;
  request.settings.model_folder = make_toy_model(folder, "dinov2");
  request.settings.adapters.automatic = false;
  request.data = {make_toy_pictures(folder, 12)};
  request.trained = {.layers = {1}};
  request.settings.epochs = 6;
  request.settings.batch = 8;
  request.settings.learning_rate = 5e-3;
  request.settings.validation_share = 0.25;
  request.settings.execution.dtype = "float32";
  request.settings.output = folder / "tail.safetensors";
  return request;
}

FinetuneRequest toy_finetuning_after_a_tail(const ToyFolder& folder, const char* const replaced) {
  FinetuneRequest request = toy_finetuning(folder);
  finetune(request);
  request.settings.adapters.files = {request.settings.output};
  request.settings.output = folder / "after.safetensors";
  request.schedule = ScheduleText{.replace = {replaced}};
  request.trained.reset();
  return request;
}

FinetuneRequest toy_next_tokens(const ToyFolder& folder) {
  FinetuneRequest request = next_token_request();
  request.settings.model_folder = make_toy_model(folder, "written");
  request.settings.adapters.automatic = false;
  request.data = {make_running_text(folder, "train.txt", 60)};
  request.validation = make_running_text(folder, "held-out.txt", 12);
  request.chunk = {0, 32};
  request.settings.epochs = 3;
  request.settings.batch = 4;
  request.settings.learning_rate = 5e-3;
  request.settings.execution.dtype = "float32";
  request.settings.execution.threads = 1;
  request.settings.output = folder / "tuned.safetensors";
  return request;
}

TeacherForcedRequest toy_measuring(const ToyFolder& folder, const std::string& kernels) {
  std::ofstream file(folder / "texts.txt");
  for (const std::string& sentence : toy_sentences()) file << sentence << "\n";
  TeacherForcedRequest request;
  request.model_folder = make_toy_model(folder, "bert");
  request.adapters.automatic = false;
  request.data = {folder / "texts.txt"};
  request.kernels = parse_kernel_list(kernels);
  return request;
}

} // namespace hydrascope::testing
