#include "app/document/session.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "app/document/document_codec.h"
#include "app/document/json_codec.h"
#include "app/document/writing_codec.h"
#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/version.h"
#include "engine/models/model_info.h"

namespace hydrascope::app {

namespace fs = std::filesystem;

namespace {

fs::path whole_path(const fs::path& path) {
  std::error_code none;
  const fs::path whole = fs::absolute(path, none);
  fs::path plain = (none ? path : whole).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path(); // without a final slash
}

// Relative to a folder that contains it; empty if it does not.
fs::path below(const fs::path& path, const fs::path& folder) {
  if (folder.empty()) return {};
  fs::path relative = path.lexically_relative(whole_path(folder));
  return relative.empty() || relative == "." || *relative.begin() == ".." ? fs::path() : relative;
}

fs::path home_folder() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? fs::path() : fs::path(home);
}

fs::path bundled_folder(fs::path (*folder)()) {
  try {
    return folder();
  } catch (const Error&) {
    return {}; // nothing is bundled
  }
}

fs::path adapters_folder() { return assets_folder() / "adapters"; }

struct Bundle {
  std::string_view prefix;
  fs::path (*folder)();
};
constexpr Bundle bundles[] = {
    {"example:", examples_folder}, {"model:", models_folder}, {"adapter:", adapters_folder}};
constexpr std::string_view repository_prefix = "repository:";

// OWNER/NAME for …/models--OWNER--NAME/snapshots/REVISION, if the cache resolves the name to this snapshot.
std::string repository_of(const fs::path& folder) {
  constexpr std::string_view start = "models--";
  const std::string name = folder.parent_path().parent_path().filename().string();
  if (folder.parent_path().filename() != "snapshots" || !name.starts_with(start)) return {};
  std::string repository = name.substr(start.size());
  if (const auto at = repository.find("--"); at != std::string::npos) repository.replace(at, 2, "/");
  try {
    return whole_path(resolve_model(repository)) == folder ? repository : std::string();
  } catch (const Error&) {
    return {};
  }
}

} // namespace

const char* kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::picture: return "picture";
    case FileKind::folder: return "folder of pictures";
    case FileKind::model: return "model";
    case FileKind::adapter: return "adapter";
  }
  return "file";
}

std::string reference_of(const fs::path& path, const fs::path& folder) {
  const fs::path whole = whole_path(path);
  for (const Bundle& bundle : bundles) {
    if (const fs::path name = below(whole, bundled_folder(bundle.folder)); !name.empty())
      return std::string(bundle.prefix) + name.generic_string();
  }
  if (const std::string repository = repository_of(whole); !repository.empty())
    return std::string(repository_prefix) + repository;
  if (const fs::path relative = below(whole, folder); !relative.empty()) {
    const std::string text = relative.generic_string();
    // Must not look like one of the other forms.
    const bool plain = text.find(':') == std::string::npos && text.front() != '~';
    return plain ? text : "./" + text;
  }
  if (const fs::path relative = below(whole, home_folder()); !relative.empty())
    return "~/" + relative.generic_string();
  return whole.generic_string();
}

fs::path path_of(const std::string& reference, const fs::path& folder) {
  for (const Bundle& bundle : bundles) {
    if (reference.starts_with(bundle.prefix))
      return bundled_folder(bundle.folder) / reference.substr(bundle.prefix.size());
  }
  if (reference.starts_with(repository_prefix)) {
    const std::string repository = reference.substr(repository_prefix.size());
    try {
      return resolve_model(repository);
    } catch (const Error&) {
      return repository; // reported as missing under this name
    }
  }
  if (reference.starts_with("~/")) return home_folder() / reference.substr(2);
  const fs::path path(reference);
  return path.is_absolute() ? path : whole_path(folder / path);
}

