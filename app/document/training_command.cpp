#include "app/document/training_command.h"

#include <array>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "app/views/command_text.h"

namespace hydrascope::app {
namespace {

class Words {
public:
  template <typename Value>
  void add(const char* option, const Value& value) {
    words_.emplace_back(option);
    words_.push_back(fmt::format("{}", value));
  }
  void add(std::vector<std::string> words) {
    for (std::string& word : words) words_.push_back(std::move(word));
  }
  std::string text() const { return command_text(words_); }

private:
  std::vector<std::string> words_{"hydrascope"};
};

void add_settings(Words& words, const TrainingSettings& settings, const std::string& model) {
  words.add("--model", model);
  if (!settings.adapters.automatic && settings.adapters.files.empty()) words.add({"--no-adapter"});
  if (!settings.adapters.automatic)
    for (const auto& file : settings.adapters.files) words.add("--adapter", file.string());
  if (settings.execution.image_size) words.add("--image-size", *settings.execution.image_size);
  words.add("--seed", settings.execution.seed);
}

void add_kernels(Words& words, const DistillRequest& request) {
  words.add("--kernel", request.kernel.text());
}
void add_kernels(Words& words, const FinetuneRequest& request) {
  const ScheduleText schedule = written_text(request.schedule);
  words.add("--kernel", schedule.kernel);
  for (const std::string& replaced : schedule.replace) words.add("--replace", replaced);
  for (const std::string& layers : schedule.layers) words.add("--layers", layers);
}

} // namespace

std::string training_command(const TrainingRequest& request, const std::string& model) {
  using enum OptionSection;
  static constexpr std::array general{steps, validation, output};
  static constexpr std::array own{data, parts, optimizer, teacher, pictures, table, items, decay};
  Words words;
  words.add({std::holds_alternative<DistillRequest>(request) ? "distill" : "finetune"});
  std::visit([&](const auto& one) { add_settings(words, one.settings, model); }, request);
  words.add(option_words(request, general));
  std::visit([&](const auto& one) { add_kernels(words, one); }, request);
  words.add(option_words(request, own));
  return words.text();
}

} // namespace hydrascope::app
