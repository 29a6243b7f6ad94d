#include "app/state/training_form.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/state/training_command.h"
#include "engine/plain/error.h"
#include "engine/plain/paths.h"
#include "engine/training/option_texts.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::size_t index_of(TrainingKind kind, InputKind input) {
  return 2 * static_cast<std::size_t>(kind) + (input == InputKind::image ? 0 : 1);
}

constexpr std::array<const char*, 4> plan_names = {"distill_images", "distill_text", "finetune_images",
                                                   "finetune_text"};

// Each field once, for writing and for reading.
template <typename Visitor, typename Plan>
void visit(const Visitor& field, Plan& plan) {
  field("data", plan.data);
  field("validation", plan.validation);
  field("column", plan.column);
  field("pair_column", plan.pair_column);
  field("label_column", plan.label_column);
  field("header", plan.header);
  field("chunk", plan.chunk);
  field("limit", plan.limit);
  field("layers", plan.layers);
  field("lora", plan.lora);
  field("epochs", plan.epochs);
  field("batch", plan.batch);
  field("learning_rate", plan.learning_rate);
  field("cosine", plan.cosine);
  field("validation_share", plan.validation_share);
  field("patience", plan.patience);
  field("warmup", plan.warmup);
  field("weight_decay", plan.weight_decay);
  field("label_smoothing", plan.label_smoothing);
  field("distillation_alpha", plan.distillation_alpha);
  field("distillation_tau", plan.distillation_tau);
  field("distillation_hidden", plan.distillation_hidden);
  field("copies", plan.copies);
  field("smallest_crop", plan.smallest_crop);
  field("color_jitter", plan.color_jitter);
  field("mixup", plan.mixup);
  field("patch_dropout", plan.patch_dropout);
  field("flip", plan.flip);
  field("output", plan.output);
}

std::vector<fs::path> paths_in(const std::string& text) {
  std::vector<fs::path> paths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const auto first = text.find_first_not_of(' ', begin);
    if (first < end) {
      const auto last = text.find_last_not_of(' ', end - 1);
      paths.emplace_back(text.substr(first, last - first + 1));
    }
    begin = end + 1;
  }
  return paths;
}

std::string plain_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == ' ' || c == ':' || c == ',' || c == '='; }, '-');
  return name;
}

TrainingSettings settings_of(const Document& document, const TrainingForm& form, const TrainingPlan& plan) {
  TrainingSettings settings;
  settings.model_folder = document.scene().model_folder;
  settings.adapters = document.scene().adapters;
  settings.epochs = plan.epochs;
  settings.batch = plan.batch;
  settings.learning_rate = plan.learning_rate;
  settings.validation_share = plan.validation_share;
  settings.patience = plan.patience;
  settings.execution = document.execution;
  settings.output = training_output(document, form);
  settings.live_seconds = form.live_seconds;
  return settings;
}

} // namespace

TrainingPlan default_plan(TrainingKind kind, InputKind input) {
  TrainingPlan plan;
  const bool image = input == InputKind::image;
  if (kind == TrainingKind::distill) {
    plan.epochs = image ? 2 : 5;
    plan.batch = image ? 32 : 8;
    return plan;
  }
  plan.column = 1;
  plan.epochs = image ? 10 : 5;
  plan.batch = image ? 32 : 8;
  plan.learning_rate = image ? 1e-3 : 1e-5;
  plan.validation_share = 0.1;
  plan.label_smoothing = image ? 0.1 : 0;
  return plan;
}

TrainingForm::TrainingForm() {
  kernel.name = "hedgehog";
  for (const TrainingKind of : {TrainingKind::distill, TrainingKind::finetune})
    for (const InputKind input : {InputKind::image, InputKind::text})
      plan(of, input) = default_plan(of, input);
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
  for (std::size_t i = 0; i < plan_names.size(); ++i)
    visit([&](const char* name, const auto& value) { json[plan_names[i]][name] = value; }, form.plans[i]);
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
    for (std::size_t i = 0; i < plan_names.size(); ++i) {
      if (!json.contains(plan_names[i])) continue;
      visit([&](const char* name, auto& value) { value = json[plan_names[i]].value(name, value); },
            form.plans[i]);
    }
  } catch (const std::exception&) {
    return {}; // of a later version, or edited by hand: nothing but the form's defaults is at stake
  }
  return form;
}

fs::path training_output(const Document& document, const TrainingForm& form) {
  const TrainingPlan& plan = form.plan(form.kind, document.kind);
  if (!plan.output.empty()) {
    fs::path output = plan.output;
    return output.has_extension() ? output : output += ".safetensors";
  }
  std::string stem = document.scene().model ? document.scene().model->name : "model";
  stem += form.kind == TrainingKind::distill ? "-" + form.kernel.text() : "-finetuned";
  const std::vector<fs::path> data = paths_in(plan.data);
  if (!data.empty()) stem += "-" + fs::path(last_name(data.front())).stem().string();
  stem = plain_name(stem);
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
  if (paths_in(plan.data).empty()) return "no data has been chosen";
  if (form.kind == TrainingKind::distill && std::ranges::count(distillable_kernels(), form.kernel.name) == 0)
    return form.kernel.name + " has no feature maps that distillation could train";
  return {};
}

DistillRequest distill_request(const Document& document, const TrainingForm& form) {
  const TrainingPlan& plan = form.plan(TrainingKind::distill, document.kind);
  DistillRequest request;
  request.settings = settings_of(document, form, plan);
  request.kernel = form.kernel;
  request.data = paths_in(plan.data);
  const ChunkLengths chunk = parse_chunk_lengths(plan.chunk);
  request.least_chunk = chunk.least;
  request.chunk = chunk.most;
  request.column = plan.column;
  request.pair_column = plan.pair_column;
  request.header = plan.header;
  request.limit = plan.limit;
  request.cosine = plan.cosine;
  request.settings.command = training_command(request, document.scene().model->name);
  return request;
}

FinetuneRequest finetune_request(const Document& document, const TrainingForm& form) {
  const TrainingPlan& plan = form.plan(TrainingKind::finetune, document.kind);
  FinetuneRequest request;
  request.settings = settings_of(document, form, plan);
  request.settings.execution.dtype = "auto";
  request.schedule = schedule_text(edited_schedule(document));
  const std::vector<fs::path> data = paths_in(plan.data), held_out = paths_in(plan.validation);
  if (data.size() > 1) throw UsageError("data", "fine-tuning takes one folder or table", "name one");
  if (!data.empty()) request.data = data.front();
  if (!held_out.empty()) request.validation = held_out.front();
  request.columns = {.text = plan.column, .pair = plan.pair_column, .label = plan.label_column};
  request.header = plan.header;
  request.limit = plan.limit;
  if (!plan.layers.empty()) request.trained = parse_trained_parts(plan.layers);
  if (!plan.lora.empty()) request.low_rank = parse_low_rank(plan.lora);
  request.copies = plan.copies;
  request.augmentation = {
      .smallest_crop = plan.smallest_crop, .color_jitter = plan.color_jitter, .flip = plan.flip};
  request.warmup = plan.warmup;
  request.weight_decay = plan.weight_decay;
  request.label_smoothing = plan.label_smoothing;
  request.distillation_alpha = plan.distillation_alpha;
  request.distillation_tau = plan.distillation_tau;
  request.distillation_hidden = plan.distillation_hidden;
  request.mixup = plan.mixup;
  request.patch_dropout = plan.patch_dropout;
  request.settings.command = training_command(request, document.scene().model->name);
  return request;
}

} // namespace hydrascope::app
