#include "app/shell/session_store.h"

#include <atomic>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "app/document/session_edits.h"
#include "app/shell/layout.h"
#include "app/ui/display.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(folder.string(), "cannot be made (" + failed.message() + ")",
                "check the folder's permissions");
}

} // namespace

struct SessionStore::Job {
  Session session;
  fs::path file;
  bool copy = false;
  std::string error; // the thread's alone until `done`
  std::atomic<bool> done = false;
  std::jthread thread; // last: joined before what it uses goes
};

SessionStore::SessionStore(fs::path folder, Display& display)
    : folder_(std::move(folder)), display_(&display), hashes_(std::make_shared<FileHashes>()) {
  if (folder_.empty()) return;
  std::error_code none; // without a copy there is nothing to go on with
  if (fs::exists(copy_file(), none)) fs::rename(copy_file(), last_file(), none);
  has_last_ = fs::exists(last_file(), none);
}

SessionStore::~SessionStore() = default;

bool SessionStore::reopen_last(Editor& editor) {
  return has_last_ && open_session(editor, last_file(), true);
}

void SessionStore::start(Session session, fs::path file, bool copy) {
  job_ = std::make_unique<Job>();
  job_->session = std::move(session);
  job_->file = std::move(file);
  job_->copy = copy;
  const auto work = [job = job_.get(), hashes = hashes_, display = display_] {
    try {
      const fs::path folder = fs::absolute(job->file).parent_path();
      if (job->copy) make_folder(folder);
      write_file_atomically(job->file, session_text(job->session, folder, *hashes));
    } catch (const std::exception& error) {
      job->error = error.what();
    }
    const bool drawn = !job->copy; // a copy is no reason to draw
    job->done = true;
    if (drawn) display->wake();
  };
  job_->thread = std::jthread(work);
}

void SessionStore::finish(Editor& editor) {
  job_->thread.join();
  const std::unique_ptr<Job> job = std::move(job_);
  if (job->copy) {
    if (!job->error.empty() && job->error != copy_problem_)
      editor.say(Severity::error, "the automatic copy: " + job->error);
    copy_problem_ = job->error;
  } else if (!job->error.empty()) {
    editor.say(Severity::error, job->error);
  } else {
    session_saved(editor, job->session.document, job->file);
    editor.say(Severity::note, "Saved: " + job->file.string());
    title_.clear();
  }
}

void SessionStore::write(Editor& editor, const fs::path& file) {
  Session session = present_session(editor, present_arrangement());
  session.file.clear();
  session.changed = false;
  start(std::move(session), fs::absolute(file), false);
}

void SessionStore::update(Editor& editor) {
  if (job_ && job_->done) finish(editor);
  if (!job_ && to_save_) {
    const SaveSession next = *std::exchange(to_save_, std::nullopt);
    write(editor, next.file.value_or(editor.session().file));
  }
  if (editor.revision() != seen_revision_ || title_.empty()) {
    if (editor.revision() != seen_revision_ && !changed_at_) changed_at_ = editor.clock();
    seen_revision_ = editor.revision();
    const std::string title = window_title(editor);
    if (title != title_) display_->set_title(title);
    title_ = title;
  }
}

void SessionStore::arrangement_changed(double now) {
  if (!changed_at_) changed_at_ = now;
}

double SessionStore::due() const {
  constexpr double patience = 3;
  const bool waits = !folder_.empty() && changed_at_ && !job_;
  return waits ? *changed_at_ + patience : std::numeric_limits<double>::infinity();
}

void SessionStore::rest(Editor& editor, double now) {
  if (job_ && job_->done && job_->copy) finish(editor);
  if (now < due()) return;
  changed_at_.reset();
  start(present_session(editor, present_arrangement()), copy_file(), true);
}

void SessionStore::leave(Editor& editor) {
  if (job_) finish(editor);
  if (folder_.empty()) return;
  start(present_session(editor, present_arrangement()), copy_file(), true);
  finish(editor);
}

} // namespace hydrascope::app
