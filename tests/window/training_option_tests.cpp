// A line in the table of training options is all that an option needs, beside its use.
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <imgui_internal.h>

#include <fmt/format.h>

#include "app/commands/training.h"
#include "app/document/training_form.h"
#include "engine/base/error.h"
#include "tests/window/harness.h"
#include "tests/window/training_toy.h"

namespace hydrascope::app::window_tests {

namespace {

constexpr std::array both_kinds{TrainingKind::distill, TrainingKind::finetune};
constexpr std::array both_inputs{InputKind::image, InputKind::text};

TrainingRequest request_for(TrainingKind kind) {
  if (kind == TrainingKind::distill) return DistillRequest{};
  return FinetuneRequest{};
}

// A value that the option takes and that is not its default.
OptionValue another_value(const TrainingOption& option, const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (std::holds_alternative<int>(value)) return 7;
  if (std::holds_alternative<double>(value)) return 0.5;
  if (std::holds_alternative<std::vector<std::string>>(value)) return std::vector<std::string>{"one", "two"};
  if (option.key == "layers") return "1,head";
  if (option.key == "lora") return "rank=4,alpha=8";
  if (option.key == "chunk") return "16-256";
  if (option.key == "objective") return "next-token";
  return "some";
}

std::vector<std::string> words_of(const TrainingOption& option, const OptionValue& value) {
  const std::string name = option.name();
  if (std::holds_alternative<bool>(value)) return {name};
  if (const auto* number = std::get_if<int>(&value)) return {name, std::to_string(*number)};
  if (const auto* number = std::get_if<double>(&value)) return {name, std::to_string(*number)};
  if (const auto* text = std::get_if<std::string>(&value)) return {name, *text};
  return {name, "one,two"};
}

void every_option_is_on_the_command_line(ImGuiTestContext*) {
  for (const TrainingKind kind : both_kinds)
    for (const TrainingOption& option : training_options()) {
      if (!option.applies(kind)) continue;
      CLI::App command;
      TrainingRequest request = request_for(kind);
      OptionValues values = option_values(request);
      const OptionValue wanted = another_value(option, values.value(option.key));
      add_training_options(command, kind, values);
      std::vector<std::string> words = words_of(option, wanted);
      for (const TrainingOption& other : training_options())
        if (other.required && other.key != option.key && other.applies(kind))
          words.insert(words.end(), {other.name(), "some"});
      std::ranges::reverse(words); // as CLI11 takes them
      try {
        command.parse(words);
      } catch (const CLI::Error& error) {
        IM_ERRORF("%s: %s", option.flags, error.what());
      }
      IM_CHECK(values.value(option.key) == wanted);
      set_options(request, values);
      IM_CHECK(option.access.get(request) == wanted);
    }
}

void every_field_survives_json(ImGuiTestContext*) {
  for (const TrainingKind kind : both_kinds)
    for (const InputKind input : both_inputs)
      for (const TrainingOption* option : form_options()) {
        TrainingForm form;
        OptionValue& value = form.plan(kind, input).value(option->key);
        value = another_value(*option, value);
        IM_CHECK(form != TrainingForm{});
        IM_CHECK(parse_training(training_text(form)) == form);
      }
}

void every_field_is_in_the_stored_command(ImGuiTestContext*) {
  const std::string pictures = std::filesystem::temp_directory_path().string(), texts = "table.tsv";
  for (const TrainingKind kind : both_kinds)
    for (const InputKind input : both_inputs)
      for (const TrainingOption* option : form_options()) {
        if (!option->applies(kind, input)) continue;
        TrainingRequest request = request_for(kind);
        OptionValues values;
        values.set("data", std::vector<std::string>{input == InputKind::image ? pictures : texts});
        if (!option->only_with.empty()) values.set(option->only_with, 0.5);
        if (option->key != "data")
          values.set(option->key, another_value(*option, option->access.get(request)));
        set_options(request, values);
        const std::string command = training_command(request, "model") + " ";
        if (command.find(" " + option->name() + " ") == std::string::npos)
          IM_ERRORF("%s is not in %s", option->flags, command.c_str());
      }
}

ImGuiWindow* form_window() {
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->Active && std::string_view(window->Name).find("/form_") != std::string_view::npos)
      return window;
  return nullptr;
}

// Where the form is scrolled to, one after the other, so that each row is in sight at one of them.
constexpr std::array places{0.0f, 0.25f, 0.5f, 0.75f, 1.0f};

// Scrolls the form to a place, from 0 to 1. What is scrolled out of sight is not found by its label. Returns
// whether there is a form.
bool scroll_form(ImGuiTestContext* context, const float place) {
  ImGuiWindow* const form = form_window();
  if (form == nullptr) return false;
  ImGui::SetScrollY(form, place * form->ScrollMax.y);
  context->Yield(2);
  return true;
}

// Presses the groups' buttons that have this label: "More" or "Less".
void press_all(ImGuiTestContext* context, const char* label) {
  for (const OptionGroup group :
       {OptionGroup::data, OptionGroup::model, OptionGroup::optimisation, OptionGroup::output}) {
    for (const float place : places) {
      if (!scroll_form(context, place)) return;
      const ImGuiTestItemInfo button = context->ItemInfo(
          fmt::format("**/###more_{}", group_title(group)).c_str(), ImGuiTestOpFlags_NoError);
      if (button.ID == 0) continue;
      if (std::string_view(button.DebugLabel).starts_with(label)) context->ItemClick(button.ID);
      context->Yield(2);
      break;
    }
  }
}

// By its label, which combo boxes do not tell, or by its ID.
bool in_the_form(ImGuiTestContext* context, const std::string& label) {
  for (const float place : places)
    if (scroll_form(context, place) && (context->ItemExists(("**/" + label).c_str()) ||
                                        context->ItemExists(form_window()->GetID(label.c_str()))))
      return true;
  return false;
}

void every_field_is_in_the_form(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  for (const TrainingKind kind : both_kinds)
    for (const InputKind input : both_inputs) {
      editor().change("Kind", [&](Document& document) { document.kind = input; });
      editor().training_form.kind = kind;
      TrainingPlan& plan = training_plan();
      for (const TrainingOption* option : form_options())
        if (!option->only_with.empty()) plan.set(option->only_with, 0.5);
      settle(context); // a new kind of input is run, and may bring another panel to the front
      editor().emit(BringToFront{"training"});
      context->Yield(3);
      for (const TrainingOption* option : form_options()) {
        const bool folded = option->applies(kind, input) && option->advanced.of(kind, input);
        const bool flag = std::holds_alternative<bool>(plan.value(option->key));
        if (folded && in_the_form(context, std::string(flag ? "" : "##") + option->label))
          IM_ERRORF("%s is not folded away", option->label);
      }
      press_all(context, "More");
      for (const TrainingOption* option : form_options()) {
        if (!option->applies(kind, input)) continue;
        if (kind == TrainingKind::finetune && !option->is_of(Objective::classification)) continue;
        const bool flag = std::holds_alternative<bool>(plan.value(option->key));
        const std::string item = std::string(flag ? "" : "##") + option->label;
        if (!in_the_form(context, item)) IM_ERRORF("%s is not in the form", option->label);
      }
      press_all(context, "Less");
    }
  settle(context);
  start_over(context);
}

} // namespace

void register_training_option_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "training_options", "every_option_is_on_the_command_line")->TestFunc =
      every_option_is_on_the_command_line;
  IM_REGISTER_TEST(engine, "training_options", "every_field_survives_json")->TestFunc =
      every_field_survives_json;
  IM_REGISTER_TEST(engine, "training_options", "every_field_is_in_the_stored_command")->TestFunc =
      every_field_is_in_the_stored_command;
  IM_REGISTER_TEST(engine, "training_options", "every_field_is_in_the_form")->TestFunc =
      every_field_is_in_the_form;
}

} // namespace hydrascope::app::window_tests
