// Sessions: a document and the arrangement of the panels, in a file that other machines can open
// (assets/session.schema.json). Files are named so that another checkout finds them: bundled ones as
// example:NAME, model:NAME or adapter:NAME, a model in the Hugging Face cache as repository:OWNER/NAME, files
// in or below the session's folder by their relative paths, files in the home folder as ~/PATH, all others by
// absolute paths.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/document/document.h"

namespace hydrascope::app {

inline constexpr int session_version = 1;

using ModelHashes = std::map<std::filesystem::path, std::string>; // SHA-256 of model.safetensors, by folder

// The lesson of a session, shown on a card. The bundled ones are in assets/gallery.
struct Lesson {
  std::string title;
  std::string text;               // two sentences, for the gallery
  std::string look, click, shows; // where to look, what to do, and what follows from it
  std::string panel;              // id of the panel over whose lower part the lesson's card lies; empty: none

  bool operator==(const Lesson&) const = default;
};

struct Session {
  Document document;
  std::optional<Lesson> lesson;
  Writing writing;            // empty: nothing was written
  std::string arrangement;    // of the panels, in Dear ImGui's format; empty: the layout's own
  ModelHashes model_hashes;   // of the document's models, as far as known
  std::filesystem::path file; // of an automatic copy: the file of the original session
  bool changed = false;       // of an automatic copy: whether the original has unsaved changes
};

// SHA-256 of files, cached until a file changes.
class FileHashes {
public:
  std::string of(const std::filesystem::path& file); // "" if it cannot be read

private:
  struct Known {
    std::string stamp, hash; // stamp: file_stamp()
  };
  std::map<std::filesystem::path, Known> known_;
};

// The session's file, for this folder (empty: no relative names).
std::string session_text(const Session& session, const std::filesystem::path& folder, FileHashes& hashes);
// The document and its models on one line, for the metadata of a figure. Omits pictures without a file.
std::string compact_session_text(const Session& session, FileHashes& hashes);
// The document alone, with absolute paths: for tests and bug reports.
nlohmann::ordered_json document_json(const Document& document);

// The default number of threads of a run: all cores but one, which stays free for the window. Not stored in
// sessions, so that another machine uses its own.
int usual_threads();
// For writing: all cores if `threads` is the default. Writing is bound by memory and runs at lower priority
// than drawing.
int writing_threads(int threads);

// The kinds of files that a document refers to.
enum class FileKind { picture, folder, model, adapter };
const char* kind_name(FileKind kind); // "picture", "folder of pictures", "model", "adapter"

// The name of a file in a session; `folder` is the session's (empty: no relative names).
std::string reference_of(const std::filesystem::path& path, const std::filesystem::path& folder);
// The path that a name stands for, whether or not it exists.
std::filesystem::path path_of(const std::string& reference, const std::filesystem::path& folder);

struct MissingFile {
  FileKind kind = FileKind::picture;
  std::filesystem::path path; // the original place
  std::string reason;         // why it cannot be opened

  bool operator==(const MissingFile&) const = default;
};

// New places of missing files. Other files of the same folder are searched beside them.
using Relocations = std::map<std::filesystem::path, std::filesystem::path>;

struct ReadSession {
  Session session;                  // complete; missing files are omitted or replaced
  std::vector<MissingFile> missing; // without duplicates
  std::vector<std::string> notes;   // replaced and unknown entries, and files that changed
};

// Whether a text claims to be a session, valid or not.
bool is_session(std::string_view text);
// `file`: for messages and relative names. Throws ForeignFile if the text is not a session, BrokenFile naming
// file, entry and reason, Error for a newer version.
ReadSession read_session(std::string_view text, const std::filesystem::path& file,
                         const Relocations& relocations = {});

// The lesson of a session's text; nullopt if it teaches nothing. Throws as read_session().
std::optional<Lesson> read_lesson(std::string_view text, const std::filesystem::path& file);

// The content of assets/session.schema.json.
std::string session_schema_text();

} // namespace hydrascope::app
