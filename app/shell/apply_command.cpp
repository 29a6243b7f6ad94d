#include "app/shell/apply_command.h"

#include <utility>
#include <variant>
#include <vector>

#include <imgui.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/document/writing_edits.h"

namespace hydrascope::app {

namespace {

class Apply {
public:
  explicit Apply(const Services& services) : on_(services) {}

  void operator()(const Quit&) const { on_.quit = true; }
  void operator()(const ShowDialog& command) const { on_.dialogs.show(command, on_.editor); }
  void operator()(const ShowOverlay& command) const { on_.overlays[command.overlay] = true; }
  void operator()(const HideOverlay& command) const { on_.overlays[command.overlay] = false; }
  void operator()(const ToggleOverlay& command) const {
    bool& open = on_.overlays[command.overlay];
    open = !open;
  }
  void operator()(const GoToTourStep& command) const {
    on_.overlays[Overlay::gallery] = false;
    go_to_tour_step(on_.editor, on_.overlays.tour, command.step);
  }

  void operator()(const ExportFigure& command) const {
    if (!command.file) return on_.dialogs.show({Dialog::export_figure}, on_.editor, command.panel);
    on_.exports.write(command.panel, *command.file);
  }
  void operator()(const ExportEverything& command) const {
    if (!command.folder) return on_.dialogs.show({Dialog::export_everything}, on_.editor);
    on_.everything.start(*command.folder);
  }
  void operator()(const CopyInput&) const { on_.clipboard.copy_input(on_.editor); }
  void operator()(const CopyFigure& command) const {
    on_.clipboard.copy_figure(on_.editor, on_.figure_of(command.panel));
  }
  void operator()(const CopyNumbers& command) const {
    on_.clipboard.copy_numbers(on_.editor, on_.figure_of(command.panel));
  }
  void operator()(const Paste&) const { on_.clipboard.paste(on_.editor); }
  void operator()(const ShowFigure& command) const {
    if (on_.show_figure) on_.show_figure(on_.editor, command);
  }

  void operator()(const NewSession&) const { start_new_session(on_.editor); }
  void operator()(const ReopenLastSession&) const { on_.sessions.reopen_last(on_.editor); }
  void operator()(const SaveSession& command) const { on_.sessions.save(on_.editor, command.file); }

  void operator()(const BringToFront& command) const { on_.arrangement.focus(command.panel); }
  void operator()(const ResetLayout&) const { on_.arrangement.reset(); }
  void operator()(const RestoreArrangement& command) const {
    on_.arrangement.restore_at_next_frame(command.arrangement);
  }

  void operator()(const CancelRuns&) const {
    on_.runs.cancel();
    on_.exports.cancel();
    on_.everything.cancel();
    on_.jobs.fetch.cancel();
  }
  void operator()(const FreeMemory&) const {
    on_.runs.free_memory();
    ImGui::GetIO().Fonts->CompactCache(); // drops letters of sizes that the last frame did not use
  }
  void operator()(const RunAgain&) const { on_.runs.run_again(); }
  void operator()(const CheckMap& command) const { on_.jobs.maps.start(on_.editor, command); }
  void operator()(const SaveMap& command) const { save_map(on_.editor, command.file); }
  void operator()(const TimePasses&) const {
    constexpr int passes = 10;
    // Of what is shown: panels that follow a decoder have its text.
    const std::optional<Document> followed = followed_document(on_.editor);
    on_.runs.time_passes(followed ? *followed : on_.editor.document(), passes);
  }
  void operator()(const MeasureScaling&) const { on_.jobs.scaling.start(on_.editor); }
  void operator()(const StopScaling&) const { on_.jobs.scaling.stop(on_.editor); }
  void operator()(const MeasureFolder&) const { on_.jobs.folder.start(on_.editor); }
  void operator()(const StopFolder&) const { on_.jobs.folder.stop(on_.editor); }
  void operator()(const StartWriting& command) const { on_.jobs.writing.start(on_.editor, command.anew); }
  void operator()(const StopWriting&) const { on_.jobs.writing.stop(on_.editor); }
  void operator()(const StartTraining& command) const {
    on_.arrangement.show_training(on_.editor);
    on_.jobs.training.begin(on_.editor, command.how);
  }
  void operator()(const PauseTraining&) const { on_.jobs.training.toggle_pause(on_.editor); }
  void operator()(const StopTraining&) const { on_.jobs.training.stop(on_.editor); }
  void operator()(const ShowTraining&) const { on_.jobs.training.toggle_shown(on_.editor); }
  void operator()(const SaveTrainedAdapter& command) const {
    on_.jobs.training.save_adapter(on_.editor, command.file);
  }

private:
  const Services& on_;
};

} // namespace

bool apply_commands(const Services& services) {
  bool any = false;
  for (std::vector<Command> commands = services.editor.take_commands(); !commands.empty();
       commands = services.editor.take_commands()) {
    for (const Command& command : commands) std::visit(Apply(services), command);
    any = true;
  }
  return any;
}

} // namespace hydrascope::app
