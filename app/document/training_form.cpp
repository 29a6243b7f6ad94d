#include "app/document/training_form.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::size_t index_of(TrainingKind kind, InputKind input) {
  return 2 * static_cast<std::size_t>(kind) + (input == InputKind::image ? 0 : 1);
}

constexpr std::array<const char*, 4> plan_names = {"distill_images", "distill_text", "finetune_images",
                                                   "finetune_text"};

Json json_of(const TrainingPlan& plan) {
  Json json = Json::object();
  for (const TrainingOption* option : form_options())
    std::visit([&](const auto& value) { json[option->key] = value; }, plan.value(option->key));
  return json;
}

// A missing entry leaves the value unchanged.
void read_plan(TrainingPlan& plan, const Json& json) {
  for (const TrainingOption* option : form_options())
    if (const auto found = json.find(option->key); found != json.end())
      std::visit([&](auto& value) { found->get_to(value); }, plan.value(option->key));
}

std::vector<std::string> paths_in(const std::string& text) {
  std::vector<std::string> paths;
  for (const std::string_view part : split(text, ';'))
    if (const std::string_view path = trimmed(part, " "); !path.empty()) paths.emplace_back(path);
  return paths;
}

std::string file_stem(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == ' ' || c == ':' || c == ',' || c == '='; }, '-');
  return name;
}

} // namespace

TrainingForm::TrainingForm() {
  kernel.name = "hedgehog";
  for (const TrainingKind of : {TrainingKind::distill, TrainingKind::finetune})
    for (const InputKind input : {InputKind::image, InputKind::text})
      plan(of, input) = papers_values(of, input);
}

TrainingPlan& TrainingForm::plan(TrainingKind of, InputKind input) { return plans.at(index_of(of, input)); }
const TrainingPlan& TrainingForm::plan(TrainingKind of, InputKind input) const {
  return plans.at(index_of(of, input));
}

const std::vector<std::string>& distillable_kernels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const KernelInfo& info : kernel_infos())
      if (can_be_distilled(info)) found.push_back(info.name);
    return found;
  }();
  return names;
}

std::string training_text(const TrainingForm& form) {
  Json json{{"kind", form.kind == TrainingKind::distill ? "distill" : "finetune"},
            {"kernel", form.kernel.text()},
            {"show_live", form.show_live},
            {"live_seconds", form.live_seconds}};
  for (std::size_t i = 0; i < plan_names.size(); ++i) json[plan_names[i]] = json_of(form.plans[i]);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TrainingForm parse_training(std::string_view text) {
  if (text.empty()) return {};
  TrainingForm form;
  try {
    const Json json = Json::parse(text);
    if (json.value("kind", "distill") == "finetune") form.kind = TrainingKind::finetune;
    form.kernel = parse_kernel_spec(json.value("kernel", form.kernel.text()));
    form.show_live = json.value("show_live", form.show_live);
    form.live_seconds = json.value("live_seconds", form.live_seconds);
    for (std::size_t i = 0; i < plan_names.size(); ++i)
      if (json.contains(plan_names[i])) read_plan(form.plans[i], json[plan_names[i]]);
  } catch (const std::exception&) {
    return {}; // of a later version, or edited by hand
  }
  return form;
}

namespace {

class CommandWords {
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

void add_settings(CommandWords& words, const TrainingSettings& settings, const std::string& model) {
  words.add("--model", model);
  if (!settings.adapters.automatic && settings.adapters.files.empty()) words.add({"--no-adapter"});
  if (!settings.adapters.automatic)
    for (const auto& file : settings.adapters.files) words.add("--adapter", file.string());
  if (settings.execution.image_size) words.add("--image-size", *settings.execution.image_size);
  words.add("--seed", settings.execution.seed);
}

void add_kernels(CommandWords& words, const DistillRequest& request) {
  words.add("--kernel", request.kernel.text());
}
void add_kernels(CommandWords& words, const FinetuneRequest& request) {
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
  CommandWords words;
  words.add({std::holds_alternative<DistillRequest>(request) ? "distill" : "finetune"});
  std::visit([&](const auto& one) { add_settings(words, one.settings, model); }, request);
  words.add(option_words(request, general));
  std::visit([&](const auto& one) { add_kernels(words, one); }, request);
  words.add(option_words(request, own));
  return words.text();
}

fs::path training_output(const Document& document, const TrainingForm& form) {
  const TrainingPlan& plan = form.plan(form.kind, document.kind);
  if (fs::path output = plan.get<std::string>("output"); !output.empty()) {
    if (!output.has_extension()) output += ".safetensors";
    return output;
  }
  std::string stem = document.scene().model ? document.scene().model->name : "model";
  stem += form.kind == TrainingKind::distill ? "-" + form.kernel.text() : "-finetuned";
  const std::vector<std::string> data = paths_in(plan.get<std::string>("data"));
  if (!data.empty()) stem += "-" + fs::path(last_name(data.front())).stem().string();
  stem = file_stem(stem);
  std::error_code none;
  for (int number = 1;; ++number) {
    const std::string ending = number == 1 ? ".safetensors" : fmt::format("-{}.safetensors", number);
    fs::path output = data_folder() / "adapters" / (stem + ending);
    if (!fs::exists(output, none)) return output;
  }
}

std::string why_not_trained(const Document& document, const TrainingForm& form) {
  if (!document.scene().model) return "no model is open";
  const TrainingPlan& plan = form.plan(form.kind, document.kind);
  if (paths_in(plan.get<std::string>("data")).empty()) return "no data has been chosen";
  if (form.kind == TrainingKind::distill && std::ranges::count(distillable_kernels(), form.kernel.name) == 0)
    return form.kernel.name + " has no feature maps that distillation could train";
  return {};
}

TrainingRequest training_request(const Document& document, const TrainingForm& form) {
  TrainingRequest request;
  if (form.kind == TrainingKind::finetune) request = FinetuneRequest{};
  TrainingPlan plan = form.plan(form.kind, document.kind);
  for (const char* const files : {"data", "validation"})
    plan.set(files, paths_in(plan.get<std::string>(files)));
  set_options(request, plan);
  TrainingSettings& settings =
      std::visit([](auto& one) -> TrainingSettings& { return one.settings; }, request);
  settings.model_folder = document.scene().model_folder;
  settings.adapters = document.scene().adapters;
  settings.execution = document.execution;
  settings.output = training_output(document, form);
  settings.live_seconds = form.live_seconds;
  if (auto* distillation = std::get_if<DistillRequest>(&request)) {
    distillation->kernel = form.kernel;
  } else {
    settings.execution.dtype = "auto";
    std::get<FinetuneRequest>(request).schedule = edited_schedule(document);
  }
  settings.command = training_command(request, document.scene().model->name);
  return request;
}

} // namespace hydrascope::app
