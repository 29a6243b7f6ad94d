// Opening, starting and saving sessions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

// Opens a session as one undoable step, or stores it in Editor::incomplete_session if files are missing.
// Reports errors as messages and then changes nothing. Returns whether the session could be read. `copy`: it
// is an automatic copy and continues the original session.
bool open_session(Editor& editor, const std::filesystem::path& file, bool copy = false);
bool open_session_text(Editor& editor, std::string text, const std::filesystem::path& file,
                       bool copy = false);

// Opens the session in the metadata of a figure; reports an error if there is none.
bool open_figure(Editor& editor, const std::string& provenance, const std::filesystem::path& file);

// The incomplete session: sets the place of a missing file, which may locate others (does nothing if it is
// not missing any more); opens it without the missing files; lists them on one line.
void locate_missing(Editor& editor, const std::filesystem::path& missing, const std::filesystem::path& place);
void open_without_missing(Editor& editor);
std::string missing_text(const IncompleteSession& incomplete);

// The initial document: bundled models and an example sentence. Appends what could not be read to `problems`.
Document new_document(const ExecutionOptions& execution, std::vector<std::string>& problems);
void open_example_picture(Document& document); // if it is installed
void start_new_session(Editor& editor);

// The current session, for writing. `arrangement`: of the panels, in Dear ImGui's format.
Session present_session(const Editor& editor, std::string arrangement);
// To be called once `file` holds `document`.
void session_saved(Editor& editor, const Document& document, const std::filesystem::path& file);
bool session_changed(const Editor& editor); // since it was saved; false without a file
std::string window_title(const Editor& editor);

// Stores the hash of a run's model; adds a message, once, if the session had another one.
void check_model_hash(Editor& editor, const RunResult& run);

} // namespace hydrascope::app
