#include "engine/training/loop/options.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/training/loop/option_fields.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

TrainingRequest default_request(const TrainingKind kind) {
  if (kind == TrainingKind::distill) return DistillRequest{};
  return FinetuneRequest{};
}

// The initial value of the form's field for the papers' number; files are one text there.
OptionValue form_value(const TrainingOption& option, const double number) {
  const auto any = option.applies(TrainingKind::finetune) ? TrainingKind::finetune : TrainingKind::distill;
  const OptionValue value = option.access.get(default_request(any));
  if (std::holds_alternative<bool>(value)) return number != 0;
  if (std::holds_alternative<int>(value)) return static_cast<int>(number);
  if (std::holds_alternative<double>(value)) return number;
  return std::string();
}

bool is_off(const TrainingOption& option, const OptionValue& value) {
  const bool inverted = option.flags[0] == '!';
  struct Visitor {
    bool inverted;
    bool operator()(const bool set) const { return set == inverted; }
    bool operator()(const int number) const { return number == 0; }
    bool operator()(const double number) const { return number == 0; }
    bool operator()(const std::string& text) const { return text.empty(); }
    bool operator()(const std::vector<std::string>& list) const { return list.empty(); }
  };
  return std::visit(Visitor{inverted}, value);
}

bool has_effect(const TrainingOption& option, const OptionValues& values) {
  return option.only_with.empty() || values.get<double>(option.only_with) > 0;
}

InputKind input_of(const TrainingRequest& request) {
  const auto& data = std::visit(
      [](const auto& one) -> const auto& { return one.data; }, request);
  return !data.empty() && fs::is_directory(data.front()) ? InputKind::image : InputKind::text;
}

void sort_by_group(std::vector<const TrainingOption*>& options, const TrainingKind kind,
                   const InputKind input) {
  std::ranges::stable_sort(options, {}, [&](const TrainingOption* option) {
    return std::pair(group_of(option->section), option->advanced.of(kind, input));
  });
}

std::string value_text(const OptionValue& value) {
  if (const auto* number = std::get_if<int>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fmt::format("{}", fmt::join(std::get<std::vector<std::string>>(value), ","));
}

} // namespace

OptionGroup group_of(const OptionSection section) {
  using enum OptionSection;
  switch (section) {
    case data:
    case table:
    case items:
    case pictures: return OptionGroup::data;
    case parts: return OptionGroup::model;
    case output: return OptionGroup::output;
    default: return OptionGroup::optimisation;
  }
}

const char* group_title(const OptionGroup group) {
  switch (group) {
    case OptionGroup::data: return "Data";
    case OptionGroup::model: return "Model";
    case OptionGroup::optimisation: return "Optimisation";
    case OptionGroup::output: return "Output";
  }
  return "";
}

bool TrainingOption::applies(const TrainingKind kind, const InputKind input) const {
  if (section == OptionSection::pictures && input != InputKind::image) return false;
  if ((section == OptionSection::table || section == OptionSection::items) && input != InputKind::text)
    return false;
  return applies(kind);
}

bool TrainingOption::is_of(const Objective objective) const {
  return objectives.empty() || std::ranges::find(objectives, objective) != objectives.end();
}

std::string TrainingOption::name() const {
  std::string_view all = flags;
  all.remove_prefix(all.find("--"));
  return std::string(all.substr(0, all.find(',')));
}

std::span<const TrainingOption> training_options() {
  static const std::vector<TrainingOption> options = make_training_options();
  return options;
}

const TrainingOption& training_option(const std::string_view key) {
  const auto options = training_options();
  const auto found = std::ranges::find(options, key, &TrainingOption::key);
  if (found == options.end()) throw std::out_of_range(std::string(key));
  return *found;
}

std::vector<const TrainingOption*> help_options(const TrainingKind kind) {
  std::vector<const TrainingOption*> options;
  for (const TrainingOption& option : training_options())
    if (option.applies(kind)) options.push_back(&option);
  sort_by_group(options, kind, InputKind::image);
  return options;
}

