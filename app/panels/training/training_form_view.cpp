#include "app/panels/training/training_form_view.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float label_width = 104;

// Where the control follows, over all the width that is left but for `room`. What is hovered says where its
// default comes from.
void row_label(const char* text, const char* tooltip, const float room = 0) {
  field_label(text, label_width);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tooltip);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - room);
}

// The control of an option by the type of its value, below its label.
struct Field {
  const char* label;
  const char* tooltip;
  const char* hint;
  FieldRange range;

  void operator()(bool& value) const {
    row_label("", tooltip);
    ImGui::Checkbox(label, &value);
    show_tooltip();
  }
  void operator()(int& value) const {
    number_width();
    if (ImGui::InputInt(id().c_str(), &value, 0))
      value = std::clamp(value, static_cast<int>(range.least), static_cast<int>(range.most));
    show_tooltip();
  }
  void operator()(double& value) const {
    number_width();
    if (ImGui::InputDouble(id().c_str(), &value, 0, 0, "%g"))
      value = std::clamp(value, range.least, range.most);
    show_tooltip();
  }
  void operator()(std::string& value) const {
    row_label(label, tooltip);
    ImGui::InputTextWithHint(id().c_str(), hint, &value);
    show_tooltip();
  }
  void operator()(std::vector<std::string>&) const {} // files, one text in the form

private:
  std::string id() const { return fmt::format("##{}", label); }
  void number_width() const {
    constexpr float most = 96;
    row_label(label, tooltip);
    ImGui::SetNextItemWidth(std::min(most, ImGui::GetContentRegionAvail().x));
  }
  void show_tooltip() const {
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tooltip);
  }
};

void path_row(Editor& editor, const char* label, std::string& value, const std::string& hint,
              const std::string& tooltip, const Dialog dialog) {
  constexpr float button = 30;
  row_label(label, tooltip.c_str(), button + 4);
  ImGui::InputTextWithHint(fmt::format("##{}", label).c_str(), hint.c_str(), &value);
  if (ImGui::IsItemHovered()) text_tooltip(value.empty() ? tooltip : value + "\n" + tooltip);
  ImGui::SameLine(0, 4);
  if (ImGui::Button(fmt::format("…##{}", label).c_str(), {button, 0})) editor.emit(ShowDialog{dialog});
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Choose…");
}

void kernel_row(TrainingForm& form) {
  row_label("Kernel",
            "Whose feature maps learn to give softmax's weights.\nThose that distillation can train; T2R's "
            "are trained with a task, by fine-tuning.");
  if (!ImGui::BeginCombo("##kernel", form.kernel.text().c_str())) return;
  for (const std::string& name : distillable_kernels()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    kernel_square(ImGui::GetWindowDrawList(), {at.x + height / 2, at.y + height / 2}, 9, name);
    ImGui::SetCursorScreenPos({at.x + height + 6, at.y});
    if (ImGui::Selectable(name.c_str(), name == form.kernel.name))
      form.kernel = {.name = name, .parameters = {}};
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", kernel_info(name).definition.c_str());
  }
  ImGui::EndCombo();
}

void schedule_row(const Document& document) {
  row_label("Schedule",
            "The kernels in place, as the grid of the Kernels panel has them: training goes through them");
  ImGui::AlignTextToFramePadding();
  ellipsis_text(edited_schedule(document).summary(), ImGui::GetContentRegionAvail().x);
}

void option_row(Editor& editor, const TrainingOption& option, TrainingPlan& plan) {
  const TrainingKind kind = editor.training_form.kind;
  const InputKind input = editor.document().kind;
  const char* const tooltip = option.tooltip.of(kind, input);
  const char* const hint = option.hint.of(kind, input);
  OptionValue& value = plan.value(option.key);
  if (option.section == OptionSection::data)
    path_row(editor, option.label, std::get<std::string>(value), hint, tooltip,
             option.key == "validation" ? Dialog::training_validation : Dialog::training_data);
  else
    std::visit(Field{option.label, tooltip, hint, option.range.of(kind, input)}, value);
}

// The numbers of the papers, with the user's own data and files.
TrainingPlan with_papers_numbers(const TrainingPlan& plan, TrainingKind kind, InputKind input) {
  using enum OptionSection;
  static constexpr std::array own{data, table, items, parts, output};
  TrainingPlan fresh = papers_values(kind, input);
  for (const TrainingOption* option : form_options())
    if (std::ranges::count(own, option->section) > 0) fresh.set(option->key, plan.value(option->key));
  return fresh;
}

void output_rows(Editor& editor, const std::string& default_output, TrainingPlan& plan) {
  TrainingForm& form = editor.training_form;
  const TrainingOption& option = training_option("output");
  auto& value = plan.get<std::string>(option.key);
  const std::string before = value;
  path_row(
      editor, option.label, value, std::filesystem::path(default_output).filename().string(),
      fmt::format("{}\nLeft empty: {}", option.tooltip.of(form.kind, editor.document().kind), default_output),
      Dialog::training_output);
  if (value != before) editor.training.question = TrainingQuestion::none;
  row_label("Refresh", "How often the panels take up the model in training, while they show it");
  constexpr float width = 64;
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputDouble("##refresh", &form.live_seconds, 0, 0, "%g"))
    form.live_seconds = std::clamp(form.live_seconds, 0.01, 3600.0);
  ImGui::SameLine(0, 6);
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "seconds of training");
}

} // namespace

void draw_training_form(Editor& editor, const Graphics& graphics, const std::string& default_output) {
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
    ImGui::SetTooltip(
        "Distil: a kernel's feature maps learn softmax's weights, layer by layer; the model "
        "stays as it is.\nFine-tune: chosen layers learn a task, through the kernels in place.");
  TrainingPlan& plan = form.plan(form.kind, document.kind);
  if (form.kind == TrainingKind::distill) {
    kernel_row(form);
  } else {
    schedule_row(document);
  }
  for (const TrainingOption* option : shown_options(form.kind, document.kind, plan)) {
    if (option->key == "output")
      output_rows(editor, default_output, plan);
    else
      option_row(editor, *option, plan);
  }
  const TrainingPlan papers = with_papers_numbers(plan, form.kind, document.kind);
  ImGui::BeginDisabled(papers == plan);
  field_label("", label_width);
  if (ImGui::Button("The papers' numbers")) plan = papers;
  ImGui::EndDisabled();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

} // namespace hydrascope::app
