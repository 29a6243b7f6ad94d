#include "app/document/session_edits.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/document/arrangement.h"
#include "app/document/edits.h"
#include "app/document/gallery.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& file) { return file.stem().string(); }

void apply(Editor& editor, const IncompleteSession& incomplete) {
  const Session& session = incomplete.read.session;
  const bool bundled = is_bundled_lesson(incomplete.file); // must not be saved over
  const fs::path file = incomplete.figure || bundled ? fs::path()
                        : incomplete.copy            ? session.file
                                                     : incomplete.file;
  const std::size_t id = editor.add_session({.file = file, .saved = std::nullopt, .lesson = session.lesson});
  const std::string label = incomplete.figure ? "Open the view of " + incomplete.file.filename().string()
                            : bundled && session.lesson ? "Open the lesson “" + session.lesson->title + "”"
                            : file.empty()              ? "Open the last session"
                                                        : "Open session " + name_of(file);
  editor.change(label, [&](Document& document) {
    document = session.document;
    document.session = id;
  });
  const bool in_file =
      !file.empty() && !(incomplete.copy && session.changed) && incomplete.read.missing.empty();
  if (in_file) editor.session().saved = editor.document();
  const std::uint64_t edition = editor.writing.edition;
  editor.writing = session.writing;
  editor.writing.edition = edition + 1; // what shows it draws it anew
  const std::optional<std::string> arrangement = sound_arrangement(session.arrangement);
  if (arrangement && !arrangement->empty()) editor.emit(RestoreArrangement{*arrangement});
  if (bundled) editor.emit(ResetLayout{}); // the lesson's text says where to look
  for (const auto& [folder, hash] : session.model_hashes) editor.model_hashes[folder] = hash;
  for (const std::string& note : incomplete.read.notes)
    editor.say(Severity::note, fmt::format("{}: {}", incomplete.file.filename().string(), note));
  if (!arrangement)
    editor.say(Severity::note, fmt::format("{}: the arrangement of its panels is damaged and was left out",
                                           incomplete.file.filename().string()));
  if (incomplete.figure) editor.emit(BringToFront{incomplete.panel});
  if (!file.empty()) remember(editor, {file.string(), false});
}

void read_with_relocations(IncompleteSession& incomplete) {
  incomplete.read = read_session(incomplete.text, incomplete.file, incomplete.relocated);
}

} // namespace

