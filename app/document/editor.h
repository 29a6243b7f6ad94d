// The document's only writer, and what surrounds it: commands, what is hovered, messages. Panels and actions
// change the document through here; they know nothing of each other and nothing of the window.
#pragma once

#include <algorithm>
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

#include "app/document/commands.h"
#include "app/document/folder_measures.h"
#include "app/document/history.h"
#include "app/document/session.h"
#include "app/document/settings.h"
#include "app/document/training_form.h"
#include "app/views/scaling_view.h"
#include "app/views/training_report.h"

namespace hydrascope::app {

enum class Severity { note, error };
struct Message {
  Severity severity = Severity::note;
  std::string text;
  double seconds = 0; // when it was last said, on the window's clock
  int count = 1;      // repeats are counted, not listed
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

// What the window reports of itself to panels and actions; written once per frame.
struct ShellStatus {
  bool computing = false;                // a run, a measurement of time against N, an export or a fetch
  bool timing = false;                   // passes run for the times of their layers …
  float progress = 0;                    // … or another run: so much of it is done, 0…1
  bool stopped = false;                  // the last run was cancelled or failed, and nothing was asked since
  double scale = 1;                      // in force
  bool exporting_figure = false;         // its file is being chosen or written
  std::set<std::string> panels_in_front; // that were drawn in the last frame
  bool has_last_session = false;         // how the program was left the last time is known
  std::string no_picture_clipboard;      // why pictures can be neither copied nor pasted; empty if they can
};

// Frames that are drawn although there is no input.
struct FrameRequests {
  bool soon = false;                                   // something moves
  double at = std::numeric_limits<double>::infinity(); // on the window's clock
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

  // What is applied at the begin of the next frame, in this order.
  void emit(Command command) { commands_.push_back(std::move(command)); }
  const std::vector<Command>& commands() const { return commands_; }
  std::vector<Command> take_commands() { return std::exchange(commands_, {}); }

  const ShellStatus& status() const { return status_; }
  void set_status(ShellStatus status) { status_ = std::move(status); }

  void draw_soon() { frames_.soon = true; }
  void draw_at(double seconds) { frames_.at = std::min(frames_.at, seconds); }
  const FrameRequests& frame_requests() const { return frames_; }
  void forget_frame_requests() { frames_ = {}; }

  // A session that is not open yet, as files of it are missing.
  std::optional<WaitingSession> waiting_session;

  // What the model makes of the open folder's pictures, as far as it has been found.
  PictureChecks checks;
  // Time against N, as far as it has been measured.
  ScalingCurves scaling;
  // How far A lies from softmax on each picture of a folder, as far as it has been measured.
  FolderMeasures folder;

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
  std::vector<Command> commands_;
  ShellStatus status_;
  FrameRequests frames_;
  double clock_ = 0;
  std::optional<std::int64_t> hovered_token_, next_hovered_token_;
  std::optional<HeadIndex> hovered_head_, next_hovered_head_;
  std::int64_t hovered_count_ = 1, next_hovered_count_ = 1;
};

} // namespace hydrascope::app
