// Trains an adapter in the background and shows its progress: loss, KL of each layer, held-out numbers.
// While it trains, the other panels show the model in training.
#include <algorithm>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <imgui.h>

#include "app/actions/actions.h"
#include "app/document/editor.h"
#include "app/jobs/training_job.h"
#include "app/panels/panel.h"
#include "app/panels/training/training_fields.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/graphics.h"
#include "app/ui/widgets.h"
#include "app/views/training_view.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

class TrainingPanel final : public Panel {
public:
  explicit TrainingPanel(PanelServices services) : Panel("training", "Training", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const TrainingReport& report = editor().training;
    curves_.set(training_figure(report));
    progress_ = training_progress_text(report);
    result_ = training_result_text(report);
    share_ = static_cast<float>(training_share(report));
    prediction_ = prediction_of(snapshot);
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
    constexpr float two_columns = 620, form_width = 376, least_height = 150;
    const float height = std::max(ImGui::GetContentRegionAvail().y, least_height); // else the panel scrolls
    if (ImGui::GetContentRegionAvail().x >= two_columns) {
      if (ImGui::BeginChild("form", {form_width, height})) draw_form();
      ImGui::EndChild();
      ImGui::SameLine(0, 16);
      if (ImGui::BeginChild("curves", {0, height})) draw_curves_in(ImGui::GetContentRegionAvail(), true);
      ImGui::EndChild();
      return;
    }
    if (ImGui::BeginChild("all", {0, height})) {
      constexpr float curves_height = 190;
      if (!curves_.empty()) draw_curves_in({ImGui::GetContentRegionAvail().x, curves_height}, false);
      draw_form();
    }
    ImGui::EndChild();
  }

  std::optional<Figure> figure() const override {
    if (curves_.empty()) return std::nullopt;
    return curves_.figure();
  }

private:
  // "tabby 58.6 %"; empty for a model without a classifier, and while it is computed.
  static std::string prediction_of(const Snapshot& snapshot) {
    const RunResult* run = snapshot.shown().any();
    if (run == nullptr || snapshot.shown().stale || run->predictions.empty()) return {};
    const Prediction& first = run->predictions.front();
    return fmt::format("{} {}", first.label, percent_text(static_cast<double>(first.probability)));
  }

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
      if (button("Start###start", why_not,
                 "Trains in the background, in the layout Train, and waits while the model runs"))
        editor().emit(StartTraining{TrainingStart::ask});
      if (has_checkpoint_) {
        ImGui::SameLine();
        if (button("Resume###resume", why_not_resumed(editor(), has_checkpoint_),
                   "Goes on from the checkpoint beside the output"))
          editor().emit(StartTraining{TrainingStart::resume});
      }
    } else {
      const std::string stops = runs ? "" : "it is being stopped";
      if (button(report.paused ? "Go on###pause" : "Pause###pause", stops,
                 report.paused ? "Go on with the next step" : "Pause after this step"))
        editor().emit(PauseTraining{});
      ImGui::SameLine();
      if (button("Stop###stop", stops, "Stops after this step; a checkpoint is kept, to go on from"))
        editor().emit(StopTraining{});
    }
    draw_live();
    if (!report.active()) {
      // In the same place, so that the form below stays where it is.
      if (why_not.empty())
        wrapped_small_text(graphics(), training_effect(document(), editor().training_form));
      else
        wrapped_small_text(graphics(), why_not, theme::amber);
      return;
    }
    ImGui::SameLine(0, 16);
    ImGui::AlignTextToFramePadding();
    ellipsis_text(training_title(report), ImGui::GetContentRegionAvail().x, theme::quiet);
  }

  // Controls whether the other panels show the model in training.
  void draw_live() {
    const TrainingReport& report = editor().training;
    if (!report.active()) return;
    ImGui::SameLine(0, 16);
    bool live = report.adapter.empty() ? editor().training_form.show_live : shows_training(editor());
    if (check_box("live preview", &live)) editor().emit(ShowTraining{});
    if (ImGui::IsItemHovered())
      text_tooltip(
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
    if (report.state == TrainingState::finished) draw_use(report);
    draw_notes(report);
  }

  // What can be done with a finished adapter, and what it changes.
  void draw_use(const TrainingReport& report) {
    const std::string kernels =
        report.kind == TrainingKind::distill ? report.kernel.label() + " in all layers" : "this adapter";
    const bool used = shows_training(editor());
    std::string effect;
    if (used) {
      effect = fmt::format("In use: {}{}. Ctrl+Z takes it back.", kernels,
                           prediction_.empty() ? "" : "; the prediction is now " + prediction_);
    } else {
      if (ImGui::Button("Use it###use")) editor().emit(ShowTraining{});
      if (ImGui::IsItemHovered()) text_tooltip("Run the model with " + kernels + "; Ctrl+Z takes it back");
      ImGui::SameLine();
      effect = fmt::format("Not in use. Use it runs {}; Ctrl+Z takes it back.", kernels);
    }
    if (ImGui::Button("Save as…###save_adapter")) editor().emit(ShowDialog{Dialog::trained_adapter});
    if (ImGui::IsItemHovered())
      text_tooltip(
          "Save a copy of the adapter in a file of your choice; Model › Adapters › Open adapter… or "
          "--adapter load it later");
    ImGui::SameLine();
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ImGui::AlignTextToFramePadding();
    ellipsis_text(effect, ImGui::GetContentRegionAvail().x,
                  used ? ImVec4(theme::accent) : ImVec4(theme::text));
    ImGui::PopFont();
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
    fields_.draw(editor(), graphics(), output_);
    ImGui::EndDisabled();
  }

  // Side by side if there is room, otherwise one below the other.
  void draw_curves_in(ImVec2 size, bool fill) {
    if (curves_.empty()) {
      empty_notice(graphics(), editor().training.active()          ? "The curves begin with the first step."
                               : why_not_started(editor()).empty() ? "Press Start. The loss is drawn here."
                                                                   : "The loss is drawn here.");
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
                             number_text(line.y.at(item->item.within))));
  }

  TrainingFields fields_;
  DrawnFigure curves_;
  std::string progress_, result_, prediction_;
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
