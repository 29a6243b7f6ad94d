// Opening sessions and starting new ones, and what the window's title says of the one that is open.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

// Opens a session as one undoable step. Where files are missing it waits in the shell until the user has said
// where they are. What cannot be opened is said, and what was open stays. Returns whether the session was
// understood. `copy`: the automatic one, which goes on as the session that it is a copy of.
bool open_session(Editor& editor, const std::filesystem::path& file, bool copy = false);
bool open_session_text(Editor& editor, std::string text, const std::filesystem::path& file,
                       bool copy = false);

// What a figure that this program has written was exported from; says so where the figure does not hold it.
bool open_figure(Editor& editor, const std::string& provenance, const std::filesystem::path& file);

// Of the waiting session: where the file that was to be located lies, which may lead to others; opens it
// without what is missing.
void locate_missing(Editor& editor, const std::filesystem::path& place);
void open_without_missing(Editor& editor);
std::string missing_text(const WaitingSession& waiting); // in one line

// The document as the program starts with it: bundled models and an example of each kind. What of it could
// not be read is added to `problems`.
Document new_document(const ExecutionOptions& execution, std::vector<std::string>& problems);
void open_example_picture(Document& document); // nothing where there is none
void start_new_session(Editor& editor);

// The session's whole state, to be written. `arrangement` as Dear ImGui writes it.
Session present_session(const Editor& editor, std::string arrangement);
// The file now holds this document.
void session_saved(Editor& editor, const Document& document, const std::filesystem::path& file);
bool session_changed(const Editor& editor); // since it was saved; never one that has no file
std::string window_title(const Editor& editor);

// What a run says of a model's weights; a difference to what the session knew is said once.
void check_model_hash(Editor& editor, const RunResult& run);

} // namespace hydrascope::app
