#include "app/document/training_form.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/document/json_codec.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/base/tsv.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

struct PlanOf {
  const char* name = ""; // in JSON
  TrainingKind kind = TrainingKind::distill;
  TrainingData data = {};
};
constexpr std::array plans_of{PlanOf{"distill_images", TrainingKind::distill, {InputKind::image}},
                              PlanOf{"distill_text", TrainingKind::distill, {InputKind::text}},
                              PlanOf{"distill_decoder", TrainingKind::distill, {InputKind::text, true}},
                              PlanOf{"finetune_images", TrainingKind::finetune, {InputKind::image}},
                              PlanOf{"finetune_text", TrainingKind::finetune, {InputKind::text}},
                              PlanOf{"finetune_decoder", TrainingKind::finetune, {InputKind::text, true}}};

// Of plans_of.
std::size_t index_of(TrainingKind kind, TrainingData data) {
  const auto found = std::ranges::find_if(plans_of, [&](const PlanOf& plan) {
    return plan.kind == kind && plan.data.input == data.input && plan.data.next_token == data.next_token;
  });
  return static_cast<std::size_t>(found - plans_of.begin());
}

Json json_of(const TrainingPlan& plan) {
  Json json = Json::object();
  for (const TrainingOption* option : form_options())
    std::visit([&](const auto& value) { json[option->key] = value; }, plan.value(option->key));
  return json;
}

// A missing entry has its default for these data.
TrainingPlan plan_of(const Json& json, const TrainingKind kind, const TrainingData data) {
  TrainingPlan plan = bundled_plan(kind, data);
  choose_data(plan, kind, data.input, json.value("data", ""));
  for (const TrainingOption* option : form_options())
    if (const auto found = json.find(option->key); found != json.end())
      std::visit([&](auto& value) { found->get_to(value); }, plan.value(option->key));
  return plan;
}

std::vector<std::string> paths_in(const std::string& text) {
  std::vector<std::string> paths;
  for (const std::string_view part : split(text, ';'))
    if (const std::string_view path = trimmed(part, " "); !path.empty()) paths.emplace_back(path);
  return paths;
}

// With these the example pictures bring hedgehog close to softmax within half a minute on two cores
// (docs/training.md); the paper's values are for a million pictures.
struct OptionSetting {
  const char* key;
  int value;
};
constexpr std::array for_example_pictures{OptionSetting{"epochs", 3}, OptionSetting{"batch", 2},
                                          OptionSetting{"crops", 16}};

std::string file_stem(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == ' ' || c == ':' || c == ',' || c == '='; }, '-');
  return name;
}

} // namespace

TrainingForm::TrainingForm() {
  kernel.name = "hedgehog";
  for (std::size_t i = 0; i < plans.size(); ++i) plans[i] = bundled_plan(plans_of[i].kind, plans_of[i].data);
}

TrainingData training_data(const Document& document) {
  const auto& model = document.scene().model;
  return {document.kind, model && model->causal};
}

TrainingPlan& TrainingForm::plan(TrainingKind of, TrainingData data) { return plans.at(index_of(of, data)); }
const TrainingPlan& TrainingForm::plan(TrainingKind of, TrainingData data) const {
  return plans.at(index_of(of, data));
}

fs::path bundled_data(const InputKind input) {
  return input == InputKind::image ? examples_folder() : assets_folder() / "sentences.txt";
}

std::string bundled_data_text(const InputKind input) {
  if (input == InputKind::image) return fmt::format("{} example pictures", example_pictures().size());
  static const std::size_t sentences = read_tsv(bundled_data(InputKind::text)).size();
  return fmt::format("{} bundled sentences", sentences);
}

bool uses_bundled_data(const TrainingPlan& plan, const TrainingKind kind) {
  return kind == TrainingKind::distill && paths_in(plan.get<std::string>("data")).empty();
}

TrainingPlan bundled_plan(const TrainingKind kind, const TrainingData data) {
  TrainingPlan plan = papers_values(kind, data.input, data.next_token);
  if (kind == TrainingKind::distill && data.input == InputKind::image)
    for (const auto& [key, value] : for_example_pictures) plan.set(key, value);
  return plan;
}

