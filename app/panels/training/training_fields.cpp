#include "app/panels/training/training_fields.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/ui/widgets.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

// Beside its control; in a narrow form above it.
void form_label(const char* text, const char* tooltip = "") {
  constexpr float label_width = 124, narrow = 260;
  const bool above = ImGui::GetContentRegionAvail().x < narrow;
  if (above && *text == '\0') return;
  if (above)
    ImGui::TextColored(theme::quiet, "%s", text);
  else
    field_label(text, label_width);
  if (ImGui::IsItemHovered()) text_tooltip(tooltip);
}

// The label of a control, which gets the rest of the width less `room`.
void row_label(const char* text, const char* tooltip, const float room = 0) {
  form_label(text, tooltip);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - room);
}

void unit_text(const char* unit) {
  if (*unit == '\0') return;
  ImGui::SameLine(0, 6);
  ImGui::AlignTextToFramePadding();
  ellipsis_text(unit, ImGui::GetContentRegionAvail().x, theme::quiet);
}

// The control of an option, by the type of its value.
struct Field {
  const char* label;
  const char* tooltip;
  const char* hint;
  const char* unit;
  FieldRange range;
  std::span<const char* const> choices;

  void operator()(bool& value) const {
    row_label("", tooltip);
    check_box(label, &value);
    show_tooltip();
  }
  void operator()(int& value) const {
    number_width();
    if (*hint != '\0' && range.least == 0) return whole_number_or_none(value);
    if (ImGui::InputInt(id().c_str(), &value, 0))
      value = std::clamp(value, static_cast<int>(range.least), static_cast<int>(range.most));
    show_tooltip();
    unit_text(unit);
  }
  void operator()(double& value) const {
    number_width();
    if (ImGui::InputDouble(id().c_str(), &value, 0, 0, "%g"))
      value = std::clamp(value, range.least, range.most);
    show_tooltip();
    unit_text(unit);
  }
  void operator()(std::string& value) const {
    row_label(label, tooltip);
    if (!choices.empty()) return choose(value);
    ImGui::InputTextWithHint(id().c_str(), hint, &value);
    show_tooltip();
  }
  void operator()(std::vector<std::string>&) const {} // lists of files have one text in the form

private:
  // One of the choices; the hint stands for an empty text.
  void choose(std::string& value) const {
    const bool open = ImGui::BeginCombo(id().c_str(), value.empty() ? hint : value.c_str());
    show_tooltip();
    if (!open) return;
    if (ImGui::Selectable(hint, value.empty())) value.clear();
    for (const char* const choice : choices)
      if (ImGui::Selectable(choice, value == choice)) value = choice;
    ImGui::EndCombo();
  }
  // An empty field is 0, and the hint says what that means.
  void whole_number_or_none(int& value) const {
    std::string text = value == 0 ? "" : std::to_string(value);
    if (ImGui::InputTextWithHint(id().c_str(), hint, &text, ImGuiInputTextFlags_CharsDecimal))
      value = std::min(whole_number(text).value_or(0), static_cast<int>(range.most));
    show_tooltip();
    if (value != 0) unit_text(unit);
  }
  std::string id() const { return fmt::format("##{}", label); }
  void number_width() const {
    constexpr float most = 80;
    row_label(label, tooltip);
    ImGui::SetNextItemWidth(std::min(most, ImGui::GetContentRegionAvail().x));
  }
  void show_tooltip() const {
    if (ImGui::IsItemHovered()) text_tooltip(tooltip);
  }
};

// Returns whether the text was edited.
bool path_row(Editor& editor, const char* label, std::string& value, const std::string& hint,
              const std::string& tooltip, const Dialog dialog, const ImVec4& hint_colour = theme::quiet) {
  const char* const choose = "Choose…";
  const float button = button_width(choose);
  row_label(label, tooltip.c_str(), button + 4);
  ImGui::PushStyleColor(ImGuiCol_TextDisabled, hint_colour);
  const bool edited = ImGui::InputTextWithHint(fmt::format("##{}", label).c_str(), hint.c_str(), &value);
  ImGui::PopStyleColor();
  if (ImGui::IsItemHovered()) text_tooltip(value.empty() ? tooltip : value + "\n" + tooltip);
  ImGui::SameLine(0, 4);
  if (ImGui::Button(fmt::format("{}##{}", choose, label).c_str(), {button, 0}))
    editor.emit(ShowDialog{dialog});
  return edited;
}

