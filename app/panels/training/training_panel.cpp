// Trains an adapter in the background and shows its progress: loss, KL of each layer, held-out numbers.
// While it trains, the other panels show the model in training.
#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/actions/actions.h"
#include "app/document/editor.h"
#include "app/jobs/training_job.h"
#include "app/panels/panel.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/graphics.h"
#include "app/ui/widgets.h"
#include "app/views/training_view.h"
#include "engine/base/text.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float form_label_width = 124;

// The label of a control, which gets the rest of the width less `room`.
void row_label(const char* text, const char* tooltip, const float room = 0) {
  field_label(text, form_label_width);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tooltip);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - room);
}

// The control of an option, by the type of its value.
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
    if (*hint != '\0' && range.least == 0) return whole_number_or_none(value);
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
  void operator()(std::vector<std::string>&) const {} // lists of files have one text in the form

private:
  // An empty field is 0, and the hint says what that means.
  void whole_number_or_none(int& value) const {
    std::string text = value == 0 ? "" : std::to_string(value);
    if (ImGui::InputTextWithHint(id().c_str(), hint, &text, ImGuiInputTextFlags_CharsDecimal))
      value = std::min(whole_number(text).value_or(0), static_cast<int>(range.most));
    show_tooltip();
  }
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
  row_label("Schedule", "Change it in Model and kernels; training goes through these kernels");
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

// The papers' values, with the user's data and files.
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
  row_label("Update views every",
            "Sets how often the panels take up the model in training, in seconds of training");
  constexpr float width = 64;
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputDouble("##refresh", &form.live_seconds, 0, 0, "%g"))
    form.live_seconds = std::clamp(form.live_seconds, 0.01, 3600.0);
  ImGui::SameLine(0, 6);
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "s");
}

// `default_output`: the file that is written if the user names none.
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
        "stays as it is.\nFine-tune: chosen layers learn a task, through the kernels of the schedule.");
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
  field_label("", form_label_width);
  if (ImGui::Button("Reset to paper defaults")) plan = papers;
  ImGui::EndDisabled();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

class TrainingPanel final : public Panel {
public:
  explicit TrainingPanel(PanelServices services) : Panel("training", "Training", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot&) override {
    const TrainingReport& report = editor().training;
    curves_.set(training_figure(report));
    progress_ = training_progress_text(report);
    result_ = training_result_text(report);
    share_ = static_cast<float>(training_share(report));
    look_up_files();
  }

  void draw() override {
    if (!document().scene().model) {
      empty_notice(graphics(), "Trains feature maps or layers of a model, once one is open.");
      return;
    }
    // The form may name other files now.
    if (editor().training_form != form_ || kind_ != document().kind) look_up_files();
    draw_buttons();
    draw_question();
    draw_state();
    constexpr float two_columns = 560, form_width = 320;
    if (ImGui::GetContentRegionAvail().x >= two_columns) {
      if (ImGui::BeginChild("form", {form_width, 0})) draw_form();
      ImGui::EndChild();
      ImGui::SameLine(0, 16);
      if (ImGui::BeginChild("curves")) draw_curves_in(ImGui::GetContentRegionAvail(), true);
      ImGui::EndChild();
      return;
    }
    if (ImGui::BeginChild("all")) {
      constexpr float height = 190;
      if (!curves_.empty()) draw_curves_in({ImGui::GetContentRegionAvail().x, height}, false);
      draw_form();
    }
    ImGui::EndChild();
  }

  std::optional<Figure> figure() const override {
    if (curves_.empty()) return std::nullopt;
    return curves_.figure();
  }

private:
  void look_up_files() {
    form_ = editor().training_form;
    kind_ = document().kind;
    if (!document().scene().model) return;
    const std::filesystem::path output = training_output(document(), form_);
    std::error_code none;
    output_ = output.string();
    has_checkpoint_ = std::filesystem::exists(checkpoint_path(output), none);
  }

  // Disabled, with the reason as its tooltip, unless `why_not` is empty.
  static bool button(const char* label, const std::string& why_not, const char* tooltip) {
    ImGui::BeginDisabled(!why_not.empty());
    const bool pressed = ImGui::Button(label);
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      text_tooltip(why_not.empty() ? std::string(tooltip) : why_not);
    return pressed;
  }

  void draw_buttons() {
    const TrainingReport& report = editor().training;
    const bool runs = report.state == TrainingState::running;
    const std::string why_not = why_not_started(editor());
    if (!report.active()) {
      if (button("Start###start", why_not, "Trains in the background, and waits while the model runs"))
        editor().emit(StartTraining{TrainingStart::ask});
      ImGui::SameLine();
      if (button("Resume###resume", why_not_resumed(editor(), has_checkpoint_),
                 "Goes on from the checkpoint beside the output"))
        editor().emit(StartTraining{TrainingStart::resume});
    } else {
      const std::string stops = runs ? "" : "it is being stopped";
      if (button(report.paused ? "Go on###pause" : "Pause###pause", stops,
                 report.paused ? "Go on with the next step" : "Pause after this step"))
        editor().emit(PauseTraining{});
      ImGui::SameLine();
      if (button("Stop###stop", stops, "Stops after this step; a checkpoint is kept, to go on from"))
        editor().emit(StopTraining{});
    }
    draw_show();
    if (!report.active()) return;
    ImGui::SameLine(0, 16);
    ImGui::AlignTextToFramePadding();
    ellipsis_text(training_title(report), ImGui::GetContentRegionAvail().x, theme::quiet);
  }

