// The application's state: the document with its history, and everything around it that is not undoable.
// Panels and actions change the document only through here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/document/commands.h"
#include "app/document/history.h"
#include "app/document/session.h"
#include "app/document/settings.h"
#include "app/document/training_form.h"
#include "app/views/scaling_view.h"
#include "app/views/training_view.h"
#include "engine/attention/own/map_check.h"
#include "engine/run/devices.h"

namespace hydrascope::app {

enum class Severity { note, error };

struct Message {
  Severity severity = Severity::note;
  std::string text;
  double seconds = 0; // when it was added last, on the window's clock
  int count = 1;      // repeats are counted, not listed
  std::string topic;  // a later message of the same topic replaces it; empty: none
};

// Messages for the user, newest last; at most 100.
class Messages {
public:
  const std::vector<Message>& all() const { return messages_; }
  // A repeated message moves to the end. Removes the message of the same topic.
  void add(Severity severity, std::string text, double seconds, const std::string& topic = {});
  void remove(std::size_t index);

private:
  std::vector<Message> messages_;
};

// What the pointer is over. One panel reports it during a frame; all panels show it in the next one.
class Hover {
public:
  std::optional<std::int64_t> token() const { return shown_.token; }
  std::int64_t count() const { return shown_.count; } // tokens from token() on: the pieces of a word
  std::optional<HeadIndex> head() const { return shown_.head; }
  void set_token(std::int64_t token, std::int64_t count) {
    reported_.token = token;
    reported_.count = count;
  }
  void set_head(HeadIndex head) { reported_.head = head; }
  void next_frame() { shown_ = std::exchange(reported_, {}); }

private:
  struct State {
    std::optional<std::int64_t> token;
    std::int64_t count = 1;
    std::optional<HeadIndex> head;
  };
  State shown_, reported_;
};

// The file of a session.
struct SessionFile {
  std::filesystem::path file;    // empty: none yet
  std::optional<Document> saved; // the document in the file; nullopt: unknown or none
  std::optional<Lesson> lesson;  // what the session teaches
  bool lesson_closed = false;    // the user closed the lesson's card
};

// A session with missing files, which is opened once the user has located them or opens it without them.
struct IncompleteSession {
  std::filesystem::path file;
  std::string text;
  Relocations relocated;
  ReadSession read;
  bool copy = false;   // it is an automatic copy
  bool figure = false; // it comes from the metadata of a figure, exported from `panel`
  std::string panel;   // id
};

// The source of a map, in the editor of the panel "Your kernel".
struct MapText {
  std::string name, text;
};

// The last check of a map's source.
struct MapReport {
  std::uint64_t number = 0; // counts the checks; 0: none yet
  std::string place;        // see map_place()
  MapText source;
  CheckedMap result;
};

// The state of the window, for panels and actions; set once per frame.
struct WindowStatus {
  bool computing = false;          // a run, a measurement of time against N, an export or a download
  bool timing = false;             // the run measures the times of layers
  float progress = 0;              // of the run, 0…1
  bool stopped = false;            // the last run was cancelled or failed, and none was requested since
  double scale = 1;                // pixels per point
  std::size_t written_figures = 0; // files and folders of figures written so far
  // Revision of the document whose focus maps are in front and not empty, for the tour; 0: none.
  std::uint64_t focus_map_seen = 0;
  std::int64_t tokens = 0;               // of the newest run of the input that is shown; 0: none
  std::set<std::string> panels_in_front; // ids of the panels drawn in the last frame
  bool has_last_session = false;         // the state at the last exit is known
  std::string no_picture_clipboard;      // why pictures cannot be copied or pasted; empty if they can
  // That models can run on; null until the worker has found them. CUDA is loaded on its thread alone: the
  // window asks nothing about a GPU that is not known to work.
  std::shared_ptr<const DeviceList> devices = {};
};

// Frames to be drawn without input.
struct FrameRequests {
  bool now = false;                                    // something to be shown has changed
  bool soon = false;                                   // for an animation
  double at = std::numeric_limits<double>::infinity(); // on the window's clock
};

class Editor {
public:
  // ---- The document, with undo
  const Document& document() const { return history_.present(); }
  std::uint64_t revision() const { return history_.revision(); }
  const History& history() const { return history_; }
  // One undoable change. Changes with the same `gesture` are one step, until end_gesture().
  void change(std::string label, const std::function<void(Document&)>& edit, const std::string& gesture = {});
  void end_gesture() { history_.end_gesture(); }
  // Sets the document and clears the history.
  void set_initial(Document document);
  void amend(const std::function<void(Document&)>& edit) { history_.amend(edit); }
  void undo() { history_.undo(); }
  void redo() { history_.redo(); }
  bool panel_open(const std::string& id) const { return !document().closed_panels.contains(id); }