void data_rows(Editor& editor, const TrainingOption& option, TrainingPlan& plan) {
  const TrainingKind kind = editor.training_form.kind;
  const InputKind input = editor.document().kind;
  const std::string tooltip = option.tooltip.of(kind, input);
  std::string data = plan.get<std::string>(option.key);
  if (kind == TrainingKind::finetune) {
    if (path_row(editor, option.label, data, option.hint.of(kind, input), tooltip, Dialog::training_data))
      plan.set(option.key, data);
    return;
  }
  const std::string bundled = bundled_data_text(input);
  if (path_row(editor, option.label, data, bundled, fmt::format("{}\nLeft empty: {}.", tooltip, bundled),
               Dialog::training_data, theme::text))
    choose_data(plan, kind, input, data);
  if (uses_bundled_data(plan, kind)) return;
  form_label("");
  if (ImGui::Button(fmt::format("Use {}###bundled", bundled).c_str())) choose_data(plan, kind, input, "");
}

void kernel_row(TrainingForm& form) {
  row_label("Kernel",
            "Whose feature maps learn to give softmax's weights.\nThose that distillation can train; T2R's "
            "are trained with a task, by fine-tuning.");
  if (!ImGui::BeginCombo("##kernel", form.kernel.label().c_str())) return;
  for (const std::string& name : distillable_kernels()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    kernel_square(ImGui::GetWindowDrawList(), {at.x + height / 2, at.y + height / 2}, 9, name);
    ImGui::SetCursorScreenPos({at.x + height + 6, at.y});
    if (ImGui::Selectable(name.c_str(), name == form.kernel.name))
      form.kernel = {.name = name, .parameters = {}};
    if (ImGui::IsItemHovered()) text_tooltip(kernel_info(name).definition);
  }
  ImGui::EndCombo();
}

void schedule_row(const Document& document) {
  row_label("Schedule", "Change it in Model and kernels; training goes through these kernels");
  ImGui::AlignTextToFramePadding();
  ellipsis_text(edited_schedule(document).summary(), ImGui::GetContentRegionAvail().x);
}

void output_row(Editor& editor, const TrainingOption& option, const std::string& default_output,
                TrainingPlan& plan) {
  const char* const tooltip = option.tooltip.of(editor.training_form.kind, editor.document().kind);
  if (path_row(editor, option.label, plan.get<std::string>(option.key),
               std::filesystem::path(default_output).stem().string(),
               fmt::format("{}\nLeft empty: {}", tooltip, default_output), Dialog::training_output,
               theme::text))
    editor.training.question = TrainingQuestion::none;
}

void update_row(TrainingForm& form) {
  row_label("Update views every",
            "Sets how often the panels take up the model in training, in seconds of training");
  constexpr float width = 64;
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputDouble("##refresh", &form.live_seconds, 0, 0, "%g"))
    form.live_seconds = std::clamp(form.live_seconds, 0.01, 3600.0);
  unit_text("s");
}

void option_row(Editor& editor, const TrainingOption& option, const std::string& default_output,
                TrainingPlan& plan) {
  const TrainingKind kind = editor.training_form.kind;
  const InputKind input = editor.document().kind;
  const char* const tooltip = option.tooltip.of(kind, input);
  const char* const hint = option.hint.of(kind, input);
  if (option.key == "data") return data_rows(editor, option, plan);
  if (option.key == "output") return output_row(editor, option, default_output, plan);
  OptionValue& value = plan.value(option.key);
  if (option.key == "validation") {
    path_row(editor, option.label, std::get<std::string>(value), hint, tooltip, Dialog::training_validation);
    return;
  }
  std::visit(Field{option.label, tooltip, hint, option.unit.of(kind, input), option.range.of(kind, input),
                   option.choices},
             value);
}

