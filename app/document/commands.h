// Requests of panels and actions to the window's services, as values. Editor::emit() collects them;
// apply_commands() (app/shell/apply_command.h) executes them once per frame.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace hydrascope::app {

// Dialogs of the desktop.
enum class Dialog {
  none,
  open_file,
  open_folder,
  open_model,
  open_adapter,
  open_session,
  save_session,
  open_map, // a kernel's source
  save_map,
  locate, // a file of the incomplete session
  export_figure,
  export_everything,
  training_data,
  training_validation,
  training_output,
  trained_adapter // where to save it as well
};

// Windows over the panels.
enum class Overlay { palette, help, shortcuts, save_layout, get_model, gallery, about };

enum class TrainingStart {
  ask, // if the output or a checkpoint exists
  replace,
  resume
};

struct Quit {};
struct ShowDialog {
  Dialog dialog = Dialog::none;
  std::filesystem::path missing = {}; // for Dialog::locate: where the file was
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

// Files. A dialog asks for a missing file or folder.
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
// Opens what a figure of the command line shows.
struct ShowFigure {
  std::filesystem::path file;
  std::string command;
};

struct NewSession {};
struct ReopenLastSession {};
struct SaveSession {
  std::optional<std::filesystem::path> file; // nullopt: the session's own
};

// The arrangement of the panels.
struct BringToFront {
  std::string panel;
};
struct ResetLayout {};
struct RestoreArrangement {
  std::string arrangement; // in Dear ImGui's format
};

// Runs and jobs.
struct CancelRuns {};
struct FreeMemory {}; // of models and hidden states that are not in use
struct RunAgain {};
// Tries the source of a map for the selected layer. With `apply` one that runs becomes the kernel.
struct CheckMap {
  std::string name, text;
  bool apply = false;
  bool everywhere = false; // in all layers that run the selected layer's map
  std::string gesture = {};
};
struct SaveMap { // that of the editor
  std::filesystem::path file;
};
struct TimePasses {}; // repeats the run to measure the times of layers
struct MeasureScaling {};
struct StopScaling {};
struct MeasureFolder {};
struct StopFolder {};
struct StartWriting { // after the document's text
  bool anew = true;   // false: goes on with what is there
};
struct StopWriting {};
struct StartTraining {
  TrainingStart how = TrainingStart::ask;
};
struct PauseTraining {}; // or continue
struct StopTraining {};
struct ShowTraining {}; // or hide the trained adapter
struct SaveTrainedAdapter {
  std::filesystem::path file;
};

using Command =
    std::variant<Quit, ShowDialog, ShowOverlay, HideOverlay, ToggleOverlay, GoToTourStep, ExportFigure,
                 ExportEverything, CopyInput, CopyFigure, CopyNumbers, Paste, ShowFigure, NewSession,
                 ReopenLastSession, SaveSession, BringToFront, ResetLayout, RestoreArrangement, CancelRuns,
                 FreeMemory, RunAgain, CheckMap, SaveMap, TimePasses, MeasureScaling, StopScaling,
                 MeasureFolder, StopFolder, StartWriting, StopWriting, StartTraining, PauseTraining,
                 StopTraining, ShowTraining, SaveTrainedAdapter>;

} // namespace hydrascope::app
