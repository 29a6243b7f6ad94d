// Sessions: the document, and where the panels are, as a file that another machine can open. Files beside or
// below the session's are named relative to it, bundled ones by their names. assets/session.schema.json says
// what such a file holds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/document.h"
#include "app/document/session_files.h"

namespace hydrascope::app {

inline constexpr int session_version = 1;

using ModelHashes = std::map<std::filesystem::path, std::string>; // by folder: SHA-256 of model.safetensors

struct Session {
  Document document;
  std::string arrangement;    // of the panels, as Dear ImGui writes it; empty: as the layout has it
  ModelHashes model_hashes;   // of the document's models, as far as they are known
  std::filesystem::path file; // of an automatic copy: the file of the session that it is a copy of …
  bool changed = false;       // … and whether it has been changed since it was saved there
};

// SHA-256 of files, each worked out again only when the file has changed.
class FileHashes {
public:
  std::string of(const std::filesystem::path& file); // "" if it cannot be read

private:
  struct Known {
    std::filesystem::file_time_type written;
    std::uintmax_t size = 0;
    std::string hash;
  };
  std::map<std::filesystem::path, Known> known_;
};

// As it is to be written into a file in this folder (empty: nothing is named relative to it).
std::string session_text(const Session& session, const std::filesystem::path& folder, FileHashes& hashes);
// The same on one line, of the document and its models alone, for a figure's own metadata. Pictures without a
// file are left out.
std::string compact_session_text(const Session& session, FileHashes& hashes);

// As many threads as a run has where nobody asked for a number: one core is left to the window, so that
// frames keep their time while the model runs. A session does not hold this number, and another machine takes
// its own.
int usual_threads();

struct MissingFile {
  FileKind kind = FileKind::picture;
  std::filesystem::path path; // where it was
  std::string reason;         // why it cannot be opened

  bool operator==(const MissingFile&) const = default;
};

// Where missing files have gone. What lay in the same folder is looked for beside them.
using Relocations = std::map<std::filesystem::path, std::filesystem::path>;

struct ReadSession {
  Session session;                  // whole; what is missing is left out of it, or replaced
  std::vector<MissingFile> missing; // each once
  std::vector<std::string> notes;   // what was replaced or not understood, and files that have changed
};

// Whether a text says of itself that it is a session, sound or not.
bool is_session(std::string_view text);
// `file` is named in messages, and what is relative is relative to its folder. Throws ForeignFile (not a
// session), BrokenFile naming file, entry and reason, Error for one of a newer version.
ReadSession read_session(std::string_view text, const std::filesystem::path& file,
                         const Relocations& relocations = {});

// What assets/session.schema.json holds.
std::string session_schema_text();

} // namespace hydrascope::app
