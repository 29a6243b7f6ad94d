#include "app/document/session.h"

#include <algorithm>
#include <utility>

#include "app/document/document_form.h"
#include "app/version.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace fs = std::filesystem;

namespace {

constexpr const char* format_name = "hydrascope-session";

// One of the document's models, as the file knows it.
struct StoredModel {
  std::string name, folder, sha256;
};
template <typename Fields, Is<StoredModel> S>
void describe(Fields& fields, S& model) {
  fields("name", model.name);
  fields("folder", model.folder);
  fields("sha256", model.sha256);
}

struct StoredSession {
  std::string format = format_name;
  int version = session_version;
  std::string program;
  Document document;
  std::vector<StoredModel> models;
  std::optional<std::string> arrangement, copy_of;
  bool changed = false;
};
template <typename Fields, Is<StoredSession> S>
void describe(Fields& fields, S& session) {
  fields("format", session.format);
  fields("version", session.version, Bounds{.least = 1});
  fields("program", session.program);
  fields("document", session.document);
  fields("models", session.models);
  fields("arrangement", session.arrangement);
  fields("copy_of", session.copy_of);
  fields("changed", session.changed);
}

StoredSession stored(const Session& session, const Writing& writing) {
  StoredSession stored;
  stored.program = std::string("hydrascope ") + version;
  stored.document = session.document;
  for (const Scene& scene : session.document.scenes) {
    const auto hash = session.model_hashes.find(scene.model_folder);
    if (!scene.model || hash == session.model_hashes.end()) continue;
    stored.models.push_back({scene.model->name, writing.reference(scene.model_folder), hash->second});
  }
  if (!session.arrangement.empty()) stored.arrangement = session.arrangement;
  if (!session.file.empty()) stored.copy_of = fs::absolute(session.file).string();
  stored.changed = session.changed;
  return stored;
}

Json session_json(const Session& session, const Writing& writing) {
  Json json = without_nulls(Form<StoredSession>::write(stored(session, writing), writing));
  if (!session.changed) json.erase("changed");
  return json;
}

// A file's name need not be UTF-8.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Looks for the files of a session, and remembers which are missing.
class Search {
public:
  Search(fs::path folder, const Relocations& relocations, std::vector<MissingFile>& missing)
      : folder_(std::move(folder)), relocations_(&relocations), missing_(&missing) {}

  std::optional<fs::path> find(FileKind kind, const std::string& reference) {
    const fs::path path = path_of(reference, folder_);
    for (const fs::path& place : places_of(path)) {
      std::error_code none;
      const bool wanted = kind == FileKind::folder || kind == FileKind::model
                              ? fs::is_directory(place, none)
                              : fs::is_regular_file(place, none);
      if (wanted) return place;
    }
    miss(kind, path, "is not there");
    return std::nullopt;
  }
  void unreadable(FileKind kind, const std::string& reference, const std::string& reason) {
    miss(kind, path_of(reference, folder_), reason);
  }

private:
  // Where the user says that it is, beside what else has gone from its folder, and where it was.
  std::vector<fs::path> places_of(const fs::path& path) const {
    std::vector<fs::path> places;
    if (const auto told = relocations_->find(path); told != relocations_->end())
      places.push_back(told->second);
    places.push_back(path);
    for (const auto& [from, to] : *relocations_) {
      const fs::path beside = path.lexically_relative(from.parent_path());
      if (!beside.empty() && *beside.begin() != "..") places.push_back(to.parent_path() / beside);
    }
    return places;
  }
  void miss(FileKind kind, const fs::path& path, const std::string& reason) {
    const MissingFile file{kind, path, reason};
    if (std::ranges::find(*missing_, file) == missing_->end()) missing_->push_back(file);
  }

  fs::path folder_;
  const Relocations* relocations_;
  std::vector<MissingFile>* missing_;
};

Json parsed(std::string_view text, const std::string& subject) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw BrokenFile(subject, fmt::format("is not JSON at byte {}", error.byte),
                     "it may have been cut off: open a copy of it");
  }
  if (!json.is_object() || !json.contains("format") || json.at("format") != format_name)
    throw ForeignFile(subject, fmt::format("is no session: its format is not {}", format_name),
                      "open a file that Hydrascope has saved as a session");
  return json;
}