  // ---- The pointer
  std::optional<std::int64_t> hovered_token() const { return hover_.token(); }
  std::int64_t hovered_count() const { return hover_.count(); }
  void hover(std::int64_t token, std::int64_t count = 1) { hover_.set_token(token, count); }
  std::optional<HeadIndex> hovered_head() const { return hover_.head(); }
  void hover_head(HeadIndex head) { hover_.set_head(head); }
  void next_frame() { hover_.next_frame(); }

  // What is typed into the search of the open list; a list clears it when it opens.
  std::string& list_search() { return list_search_; }

  // ---- Commands, applied at the begin of the next frame in this order
  void emit(Command command) { commands_.push_back(std::move(command)); }
  const std::vector<Command>& commands() const { return commands_; }
  std::vector<Command> take_commands() { return std::exchange(commands_, {}); }

  // ---- The window
  const WindowStatus& status() const { return status_; }
  void set_status(WindowStatus status) { status_ = std::move(status); }
  void draw_now() { frames_.now = true; }
  void draw_soon() { frames_.soon = true; }
  void draw_at(double seconds) { frames_.at = std::min(frames_.at, seconds); }
  const FrameRequests& frame_requests() const { return frames_; }
  void clear_frame_requests() { frames_ = {}; }
  void set_clock(double seconds) { clock_ = seconds; }
  double clock() const { return clock_; } // seconds

  // ---- Results of background jobs, which write them here
  PictureChecks checks;    // predictions for the open folder's pictures
  ScalingCurves scaling;   // time against N
  FolderMeasures folder;   // A's schedule compared with softmax on each picture of a folder
  TrainingReport training; // the running or last training
  Writing writing;         // after the document's text, or after that of a document before
  TrainingForm training_form;

  // ---- The source of a kernel `phi`
  MapText typed_map;                  // what the editor shows
  std::optional<MapText> offered_map; // what it is to show next, as if it had been typed
  MapReport map_report;

  // ---- Sessions
  // The one of the document. There is always one.
  const SessionFile& session() const { return sessions_.at(document().session); }
  SessionFile& session() { return sessions_.at(document().session); }
  // Null once it has been dropped: add_session() and set_initial() drop those that neither the document nor a
  // step of undo or redo belongs to, since each holds the pictures of its file.
  SessionFile* session_of(const Document& document);
  // Returns the id for Document::session.
  std::size_t add_session(SessionFile session);
  std::optional<IncompleteSession> incomplete_session;
  // Hashes of the models' weights according to the session or to runs.
  ModelHashes model_hashes;

  // ---- Settings, which the window applies and saves
  const Settings& settings() const { return settings_; }
  void change_settings(const std::function<void(Settings&)>& edit) { edit(settings_); }

  // ---- Messages
  const std::vector<Message>& messages() const { return messages_.all(); }
  void say(Severity severity, std::string text, const std::string& topic = {}) {
    messages_.add(severity, std::move(text), clock_, topic);
    draw_now();
  }
  void dismiss_message(std::size_t index) { messages_.remove(index); }

private:
  void drop_unused_sessions();

  History history_;
  Hover hover_;
  std::string list_search_;
  std::vector<Command> commands_;
  WindowStatus status_;
  FrameRequests frames_;
  double clock_ = 0;
  std::map<std::size_t, SessionFile> sessions_{{0, {}}};
  std::size_t newest_session_ = 0;
  Settings settings_;
  Messages messages_;
};

} // namespace hydrascope::app
