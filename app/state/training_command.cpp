#include "app/state/training_command.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/command_text.h"

namespace hydrascope::app {
namespace {

class Words {
public:
  Words(const char* command, const TrainingSettings& settings, const std::string& model)
      : words_{"hydrascope", command} {
    add("--model", model);
    if (!settings.adapters.automatic && settings.adapters.files.empty()) flag("--no-adapter");
    if (!settings.adapters.automatic)
      for (const auto& file : settings.adapters.files) add("--adapter", file.string());
    if (settings.execution.image_size) add("--image-size", *settings.execution.image_size);
    add("--seed", settings.execution.seed);
    add("--epochs", settings.epochs);
    add("--batch", settings.batch);
    add("--learning-rate", settings.learning_rate);
    add("--validation-share", settings.validation_share);
    add("--patience", settings.patience);
    add("--output", settings.output.string());
  }

  template <typename Value>
  void add(const char* option, const Value& value) {
    words_.emplace_back(option);
    words_.push_back(fmt::format("{}", value));
  }
  void add_above_zero(const char* option, const int value) {
    if (value > 0) add(option, value);
  }
  void add_unless_empty(const char* option, const std::string& value) {
    if (!value.empty()) add(option, value);
  }
  void flag(const char* option, const bool set = true) {
    if (set) words_.emplace_back(option);
  }
  std::string text() const { return command_text(words_); }

private:
  std::vector<std::string> words_;
};

std::string chunk_text(const DistillRequest& request) {
  if (request.chunk <= 0) return {};
  return request.least_chunk > 0 ? fmt::format("{}-{}", request.least_chunk, request.chunk)
                                 : std::to_string(request.chunk);
}

std::string parts_text(const TrainedParts& parts) {
  std::vector<std::string> items;
  for (const int layer : parts.layers) items.push_back(std::to_string(layer));
  for (const int layer : parts.attention) items.push_back(fmt::format("{}.attention", layer));
  if (parts.head) items.emplace_back("head");
  if (parts.embeddings) items.emplace_back("embeddings");
  return fmt::format("{}", fmt::join(items, ","));
}

} // namespace

std::string training_command(const DistillRequest& request, const std::string& model) {
  Words words("distill", request.settings, model);
  words.add("--kernel", request.kernel.text());
  std::vector<std::string> data;
  for (const auto& path : request.data) data.push_back(path.string());
  words.add("--data", fmt::format("{}", fmt::join(data, ",")));
  words.add_above_zero("--column", request.column);
  words.add_above_zero("--pair-column", request.pair_column);
  words.flag("--header", request.header);
  words.add_unless_empty("--chunk", chunk_text(request));
  words.add_above_zero("--limit", request.limit);
  words.flag("--cosine", request.cosine);
  return words.text();
}

std::string training_command(const FinetuneRequest& request, const std::string& model) {
  Words words("finetune", request.settings, model);
  words.add("--kernel", request.schedule.kernel);
  for (const std::string& replaced : request.schedule.replace) words.add("--replace", replaced);
  for (const std::string& layers : request.schedule.layers) words.add("--layers", layers);
  words.add("--data", request.data.string());
  words.add_unless_empty("--validation", request.validation.string());
  if (request.trained) words.add("--train-layers", parts_text(*request.trained));
  if (request.low_rank)
    words.add("--lora", fmt::format("rank={},alpha={}", request.low_rank->rank, request.low_rank->alpha));
  words.add("--warmup", request.warmup);
  words.add("--weight-decay", request.weight_decay);
  words.add("--label-smoothing", request.label_smoothing);
  if (request.distillation_alpha > 0) {
    words.add("--distillation-alpha", request.distillation_alpha);
    words.add("--distillation-tau", request.distillation_tau);
  }
  if (request.distillation_hidden > 0) words.add("--distillation-hidden", request.distillation_hidden);
  if (std::filesystem::is_directory(request.data)) {
    words.add("--copies", request.copies);
    words.add("--crop", request.augmentation.smallest_crop);
    words.add("--color-jitter", request.augmentation.color_jitter);
    words.flag("--no-flip", !request.augmentation.flip);
    words.add("--mixup", request.mixup);
    words.add("--patch-dropout", request.patch_dropout);
  } else {
    words.add("--column", request.columns.text);
    words.add_above_zero("--pair-column", request.columns.pair);
    words.add("--label-column", request.columns.label);
    words.flag("--header", request.header);
    words.add_above_zero("--limit", request.limit);
  }
  return words.text();
}

} // namespace hydrascope::app