const std::vector<const TrainingOption*>& form_options() {
  static const std::vector<const TrainingOption*> options = [] {
    std::vector<const TrainingOption*> all;
    for (const TrainingOption& option : training_options())
      if (option.in_form()) all.push_back(&option);
    std::ranges::stable_sort(all, {}, [](const TrainingOption* option) {
      const bool last =
          option->section == OptionSection::pictures && std::holds_alternative<bool>(form_value(*option, 0));
      return std::pair(option->section, last);
    });
    return all;
  }();
  return options;
}

OptionValues option_values(const TrainingRequest& request) {
  OptionValues values;
  for (const TrainingOption& option : training_options())
    if (option.applies(static_cast<TrainingKind>(request.index())))
      values.set(option.key, option.access.get(request));
  return values;
}

void set_options(TrainingRequest& request, const OptionValues& values) {
  for (const TrainingOption& option : training_options())
    if (option.applies(static_cast<TrainingKind>(request.index())) && values.contains(option.key))
      option.access.set(request, values.value(option.key));
}

Objective objective_of(const TrainingData data, const OptionValues& values) {
  if (data.next_token) return Objective::next_token;
  const OptionValue* const chosen = values.contains("objective") ? &values.value("objective") : nullptr;
  const bool numbers =
      chosen != nullptr && std::get<std::string>(*chosen) == objective_text(Objective::regression);
  return numbers ? Objective::regression : Objective::classification;
}

OptionValues default_values(const TrainingKind kind, const TrainingData data) {
  if (data.next_token && kind == TrainingKind::finetune) return option_values(next_token_request());
  OptionValues values = option_values(default_request(kind));
  for (const TrainingOption* option : form_options()) {
    if (!option->applies(kind)) continue;
    const OptionValue number = form_value(*option, option->papers.of(kind, data.input));
    if (!std::holds_alternative<std::string>(number)) values.set(option->key, number);
  }
  if (data.next_token) values.set("epochs", 2);
  return values;
}

OptionValues papers_values(const TrainingKind kind, const InputKind input, const bool next_token) {
  const OptionValues defaults = default_values(kind, {input, next_token});
  OptionValues values;
  for (const TrainingOption* option : form_options()) {
    const OptionValue papers = form_value(*option, option->papers.of(kind, input));
    const bool is_number = !std::holds_alternative<std::string>(papers);
    values.set(option->key,
               is_number && defaults.contains(option->key) ? defaults.value(option->key) : papers);
  }
  return values;
}

std::vector<const TrainingOption*> shown_options(const TrainingKind kind, const TrainingData data,
                                                 const OptionValues& values) {
  const bool tunes = kind == TrainingKind::finetune;
  const Objective objective = objective_of(data, values);
  std::vector<const TrainingOption*> shown;
  for (const TrainingOption* option : form_options()) {
    const bool of_table = option->section == OptionSection::table;
    const bool of_objective = !tunes || (option->is_of(objective) && !(of_table && data.next_token));
    if (option->applies(kind, data.input) && of_objective && has_effect(*option, values))
      shown.push_back(option);
  }
  sort_by_group(shown, kind, data.input);
  return shown;
}

std::vector<std::string> option_words(const TrainingRequest& request,
                                      const std::span<const OptionSection> sections) {
  const auto kind = static_cast<TrainingKind>(request.index());
  const InputKind input = input_of(request);
  const OptionValues values = option_values(request), defaults = option_values(default_request(kind));
  std::vector<std::string> words;
  for (const OptionSection section : sections)
    for (const TrainingOption& option : training_options()) {
      if (option.section != section || !option.applies(kind, input)) continue;
      const OptionValue& value = values.value(option.key);
      if (!option.always && is_off(option, value)) continue;
      if (!option.in_form() && value == defaults.value(option.key)) continue;
      if (!has_effect(option, values)) continue;
      words.push_back(option.name());
      if (!std::holds_alternative<bool>(value)) words.push_back(value_text(value));
    }
  return words;
}

} // namespace hydrascope