namespace {

constexpr const char* format_name = "hydrascope-session";

// A model in the session's file.
struct StoredModel {
  std::string name, folder, sha256;
};
template <typename Fields, Is<StoredModel> S>
void describe(Fields& fields, S& model) {
  fields("name", model.name);
  fields("folder", model.folder);
  fields("sha256", model.sha256);
}

} // namespace

template <typename Fields, Is<Lesson> S>
void describe(Fields& fields, S& lesson) {
  fields("title", lesson.title);
  fields("text", lesson.text);
  fields("look", lesson.look);
  fields("click", lesson.click);
  fields("shows", lesson.shows);
  fields("panel", lesson.panel);
}

namespace {

struct StoredSession {
  std::string format = format_name;
  int version = session_version;
  std::string program;
  std::optional<Lesson> lesson;
  Document document;
  std::vector<StoredModel> models;
  std::optional<StoredWriting> writing;
  std::optional<std::string> arrangement, copy_of;
  bool changed = false;
};
template <typename Fields, Is<StoredSession> S>
void describe(Fields& fields, S& session) {
  fields("format", session.format);
  fields("version", session.version, Bounds{.least = 1});
  fields("program", session.program);
  fields("lesson", session.lesson);
  fields("document", session.document);
  fields("models", session.models);
  fields("writing", session.writing);
  fields("arrangement", session.arrangement);
  fields("copy_of", session.copy_of);
  fields("changed", session.changed);
}

StoredSession stored(const Session& session, const WriteContext& context) {
  StoredSession stored;
  stored.program = std::string("hydrascope ") + version;
  stored.lesson = session.lesson;
  stored.document = session.document;
  for (const Scene& scene : session.document.scenes) {
    const auto hash = session.model_hashes.find(scene.model_folder);
    if (!scene.model || hash == session.model_hashes.end()) continue;
    stored.models.push_back({scene.model->name, context.reference(scene.model_folder), hash->second});
  }
  if (!session.writing.empty()) stored.writing = stored_writing(session.writing, session.document);
  if (!session.arrangement.empty()) stored.arrangement = session.arrangement;
  if (!session.file.empty()) stored.copy_of = fs::absolute(session.file).string();
  stored.changed = session.changed;
  return stored;
}

Json session_json(const Session& session, const WriteContext& context) {
  Json json = without_nulls(JsonCodec<StoredSession>::write(stored(session, context), context));
  if (!session.changed) json.erase("changed");
  return json;
}

// Finds the files of a session and records the missing ones.
class FileFinder {
public:
  FileFinder(fs::path folder, const Relocations& relocations, std::vector<MissingFile>& missing)
      : folder_(std::move(folder)), relocations_(&relocations), missing_(&missing) {}

  std::optional<fs::path> find(FileKind kind, const std::string& reference) {
    const fs::path path = path_of(reference, folder_);
    for (const fs::path& place : places_of(path)) {
      std::error_code none;
      const bool wanted = kind == FileKind::folder || kind == FileKind::model
                              ? fs::is_directory(place, none)
                              : fs::is_regular_file(place, none);
      if (wanted || (kind == FileKind::model && capture_address(place))) return place;
    }
    add_missing(kind, path, "is not there");
    return std::nullopt;
  }
  void unreadable(FileKind kind, const std::string& reference, const std::string& reason) {
    add_missing(kind, path_of(reference, folder_), reason);
  }

private:
  // The candidates: where the user located it, the original place, and beside relocated files of its folder.
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
  void add_missing(FileKind kind, const fs::path& path, const std::string& reason) {
    const MissingFile file{kind, path, reason};
    if (std::ranges::find(*missing_, file) == missing_->end()) missing_->push_back(file);
  }

