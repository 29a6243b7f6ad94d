// What panels and actions ask for, as values. Editor::emit() collects them; the window applies them once per
// frame, each to the document or to the service that it belongs to.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace hydrascope::app {

// The desktop's own dialogs.
enum class Dialog {
  none,
  open_file,
  open_folder,
  open_model,
  open_adapter,
  open_session,
  save_session,
  locate, // the file of the waiting session that is chosen there
  export_figure,
  export_everything,
  training_data,
  training_validation,
  training_output
};

// What lies over the panels until it is closed.
enum class Overlay { palette, help, shortcuts, save_layout, get_model };

// How a training begins.
enum class TrainingStart {
  ask, // unless nothing stands in its way
  replace,
  resume
};

struct Quit {};
struct ShowDialog {
  Dialog dialog = Dialog::none;
};
struct ShowOverlay {
  Overlay overlay = Overlay::palette;
};
struct HideOverlay {
  Overlay overlay = Overlay::palette;
};
struct ToggleOverlay {
  Overlay overlay = Overlay::palette;
};
struct GoToTourStep {
  std::size_t step = 0;
};

// Files. Without a file or folder a dialog asks for it.
struct ExportFigure {
  std::string panel; // its id
  std::optional<std::filesystem::path> file;
};
struct ExportEverything { // the figures of all open panels
  std::optional<std::filesystem::path> folder;
};
struct CopyInput {};
struct CopyFigure {
  std::string panel;
};
struct CopyNumbers {
  std::string panel;
};
struct Paste {};
// A figure that was drawn from the command line, and its command.
struct ShowFigure {
  std::filesystem::path file;
  std::string command;
};

struct NewSession {};
struct ReopenLastSession {};
struct SaveSession {
  std::optional<std::filesystem::path> file; // nullopt: the session's own
};

// Where the panels are.
struct BringToFront {
  std::string panel;
};
struct ResetLayout {};
struct RestoreArrangement {
  std::string arrangement; // as Dear ImGui writes it
};

// Runs and jobs.
struct CancelRuns {};
struct RunAgain {};
struct TimePasses {}; // plain passes more, for the times of the layers
struct MeasureScaling {};
struct StopScaling {};
struct MeasureFolder {};
struct StopFolder {};
struct StartTraining {
  TrainingStart how = TrainingStart::ask;
};
struct PauseTraining {}; // or go on with it
struct StopTraining {};
struct ShowTraining {}; // the trained adapter, or what was shown before it

using Command =
    std::variant<Quit, ShowDialog, ShowOverlay, HideOverlay, ToggleOverlay, GoToTourStep, ExportFigure,
                 ExportEverything, CopyInput, CopyFigure, CopyNumbers, Paste, ShowFigure, NewSession,
                 ReopenLastSession, SaveSession, BringToFront, ResetLayout, RestoreArrangement, CancelRuns,
                 RunAgain, TimePasses, MeasureScaling, StopScaling, MeasureFolder, StopFolder, StartTraining,
                 PauseTraining, StopTraining, ShowTraining>;

} // namespace hydrascope::app