  // Controls whether the other panels use the adapter.
  void draw_show() {
    const TrainingReport& report = editor().training;
    if (!report.active() && report.adapter.empty() && report.state != TrainingState::none) return;
    ImGui::SameLine(0, 16);
    const bool shown = shows_training(editor());
    if (report.state == TrainingState::finished) {
      if (shown) {
        ImGui::AlignTextToFramePadding();
        ImGui::TextColored(theme::quiet, "this adapter is in use");
      } else if (ImGui::Button("Use this adapter###use")) {
        editor().emit(ShowTraining{});
      }
      return;
    }
    bool live = report.adapter.empty() ? editor().training_form.show_live : shown;
    if (ImGui::Checkbox("live preview", &live)) editor().emit(ShowTraining{});
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip(
          "Shows the model in training in all panels, with the kernel in all layers if one is "
          "distilled;\nafterwards these show the finished adapter, or what they showed before");
  }

  void draw_question() {
    const TrainingQuestion question = editor().training.question;
    if (question == TrainingQuestion::none) return;
    const std::string name = std::filesystem::path(output_).filename().string();
    const bool checkpoint = question == TrainingQuestion::found_checkpoint;
    wrapped_small_text(graphics(),
                       checkpoint ? fmt::format("{} has a checkpoint of a training that was stopped.", name)
                                  : fmt::format("{} is there already.", output_),
                       theme::amber);
    if (checkpoint && ImGui::Button("Resume it###question_resume"))
      editor().emit(StartTraining{TrainingStart::resume});
    if (checkpoint) ImGui::SameLine();
    if (ImGui::Button(checkpoint ? "Start anew###question_replace" : "Replace it###question_replace"))
      editor().emit(StartTraining{TrainingStart::replace});
    ImGui::SameLine();
    if (ImGui::Button("Cancel###question_cancel")) editor().training.question = TrainingQuestion::none;
  }

  void draw_state() {
    const TrainingReport& report = editor().training;
    if (report.state == TrainingState::none) return;
    if (report.active() || report.state == TrainingState::finished) {
      ImGui::PushStyleColor(ImGuiCol_PlotHistogram, report.paused ? theme::amber : theme::accent);
      ImGui::ProgressBar(share_, {-1, 6}, "");
      ImGui::PopStyleColor();
    }
    if (report.active()) {
      const char* const lead = report.state == TrainingState::stopping ? "stops after this step: "
                               : report.paused && report.waiting       ? "paused: "
                               : report.paused                         ? "pauses after this step: "
                                                                       : "";
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      ellipsis_text(lead + progress_, ImGui::GetContentRegionAvail().x,
                    report.paused ? theme::amber : theme::text);
      ImGui::PopFont();
    } else {
      wrapped_small_text(graphics(), with_known_glyphs(result_),
                         report.state == TrainingState::failed    ? theme::red
                         : report.state == TrainingState::stopped ? theme::amber
                                                                  : theme::text);
    }
    draw_notes(report);
  }

  // The newest note; the tooltip has all.
  void draw_notes(const TrainingReport& report) const {
    if (report.notes.empty()) return;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const std::size_t others = report.notes.size() - 1;
    const std::string text =
        report.notes.back() + (others > 0 ? fmt::format(" (and {} more notes)", others) : std::string());
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, theme::amber);
    if (others > 0 && ImGui::IsItemHovered()) text_tooltip(fmt::format("{}", fmt::join(report.notes, "\n")));
    ImGui::PopFont();
  }

  void draw_form() {
    ImGui::BeginDisabled(editor().training.active());
    draw_training_form(editor(), graphics(), output_);
    ImGui::EndDisabled();
  }

  // Side by side if there is room, otherwise one below the other.
  void draw_curves_in(ImVec2 size, bool fill) {
    if (curves_.empty()) {
      empty_notice(graphics(),
                   editor().training.active()
                       ? "The curves begin with the first step."
                       : "Loss, KL of each layer and held-out numbers, once a training runs: name "
                         "the data, then press Start.");
      return;
    }
    constexpr float least = 300; // width of a plot
    const auto count = static_cast<float>(curves_.figure().panels.size());
    const bool beside = size.x / count >= least;
    if (!beside && !fill) size.y *= count;
    curves_.arrange(beside ? 0 : 1);
    const auto item = curves_.draw("##curves", graphics(), size).item;
    if (!item) return;
    const auto& panel = std::get<LinesPanel>(curves_.figure().panels.at(item->panel));
    const LinesPanel::Line& line = panel.lines.at(item->item.index);
    text_tooltip(fmt::format("{}\nstep {:.0f}: {}", line.name, line.x.at(item->item.within),
                             number_text(line.y.at(item->item.within), 4)));
  }

  DrawnFigure curves_;
  std::string progress_, result_;
  float share_ = 0;
  // The form and the input for which files were looked up, and the result.
  TrainingForm form_;
  InputKind kind_ = InputKind::image;
  std::string output_;
  bool has_checkpoint_ = false;
};

} // namespace

std::unique_ptr<Panel> make_training_panel(PanelServices services) {
  return std::make_unique<TrainingPanel>(services);
}

} // namespace hydrascope::app