// The papers' values, with the user's data and files.
TrainingPlan with_papers_numbers(const TrainingPlan& plan, TrainingKind kind, TrainingData of) {
  using enum OptionSection;
  static constexpr std::array own{data, table, items, parts, output};
  TrainingPlan fresh = papers_values(kind, of.input, of.next_token);
  for (const TrainingOption* option : form_options())
    if (std::ranges::count(own, option->section) > 0) fresh.set(option->key, plan.value(option->key));
  return fresh;
}

// How many of the group's folded options have another value than a new form has for these data.
std::ptrdiff_t changed_options(const std::vector<const TrainingOption*>& folded, const TrainingPlan& plan,
                               const TrainingKind kind, const TrainingData data) {
  TrainingPlan fresh = bundled_plan(kind, data);
  choose_data(fresh, kind, data.input, plan.get<std::string>("data"));
  return std::ranges::count_if(folded, [&](const TrainingOption* option) {
    return plan.value(option->key) != fresh.value(option->key);
  });
}

} // namespace

// Draws the group's name and, where something is folded, the button that shows it. Returns whether the folded
// options are shown.
bool TrainingFields::heading(const Editor& editor, const Graphics& graphics, const OptionGroup group) {
  const TrainingKind kind = editor.training_form.kind;
  const InputKind input = editor.document().kind;
  const TrainingData data = training_data(editor.document());
  const TrainingPlan& plan = editor.training_form.plan(kind, data);
  bool& unfolded = unfolded_.at(static_cast<std::size_t>(group));
  ImGui::PushFont(graphics.fonts().strong, theme::size_small);
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(group_title(group));
  ImGui::PopFont();
  std::vector<const TrainingOption*> folded;
  for (const TrainingOption* option : shown_options(kind, data, plan))
    if (group_of(option->section) == group && option->advanced.of(kind, input)) folded.push_back(option);
  if (folded.empty() && group != OptionGroup::output) return false;
  std::string label = unfolded ? "Less" : "More";
  if (const auto changed = changed_options(folded, plan, kind, data); changed > 0 && !unfolded)
    label += fmt::format(" ({} changed)", changed);
  same_line_for_last_button(label.c_str());
  if (ImGui::Button(fmt::format("{}###more_{}", label, group_title(group)).c_str())) unfolded = !unfolded;
  if (ImGui::IsItemHovered())
    text_tooltip(unfolded ? "Hides what is rarely changed" : "Shows what is rarely changed");
  return unfolded;
}

void TrainingFields::draw(Editor& editor, const Graphics& graphics, const std::string& default_output) {
  TrainingForm& form = editor.training_form;
  const Document& document = editor.document();
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, 2));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 4));
  static constexpr std::array<const char*, 2> kinds = {"Distil", "Fine-tune"};
  if (const int clicked = segmented("kind", kinds, static_cast<int>(form.kind)); clicked >= 0) {
    form.kind = static_cast<TrainingKind>(clicked);
    editor.training.question = TrainingQuestion::none;
  }
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Distil: a kernel's feature maps learn softmax's weights, layer by layer; the model "
        "stays as it is.\nFine-tune: chosen layers learn a task, through the kernels of the schedule.");
  TrainingPlan& plan = form.plan(form.kind, training_data(document));
  const std::vector<const TrainingOption*> options = shown_options(form.kind, training_data(document), plan);
  for (const OptionGroup group :
       {OptionGroup::data, OptionGroup::model, OptionGroup::optimisation, OptionGroup::output}) {
    const bool unfolded = heading(editor, graphics, group);
    if (group == OptionGroup::model && form.kind == TrainingKind::distill) kernel_row(form);
    if (group == OptionGroup::model && form.kind == TrainingKind::finetune) schedule_row(document);
    for (const TrainingOption* option : options) {
      const bool shown = unfolded || !option->advanced.of(form.kind, document.kind);
      if (group_of(option->section) == group && shown) option_row(editor, *option, default_output, plan);
    }
    if (group == OptionGroup::output && unfolded) update_row(form);
  }
  const TrainingPlan papers = with_papers_numbers(plan, form.kind, training_data(document));
  ImGui::BeginDisabled(papers == plan);
  form_label("");
  if (ImGui::Button("Reset to the paper's values###paper_values")) plan = papers;
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    text_tooltip(papers == plan ? "These are the paper's values"
                                : "Set all numbers to the paper's; data and files stay");
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

} // namespace hydrascope::app