// Before anything else is looked at: what a newer version means may be something else.
void check_version(const Json& json, const std::string& subject) {
  const auto found = json.find("version");
  if (found == json.end() || !found->is_number_integer() || *found < 1)
    throw BrokenFile(subject, "/version is not a whole number from 1 on", "open a copy of the file");
  if (*found <= session_version) return;
  const bool named = json.contains("program") && json.at("program").is_string();
  throw Error(
      subject,
      fmt::format("was made by a newer Hydrascope{}: sessions of version {} are not known here",
                  named ? " (" + json.at("program").get<std::string>() + ")" : std::string(), found->dump()),
      fmt::format("update Hydrascope, or save the session there as version {}", session_version));
}

} // namespace

std::string FileHashes::of(const fs::path& file) {
  std::error_code failed;
  const auto written = fs::last_write_time(file, failed);
  const std::uintmax_t size = failed ? 0 : fs::file_size(file, failed);
  if (failed) return {};
  Known& known = known_[file];
  if (known.hash.empty() || known.written != written || known.size != size) {
    try {
      known = {written, size, sha256_of_file(file)};
    } catch (const Error&) {
      known = {};
    }
  }
  return known.hash;
}

std::string session_text(const Session& session, const fs::path& folder, FileHashes& hashes) {
  Writing writing;
  writing.reference = [&](const fs::path& path) { return reference_of(path, folder); };
  writing.hash = [&](const fs::path& path) { return hashes.of(path); };
  writing.pixels = true;
  return text_of(session_json(session, writing), 2) + "\n";
}

std::string compact_session_text(const Session& session, FileHashes& hashes) {
  Writing writing;
  writing.reference = [](const fs::path& path) { return reference_of(path, {}); };
  writing.hash = [&](const fs::path& path) { return hashes.of(path); };
  Session kept = session;
  kept.arrangement.clear();
  kept.file.clear();
  kept.changed = false;
  return text_of(session_json(kept, writing), -1);
}

bool is_session(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  return text.find(fmt::format("\"{}\"", format_name)) != std::string_view::npos;
}

ReadSession read_session(std::string_view text, const fs::path& file, const Relocations& relocations) {
  const std::string subject = file.string();
  const Json json = parsed(text, subject);
  check_version(json, subject);
  ReadSession result;
  const fs::path folder = fs::absolute(file).parent_path();
  Search search(folder, relocations, result.missing);
  Reading reading;
  reading.subject = subject;
  reading.find = [&](FileKind kind, const std::string& reference) { return search.find(kind, reference); };
  reading.unreadable = [&](FileKind kind, const std::string& reference, const std::string& reason) {
    search.unreadable(kind, reference, reason);
  };
  if (!json.contains("document")) reading.fail("/document", "is not there");
  StoredSession stored = Form<StoredSession>::read(json, "", reading);
  for (const StoredModel& model : stored.models) {
    for (const Scene& scene : stored.document.scenes) {
      if (scene.model && scene.model->name == model.name)
        result.session.model_hashes[scene.model_folder] = model.sha256;
    }
  }
  result.session.document = std::move(stored.document);
  result.session.arrangement = stored.arrangement.value_or("");
  result.session.file = stored.copy_of.value_or("");
  result.session.changed = stored.changed;
  result.notes = std::move(reading.notes);
  return result;
}

std::string session_schema_text() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Hydrascope session"},
              {"description",
               "What `Save session` writes. Files are named relative to the session, as ~/PATH, by their "
               "absolute path, or, if they came with the program, as example:NAME, model:NAME, "
               "adapter:NAME; models of the Hugging Face cache as repository:OWNER/NAME. What is left out "
               "is as by default."}};
  const Json fields = Form<StoredSession>::schema();
  for (const auto& [name, value] : fields.items()) schema[name] = value;
  schema["properties"]["format"] = {{"const", format_name}};
  schema["properties"]["version"] = {{"const", session_version}};
  schema["required"] = {"format", "version", "document"};
  schema["$defs"] = {{"scene", scene_schema()}};
  return schema.dump(2) + "\n";
}

} // namespace hydrascope::app