  fs::path folder_;
  const Relocations* relocations_;
  std::vector<MissingFile>* missing_;
};

Json parsed(std::string_view text, const std::string& subject) {
  if (const char* const why = why_not_parsed(text, JsonNames::ordered))
    throw BrokenFile(subject, why, "it was not written by Hydrascope: open another file");
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw BrokenFile(subject, fmt::format("is not JSON at byte {}", error.byte),
                     "it may have been cut off: open a copy of it");
  } catch (const Json::out_of_range&) {
    throw BrokenFile(subject, "holds a number that is too large",
                     "mend this number, or open a copy of the file");
  }
  if (!json.is_object() || !json.contains("format") || json.at("format") != format_name)
    throw ForeignFile(subject, fmt::format("is no session: its format is not {}", format_name),
                      "open a file that Hydrascope has saved as a session");
  return json;
}

// Called first: in a newer version entries may have other meanings.
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
  const std::string stamp = file_stamp(file);
  if (stamp.empty()) return {};
  Known& known = known_[file];
  if (known.hash.empty() || known.stamp != stamp) {
    try {
      known = {stamp, sha256_of_file(file)};
    } catch (const Error&) {
      known = {};
    }
  }
  return known.hash;
}

std::string session_text(const Session& session, const fs::path& folder, FileHashes& hashes) {
  WriteContext context;
  context.reference = [&](const fs::path& path) { return reference_of(path, folder); };
  context.hash = [&](const fs::path& path) { return hashes.of(path); };
  context.pixels = true;
  return text_of_json(session_json(session, context), 2) + "\n";
}

std::string compact_session_text(const Session& session, FileHashes& hashes) {
  WriteContext context;
  context.reference = [](const fs::path& path) { return reference_of(path, {}); };
  context.hash = [&](const fs::path& path) { return hashes.of(path); };
  Session kept = session;
  kept.lesson.reset();
  kept.arrangement.clear();
  kept.file.clear();
  kept.changed = false;
  return text_of_json(session_json(kept, context));
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
  FileFinder finder(folder, relocations, result.missing);
  ReadContext context;
  context.subject = subject;
  context.find = [&](FileKind kind, const std::string& reference) { return finder.find(kind, reference); };
  context.unreadable = [&](FileKind kind, const std::string& reference, const std::string& reason) {
    finder.unreadable(kind, reference, reason);
  };
  if (!json.contains("document")) context.fail("/document", "is not there");
  StoredSession stored = JsonCodec<StoredSession>::read(json, "", context);
  for (const StoredModel& model : stored.models) {
    for (const Scene& scene : stored.document.scenes) {
      if (scene.model && scene.model->name == model.name)
        result.session.model_hashes[scene.model_folder] = model.sha256;
    }
  }
  if (stored.writing) result.session.writing = read_writing(*stored.writing, stored.document, context.notes);
  result.session.document = std::move(stored.document);
  result.session.lesson = std::move(stored.lesson);
  result.session.arrangement = stored.arrangement.value_or("");
  result.session.file = stored.copy_of.value_or("");
  result.session.changed = stored.changed;
  result.notes = std::move(context.notes);
  return result;
}

std::optional<Lesson> read_lesson(std::string_view text, const fs::path& file) {
  const Json json = parsed(text, file.string());
  check_version(json, file.string());
  ReadContext context;
  context.subject = file.string();
  const auto found = json.find("lesson");
  if (found == json.end()) return std::nullopt;
  return JsonCodec<std::optional<Lesson>>::read(*found, "/lesson", context);
}

std::string session_schema_text() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Hydrascope session"},
              {"description",
               "What `Save session` writes. Files are named relative to the session, as ~/PATH, by their "
               "absolute path, or, if they came with the program, as example:NAME, model:NAME, "
               "adapter:NAME; models of the Hugging Face cache as repository:OWNER/NAME. What is left out "
               "is as by default."}};
  const Json fields = JsonCodec<StoredSession>::schema();
  for (const auto& [name, value] : fields.items()) schema[name] = value;
  schema["properties"]["format"] = {{"const", format_name}};
  schema["properties"]["version"] = {{"const", session_version}};
  schema["required"] = {"format", "version", "document"};
  schema["$defs"] = {{"scene", scene_schema()}};
  return schema.dump(2) + "\n";
}

} // namespace hydrascope::app
