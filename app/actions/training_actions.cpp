#include "app/actions/training_actions.h"

#include <string>
#include <system_error>
#include <utility>

#include "app/jobs/training_job.h"

namespace hydrascope::app {

std::string why_not_started(const Editor& editor) {
  if (editor.training.active()) return "a training runs already";
  return why_not_trained(editor.document(), editor.training_form);
}

std::string why_not_resumed(const Editor& editor, bool found) {
  if (std::string why = why_not_started(editor); !why.empty()) return why;
  return found ? std::string() : "there is no checkpoint beside the output";
}

void add_training_actions(std::vector<Action>& table) {
  const auto add = [&](const char* id, const char* label, std::function<void(Editor&)> run,
                       std::function<std::string(const Editor&)> why_not) -> Action& {
    const auto enabled = [why_not = std::move(why_not)](const Editor& editor) {
      std::string why = why_not(editor);
      return Availability{why.empty(), std::move(why)};
    };
    table.push_back({id, label, "Model/Training", "", enabled, std::move(run)});
    return table.back();
  };
  const auto none_runs = [](const Editor& editor) {
    return editor.training.state == TrainingState::running ? std::string() : "no training runs";
  };
  add(
      "training.start", "Start training",
      [](Editor& editor) { editor.emit(StartTraining{TrainingStart::ask}); }, why_not_started);
  add(
      "training.resume", "Resume training from its checkpoint",
      [](Editor& editor) { editor.emit(StartTraining{TrainingStart::resume}); },
      [](const Editor& editor) {
        const std::string why = why_not_started(editor);
        if (!why.empty()) return why;
        std::error_code none;
        const auto output = training_output(editor.document(), editor.training_form);
        return why_not_resumed(editor, std::filesystem::exists(checkpoint_path(output), none));
      });
  add(
      "training.pause", "Pause training, or go on", [](Editor& editor) { editor.emit(PauseTraining{}); },
      none_runs)
      .checked = [](const Editor& editor) { return editor.training.paused; };
  add(
      "training.stop", "Stop training, keeping a checkpoint",
      [](Editor& editor) { editor.emit(StopTraining{}); }, none_runs);
  add(
      "training.show", "Show the trained adapter", [](Editor& editor) { editor.emit(ShowTraining{}); },
      [](const Editor& editor) {
        const bool there = editor.training.active() || !editor.training.adapter.empty();
        return there ? std::string() : "nothing has been trained";
      })
      .checked = [](const Editor& editor) { return shows_training(editor); };
}

} // namespace hydrascope::app