bool open_session(Editor& editor, const fs::path& file, bool copy) {
  try {
    return open_session_text(editor, read_text_file(file), file, copy);
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

namespace {

bool open_or_keep_incomplete(Editor& editor, IncompleteSession incomplete) {
  try {
    read_with_relocations(incomplete);
    if (incomplete.read.missing.empty()) {
      editor.incomplete_session.reset();
      apply(editor, incomplete);
    } else {
      editor.incomplete_session = std::move(incomplete);
    }
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

} // namespace

bool open_session_text(Editor& editor, std::string text, const fs::path& file, bool copy) {
  IncompleteSession incomplete;
  incomplete.file = file;
  incomplete.text = std::move(text);
  incomplete.copy = copy;
  return open_or_keep_incomplete(editor, std::move(incomplete));
}

bool open_figure(Editor& editor, const std::string& provenance, const fs::path& file) {
  FigureView view = view_of(provenance);
  if (view.session.empty()) {
    if (view.command.starts_with("hydrascope figure ")) {
      editor.emit(ShowFigure{file, view.command});
      return true;
    }
    const std::string how = view.command.empty() ? std::string() : "; it was made by: " + view.command;
    editor.say(Severity::error,
               file.string() + ": this figure was not exported from a window, and holds no view" + how);
    return false;
  }
  IncompleteSession incomplete;
  incomplete.file = file;
  incomplete.text = std::move(view.session);
  incomplete.figure = true;
  incomplete.panel = std::move(view.panel);
  return open_or_keep_incomplete(editor, std::move(incomplete));
}

void locate_missing(Editor& editor, const fs::path& missing, const fs::path& place) {
  if (!editor.incomplete_session) return;
  IncompleteSession incomplete = *editor.incomplete_session;
  if (std::ranges::find(incomplete.read.missing, missing, &MissingFile::path) ==
      incomplete.read.missing.end())
    return;
  incomplete.relocated[missing] = place;
  try {
    read_with_relocations(incomplete);
  } catch (const std::exception& error) {
    return editor.say(Severity::error, error_message(error));
  }
  const bool whole = incomplete.read.missing.empty();
  if (whole) apply(editor, incomplete);
  editor.incomplete_session = whole ? std::nullopt : std::optional(std::move(incomplete));
}

void open_without_missing(Editor& editor) {
  const auto incomplete = std::exchange(editor.incomplete_session, std::nullopt);
  if (incomplete) apply(editor, *incomplete);
}

std::string missing_text(const IncompleteSession& incomplete) {
  std::string text;
  for (const MissingFile& file : incomplete.read.missing)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", kind_name(file.kind), file.path.string(),
                        file.reason);
  return text;
}

Document new_document(const ExecutionOptions& execution, std::vector<std::string>& problems) {
  Document document;
  document.execution = execution;
  for (const InputKind kind : {InputKind::image, InputKind::text}) {
    try {
      Scene& scene = document.scene_of(kind);
      const auto folder = resolve_model(bundled_model(kind));
      set_model(scene, folder, read_model_info(folder));
    } catch (const std::exception& error) {
      problems.emplace_back(error_message(error));
    }
  }
  document.scene_of(InputKind::text).input = TextInput{example_sentences().front(), std::nullopt};
  return document;
}

void open_example_picture(Document& document) {
  const auto pictures = example_pictures();
  const auto cat = std::ranges::find_if(pictures, [](const auto& path) { return path.stem() == "chelsea"; });
  if (cat == pictures.end()) return;
  document.scene_of(InputKind::image).input =
      ImageInput{std::make_shared<const Image>(load_image(*cat)), cat->filename().string(), *cat};
}

void start_new_session(Editor& editor) {
  std::vector<std::string> problems;
  Document fresh = new_document(editor.document().execution, problems);
  try {
    open_example_picture(fresh);
  } catch (const std::exception& error) {
    problems.emplace_back(error_message(error));
  }
  for (std::string& problem : problems) editor.say(Severity::error, std::move(problem));
  fresh.session = editor.add_session({});
  editor.writing = {};
  editor.change("New session", [&](Document& document) { document = std::move(fresh); });
  editor.emit(ResetLayout{});
}

Session present_session(const Editor& editor, std::string arrangement) {
  const SessionFile& session = editor.session();
  return {.document = editor.document(),
          .lesson = session.lesson_closed ? std::nullopt : session.lesson,
          .writing = editor.writing,
          .arrangement = std::move(arrangement),
          .model_hashes = editor.model_hashes,
          .file = session.file,
          .changed = session_changed(editor)};
}

void session_saved(Editor& editor, const Document& document, const fs::path& file) {
  if (SessionFile* const session = editor.session_of(document)) {
    session->file = file;
    session->saved = document;
  }
  remember(editor, {file.string(), false});
}

bool session_changed(const Editor& editor) {
  const SessionFile& session = editor.session();
  return !session.file.empty() && session.saved != editor.document();
}

std::string window_title(const Editor& editor) {
  const fs::path& file = editor.session().file;
  if (file.empty()) return "Hydrascope";
  return fmt::format("{}{} – Hydrascope", session_changed(editor) ? "• " : "", name_of(file));
}

void check_model_hash(Editor& editor, const RunResult& run) {
  if (run.model_hash.empty()) return;
  std::string& known = editor.model_hashes[run.model.folder];
  if (known == run.model_hash) return;
  if (!known.empty())
    editor.say(Severity::note, run.model.name +
                                   ": its weights have changed since the session was saved; numbers may "
                                   "differ from what was seen then");
  known = run.model_hash;
}

} // namespace hydrascope::app
