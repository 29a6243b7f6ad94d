// The document's only writer, and what surrounds it: what is hovered, which dialogs are wanted, messages.
// Panels and actions change the document through here; they know nothing of each other and nothing of the
// window.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/state/history.h"
#include "app/state/scaling_curves.h"
#include "app/state/session.h"
#include "app/state/settings.h"
#include "app/state/training_report.h"

namespace hydrascope::app {

enum class Severity { note, error };
struct Message {
  Severity severity = Severity::note;
  std::string text;
  double seconds = 0; // when it was last said, on the window's clock
  int count = 1;      // repeats are counted, not listed
};

enum class Dialog {
  none,
  open_file,
  open_folder,
  open_model,
  open_adapter,
  open_session,
  save_session,
  locate, // of the waiting session's missing files the one to be located
  export_figure,
  export_everything,
  training_data,
  training_validation,
  training_output
};

// Where the guided tour is (app/state/tour.h).
struct TourState {
  std::size_t step = 0;
  Document start;    // as it was when the step began
  bool done = false; // the user has done what the step asks for
};

// A session that is open, and how it stands to its file.
struct OpenSession {
  std::filesystem::path file;    // empty: it has none yet
  std::optional<Document> saved; // what the file holds; nullopt: not known, or nothing
};

// A session that is not opened before the user has said what is to become of the files it lacks.
struct WaitingSession {
  std::filesystem::path file;
  std::string text;
  Relocations relocated;
  ReadSession read;
  bool copy = false;         // an automatic one
  bool figure = false;       // what a figure was exported from …
  std::string panel;         // … and the id of its panel
  std::size_t to_locate = 0; // of read.missing
};

// A figure that was drawn from the command line, and its command.
struct FigureCommand {
  std::filesystem::path file;
  std::string command;
};

// How a training is to begin.
enum class TrainingStart {
  no,
  ask, // unless nothing stands in its way
  replace,
  resume
};

// What an action wants of the window; the window looks at it once per frame.
struct Shell {
  bool quit = false;
  bool reset_layout = false;
  bool palette_open = false;
  bool help_open = false;
  bool shortcuts_open = false;
  bool layout_dialog_open = false;
  bool get_model_open = false;
  std::optional<TourState> tour;
  bool capturing_keys = false; // the next keys are a shortcut to be, not one to be run
  bool cancel_runs = false, run_again = false;
  bool time_passes = false; // plain passes more, for the times of the layers
  bool measure_scaling = false, stop_scaling = false;
  TrainingStart start_training = TrainingStart::no;
  bool pause_training = false; // or go on with it
  bool stop_training = false, show_training = false;
  Dialog dialog = Dialog::none;
  std::string panel_to_export;                      // id of the panel whose figure is to be written …
  std::optional<std::filesystem::path> export_file; // … to this file; without one the dialog asks
  bool copy_input = false, paste = false;
  std::string panel_to_copy;   // id of the panel whose figure is to be copied
  std::string numbers_to_copy; // … and whose numbers
  bool new_session = false, save_session = false, reopen_last = false;
  std::optional<std::filesystem::path> session_file; // where the session is to be saved
  std::optional<std::string> arrangement;            // that the panels are to take, as Dear ImGui writes it
  std::optional<WaitingSession> waiting_session;
  std::optional<FigureCommand> figure_to_show;
  bool export_everything = false;                           // the figures of all open panels …
  std::optional<std::filesystem::path> export_folder;       // … to this folder; without one the dialog asks
  std::string panel_to_focus;                               // id of a panel that is to come to the front
  bool animate = false;                                     // something moves: draw another frame soon
  double wake_at = std::numeric_limits<double>::infinity(); // … or at this time of the window's clock

  // Said by the window, for the actions.
  bool computing = false;
  bool timing = false;  // passes run for the times of their layers …
  float progress = 0;   // … or another run: so much of it is done, 0…1
  bool stopped = false; // the last run was cancelled or failed, and nothing has been asked for since
  double scale = 1;     // in force
  std::set<std::string> panels_in_front; // that were drawn in the last frame
  bool has_last_session = false;         // how the program was left the last time is known
  std::string no_picture_clipboard;      // why pictures can be neither copied nor pasted; empty if they can
};

class Editor {
public:
  const Document& document() const { return history_.present(); }
  std::uint64_t revision() const { return history_.revision(); }
  const History& history() const { return history_; }

  // One undoable change. Calls with the same `gesture` join into one step until end_gesture().
  void change(std::string label, const std::function<void(Document&)>& edit, const std::string& gesture = {});
  void end_gesture() { history_.end_gesture(); }
  // What undo goes back to: forgets all steps.
  void set_initial(Document document) { history_.replace(std::move(document)); }
  bool panel_open(const std::string& id) const { return !document().closed_panels.contains(id); }
  void amend(const std::function<void(Document&)>& edit) { history_.amend(edit); }
  void undo() { history_.undo(); }
  void redo() { history_.redo(); }

  // Hovering is a view's state, not the document's: it is shown everywhere and undone nowhere.
  // What one panel reports in a frame, all panels show in the next.
  std::optional<std::int64_t> hovered_token() const { return hovered_token_; }
  std::int64_t hovered_count() const { return hovered_count_; } // from that token on: the pieces of a word
  void hover(std::int64_t token, std::int64_t count = 1) {
    next_hovered_token_ = token;
    next_hovered_count_ = count;
  }
  // A head under the pointer, likewise.
  std::optional<HeadIndex> hovered_head() const { return hovered_head_; }
  void hover_head(HeadIndex head) { next_hovered_head_ = head; }
  void next_frame() {
    hovered_head_ = std::exchange(next_hovered_head_, std::nullopt);
    hovered_token_ = std::exchange(next_hovered_token_, std::nullopt);
    hovered_count_ = next_hovered_count_;
  }

  Shell shell;

  // What the model makes of the open folder's pictures, as far as it has been found.
  PictureChecks checks;
  // Time against N, as far as it has been measured.
  ScalingCurves scaling;

  // The training to be, and the one that runs or was the last.
  TrainingForm training_form;
  TrainingReport training;

  // The one that the document belongs to. There is always one.
  const OpenSession& session() const { return sessions_[document().session]; }
  OpenSession& session_of(const Document& document) { return sessions_[document.session]; }
  std::size_t add_session(OpenSession session) {
    sessions_.push_back(std::move(session));
    return sessions_.size() - 1;
  }
  // By the folder of each model: the hash of its weights when the session was saved, or as runs have said.
  ModelHashes model_hashes;

  // Undone by nothing; the window applies and saves what changes.
  const Settings& settings() const { return settings_; }
  void change_settings(const std::function<void(Settings&)>& edit) { edit(settings_); }

  const std::vector<Message>& messages() const { return messages_; }
  void say(Severity severity, std::string text);
  void dismiss_message(std::size_t index);
  void set_clock(double seconds) { clock_ = seconds; }
  double clock() const { return clock_; }

private:
  History history_;
  Settings settings_;
  std::vector<OpenSession> sessions_ = std::vector<OpenSession>(1);
  std::vector<Message> messages_;
  double clock_ = 0;
  std::optional<std::int64_t> hovered_token_, next_hovered_token_;
  std::optional<HeadIndex> hovered_head_, next_hovered_head_;
  std::int64_t hovered_count_ = 1, next_hovered_count_ = 1;
};

} // namespace hydrascope::app
