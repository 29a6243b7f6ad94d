// Between the open session and its file, and the automatic copy that outlives a crash. Files are written on a
// thread of their own, so that no frame waits for them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"

namespace hydrascope::app {

class Display;

class SessionStore {
public:
  // `folder`: where the automatic copy is kept, as autosave.json; the one of the last time becomes
  // last-session.json. Empty: none is kept. The display is woken when a session has been saved; it outlives
  // this.
  SessionStore(std::filesystem::path folder, Display& display);
  ~SessionStore();
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  // Goes on where the program was left the last time. Returns whether there was anything, and it was opened.
  bool reopen_last(Editor& editor);
  bool has_last() const { return has_last_; } // how the program was left the last time was kept
  // Into this file, or the session's own for nullopt; after what is being written.
  void save(std::optional<std::filesystem::path> file) { to_save_ = SaveSession{std::move(file)}; }
  // Once per frame: what has been written, the window's title.
  void update(Editor& editor);
  // When nothing else is to be done: writes the copy if it is time for it, a few seconds after a change.
  void rest(Editor& editor, double now);
  // When that will be, on the window's clock; infinity if nothing has changed.
  double due() const;
  // The panels stand elsewhere than in the copy.
  void arrangement_changed(double now);
  // Before the program ends: the copy, at once.
  void leave(Editor& editor);
  bool busy() const { return job_ != nullptr || to_save_; }

private:
  struct Job;
  void start(Session session, std::filesystem::path file, bool copy);
  void finish(Editor& editor);
  void write(Editor& editor, const std::filesystem::path& file);
  std::filesystem::path copy_file() const { return folder_ / "autosave.json"; }
  std::filesystem::path last_file() const { return folder_ / "last-session.json"; }

  std::filesystem::path folder_;
  bool has_last_ = false;
  Display* display_;
  std::unique_ptr<Job> job_;
  std::optional<SaveSession> to_save_;
  std::shared_ptr<FileHashes> hashes_; // the job's while there is one
  std::uint64_t seen_revision_ = 0;
  std::optional<double> changed_at_; // the first change that is not in the copy
  std::string copy_problem_;         // said already
  std::string title_;
};

} // namespace hydrascope::app
