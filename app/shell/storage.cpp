#include "app/shell/storage.h"

#include <cstdio>
#include <exception>
#include <limits>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "app/document/session_edits.h"
#include "app/shell/layout.h"
#include "app/ui/display.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

// Reports a problem, if there is one, once the window is gone. A full disk may hold stderr as well: then fmt
// would throw, in a destructor.
void report_at_end(const std::string& problem) {
  if (!problem.empty()) std::fputs(("error: " + problem + "\n").c_str(), stderr);
}

} // namespace

SettingsFile::SettingsFile(std::filesystem::path file, Editor& editor) : file_(std::move(file)) {
  if (file_.empty()) return;
  LoadedSettings loaded = load_settings(file_);
  if (!loaded.problem.empty()) editor.say(Severity::error, loaded.problem);
  if (!loaded.writable) file_.clear();
  saved_ = loaded.settings;
  editor.change_settings([&](Settings& settings) { settings = std::move(loaded.settings); });
}

std::string SettingsFile::write(const Settings& settings) {
  saved_ = settings;
  failed_ = true;
  try {
    save_settings(saved_, file_);
    failed_ = false;
  } catch (const std::exception& error) {
    return error_message(error);
  }
  return {};
}

void SettingsFile::save(Editor& editor) {
  if (file_.empty() || editor.settings() == saved_) return;
  if (const std::string problem = write(editor.settings()); !problem.empty())
    editor.say(Severity::error, problem);
}

void SettingsFile::shut_down(const Editor& editor) {
  if (file_.empty() || (editor.settings() == saved_ && !failed_)) return;
  report_at_end(write(editor.settings()));
}

SessionStore::SessionStore(fs::path folder, Display& display)
    : folder_(std::move(folder)), display_(&display) {
  if (folder_.empty()) return;
  take_number();
  std::error_code none; // without a copy there is no last session
  if (fs::exists(copy_file(), none)) fs::rename(copy_file(), last_file(), none);
  has_last_ = fs::exists(last_file(), none);
}

// The smallest number that no other window has.
void SessionStore::take_number() {
  constexpr int most = 100;
  try {
    create_folders(folder_);
    for (; number_ < most; ++number_) {
      auto lock = ItemLock::take(folder_ / "windows.lock", number_, "make the folder writable");
      if (!lock) continue;
      number_lock_.emplace(*std::move(lock));
      return;
    }
  } catch (const Error&) { // NOLINT(bugprone-empty-catch): no locks here, or the first copy will report it
  }
}

fs::path SessionStore::file_of_window(const char* name) const {
  return folder_ / (number_ == 1 ? fmt::format("{}.json", name) : fmt::format("{}-{}.json", name, number_));
}

bool SessionStore::reopen_last(Editor& editor) {
  return has_last_ && open_session(editor, last_file(), true);
}

void SessionStore::start(Session session, fs::path file, bool copy) {
  written_ = {.document = session.document, .file = file, .copy = copy};
  auto work = [session = std::move(session), file = std::move(file), copy, hashes = &hashes_](
                  Job&, const std::stop_token&) {
    const fs::path folder = fs::absolute(file).parent_path();
    if (copy) create_folders(folder);
    write_file_atomically(file, session_text(session, folder, *hashes));
  };
  job_ = std::make_unique<Job>(std::move(work), [display = display_] { display->wake(); });
}

std::string SessionStore::finish(Editor& editor) {
  job_->wait();
  const std::string problem = job_->take().problem;
  job_.reset();
  if (written_.copy) {
    if (!problem.empty() && problem != copy_problem_)
      editor.say(Severity::error, "the automatic copy: " + problem);
    copy_problem_ = problem;
  } else if (!problem.empty()) {
    editor.say(Severity::error, problem);
  } else {
    session_saved(editor, written_.document, written_.file);
    editor.say(Severity::note, "Saved: " + written_.file.string());
    title_.clear();
  }
  written_ = {};
  return problem;
}

fs::path SessionStore::own_file(const Editor& editor) const {
  const std::size_t session = editor.document().session;
  for (const Waiting& each : waiting_ | std::views::reverse)
    if (each.session.document.session == session) return each.file;
  const bool written = job_ && !written_.copy && written_.document.session == session;
  return written ? written_.file : editor.session().file;
}

void SessionStore::save(const Editor& editor, const std::optional<fs::path>& file) {
  const fs::path target = fs::absolute(file.value_or(own_file(editor)));
  Session session = present_session(editor, present_arrangement());
  session.lesson = editor.session().lesson; // also if its card is closed
  session.file.clear();
  session.changed = false;
  waiting_.push_back({std::move(session), target});
}

void SessionStore::start_next() {
  if (job_ || waiting_.empty()) return;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  start(std::move(next.session), std::move(next.file), false);
}

void SessionStore::update(Editor& editor) {
  if (job_ && job_->done()) finish(editor);
  start_next();
  if (std::exchange(seen_writing_, editor.writing.edition) != editor.writing.edition && !changed_at_)
    changed_at_ = editor.clock();
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

void SessionStore::update_copy(Editor& editor, double now) {
  if (job_ && job_->done() && written_.copy) finish(editor);
  if (now < due()) return;
  changed_at_.reset();
  start(present_session(editor, present_arrangement()), copy_file(), true);
}

void SessionStore::shut_down(Editor& editor) {
  const auto finish_job = [&] {
    const std::string problem = finish(editor);
    report_at_end(problem);
  };
  for (; busy(); start_next())
    if (job_) finish_job();
  if (folder_.empty()) return;
  start(present_session(editor, present_arrangement()), copy_file(), true);
  finish_job();
}

} // namespace hydrascope::app