void choose_data(TrainingPlan& plan, const TrainingKind kind, const InputKind input,
                 const std::string& data) {
  const bool before = uses_bundled_data(plan, kind);
  plan.set("data", data);
  const bool now = uses_bundled_data(plan, kind);
  if (before == now || input != InputKind::image) return;
  const TrainingPlan papers = papers_values(kind, input), bundled = bundled_plan(kind, input);
  const auto &former = before ? bundled : papers, &later = now ? bundled : papers;
  for (const auto& each : for_example_pictures)
    if (plan.value(each.key) == former.value(each.key)) plan.set(each.key, later.value(each.key));
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
  for (std::size_t i = 0; i < plans_of.size(); ++i) json[plans_of[i].name] = json_of(form.plans[i]);
  return text_of_json(json);
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
    for (std::size_t i = 0; i < plans_of.size(); ++i)
      if (const auto found = json.find(plans_of[i].name); found != json.end())
        form.plans[i] = plan_of(*found, plans_of[i].kind, plans_of[i].data);
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
  if (settings.execution.device != "auto") words.add("--device", settings.execution.device);
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

namespace {

std::vector<std::string> data_of(const Document& document, const TrainingPlan& plan,
                                 const TrainingKind kind) {
  if (uses_bundled_data(plan, kind)) {
    if (is_capture(document.scene())) return {document.scene().model->capture->file.string()};
    return {bundled_data(document.kind).string()};
  }
  return paths_in(plan.get<std::string>("data"));
}

} // namespace

fs::path training_output(const Document& document, const TrainingForm& form) {
  const TrainingPlan& plan = form.plan(form.kind, training_data(document));
  if (fs::path output = plan.get<std::string>("output"); !output.empty()) {
    if (!output.has_extension()) output += ".safetensors";
    return output;
  }
  std::string stem = document.scene().model ? document.scene().model->name : "model";
  stem += form.kind == TrainingKind::distill ? "-" + form.kernel.text() : "-finetuned";
  if (const std::vector<std::string> data = data_of(document, plan, form.kind); !data.empty())
    stem += "-" + fs::path(last_name(data.front())).stem().string();
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
  if (is_capture(document.scene()) && form.kind != TrainingKind::distill)
    return "a capture holds no model to fine-tune; distill trains maps on it";
  const TrainingPlan& plan = form.plan(form.kind, training_data(document));
  if (!uses_bundled_data(plan, form.kind)) {
    if (paths_in(plan.get<std::string>("data")).empty()) return "no data has been chosen";
  } else if (constexpr std::size_t least = 2; // one to train on and one held out
             document.kind == InputKind::image && example_pictures().size() < least) {
    return "the example pictures are not installed, and no other data has been chosen";
  }
  if (form.kind == TrainingKind::distill && std::ranges::count(distillable_kernels(), form.kernel.name) == 0)
    return form.kernel.name + " has no feature maps that distillation could train";
  return {};
}

std::string training_effect(const Document& document, const TrainingForm& form) {
  const Schedule& schedule = edited_schedule(document);
  const std::string shown = form.show_live
                                ? "Predictions and panels follow while it trains; Ctrl+Z takes that back."
                                : "Nothing shown changes until you press Use it; Ctrl+Z takes that back.";
  if (form.kind == TrainingKind::distill)
    return fmt::format("Trains {} afresh in all {} layers and then runs it there, in place of {}. {}",
                       form.kernel.label(), schedule.layers.size(), schedule.summary(), shown);
  const std::string chosen =
      form.plan(TrainingKind::finetune, training_data(document)).get<std::string>("layers");
  const std::string layers = !chosen.empty() ? chosen
                             : schedule.all_exact_softmax()
                                 ? "the last four layers and the head"
                                 : "the layers that the schedule replaces, and the head";
  return fmt::format("Trains {}; every layer keeps its kernel ({}). {}", layers, schedule.summary(), shown);
}

TrainingRequest training_request(const Document& document, const TrainingForm& form) {
  TrainingRequest request;
  if (form.kind == TrainingKind::finetune) request = FinetuneRequest{};
  TrainingPlan plan = form.plan(form.kind, training_data(document));
  if (form.kind == TrainingKind::finetune) { // what is hidden may still have a value
    const Objective objective = objective_of(training_data(document), plan);
    for (const TrainingOption* option : form_options())
      if (!option->is_of(objective)) plan.erase(option->key);
  }
  plan.set("data", data_of(document, plan, form.kind));
  plan.set("validation", paths_in(plan.get<std::string>("validation")));
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
    if (is_capture(document.scene())) distillation->copies = 1; // it has no pictures to crop
    settings.execution.dtype = "float32";                       // whatever the window runs in
  } else {
    settings.execution.dtype = "auto";
    std::get<FinetuneRequest>(request).schedule = edited_schedule(document);
  }
  const ModelInfo& model = *document.scene().model;
  settings.command = training_command(request, model.capture ? model.folder.string() : model.name);
  return request;
}

} // namespace hydrascope::app
