// What the program keeps from one start to the next: the settings and the last session.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/base/files.h"

namespace hydrascope::app {

class Display;

// The settings' file.
class SettingsFile {
public:
  // Reads the file, unless the path is empty, into the editor. Reports errors there.
  SettingsFile(std::filesystem::path file, Editor& editor);
  // Writes the file if the settings have changed. Reports an error once.
  void save(Editor& editor);
  // The same once the window is gone, also of what could not be written before. Reports to stderr.
  void shut_down(const Editor& editor);
  bool exists() const { return !file_.empty(); }

private:
  std::string write(const Settings& settings); // returns what went wrong

  std::filesystem::path file_; // empty: none
  bool failed_ = false;        // the last writing
  Settings saved_;
};

// Saves sessions, and an automatic copy of the current one, which survives a crash. A thread writes the
// files, so that no frame waits.
class SessionStore {
public:
  // `folder`: of the automatic copy, autosave.json; the previous one becomes last-session.json. A second
  // window at the same time has autosave-2.json and last-session-2.json. Empty: no copy. Wakes the display
  // when a file was written; the display must outlive this.
  SessionStore(std::filesystem::path folder, Display& display);
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  // Opens the session of the last exit. Returns whether there was one and it could be read.
  bool reopen_last(Editor& editor);
  bool has_last() const { return has_last_; }
  // Saves the present session into this file (nullopt: its own), after the files that wait to be written.
  void save(const Editor& editor, const std::optional<std::filesystem::path>& file);
  // Once per frame: reports what was saved, and updates the window's title.
  void update(Editor& editor);
  // While idle: writes the copy if it is due, a few seconds after a change.
  void update_copy(Editor& editor, double now);
  double due() const; // on the window's clock; infinity without a change
  void arrangement_changed(double now);
  // Before the program ends: writes what waits, and the copy. Errors go to stderr, too.
  void shut_down(Editor& editor);

  bool busy() const { return job_ != nullptr || !waiting_.empty(); }

private:
  struct Waiting {
    Session session;
    std::filesystem::path file;
  };
  // A session being written.
  struct Written {
    Document document;
    std::filesystem::path file;
    bool copy = false;
  };
  struct Nothing {};
  using Job = BackgroundJob<Nothing>;

  void start(Session session, std::filesystem::path file, bool copy);
  std::string finish(Editor& editor); // waits for the job, reports the result; returns an error, or ""
  void start_next();
  // The session's, which is that of a save that has not ended yet.
  std::filesystem::path own_file(const Editor& editor) const;
  void take_number();
  std::filesystem::path copy_file() const { return file_of_window("autosave"); }
  std::filesystem::path last_file() const { return file_of_window("last-session"); }
  std::filesystem::path file_of_window(const char* name) const;

  std::filesystem::path folder_;
  int number_ = 1;                      // of the windows that use the folder, from 1
  std::optional<ItemLock> number_lock_; // keeps the number until this ends, or its process
  bool has_last_ = false;
  Display* display_;
  std::deque<Waiting> waiting_;
  FileHashes hashes_; // used by the job only
  std::uint64_t seen_revision_ = 0, seen_writing_ = 0;
  std::optional<double> changed_at_; // the first change missing from the copy
  std::string copy_problem_;         // the error of the last copy, reported once
  std::string title_;
  Written written_;
  std::unique_ptr<Job> job_; // last member: uses the others
};

} // namespace hydrascope::app
