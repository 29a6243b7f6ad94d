#include "engine/models/hub/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/base/text.h"
#include "engine/models/hub/hub.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "models--";

fs::path home() { return environment("HOME"); }

// "~" as shells and huggingface_hub read it.
fs::path expanded(const std::string& path) {
  if (path == "~") return home();
  return path.starts_with("~/") ? home() / path.substr(2) : fs::path(path);
}

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

// One part of a repository's name.
bool is_name_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && part.front() != '-' && part.back() != '.' &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos &&
         std::ranges::all_of(part, is_plain_character);
}

constexpr std::string_view white_space = " \t\r\n";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool has_all_shards(const fs::path& index) {
  const auto json = parse_json<nlohmann::json>(read_text_file(index));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) return false;
  return std::ranges::all_of(*map, [&](const nlohmann::json& shard) {
    return shard.is_string() && is_file_name(shard.get<std::string>()) &&
           is_file(index.parent_path() / shard.get<std::string>());
  });
}

[[noreturn]] void fail_to_write(const fs::path& path, const std::string& reason) {
  throw Error(path.string(), "cannot be written (" + reason + ")",
              "check the folder, or set HF_HOME to another one");
}

bool is_switched_on(const char* name) {
  std::string value = environment(name);
  std::ranges::transform(value, value.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string token_of_environment() {
  if (is_switched_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  std::string token = environment("HF_TOKEN");
  if (token.empty()) token = environment("HUGGING_FACE_HUB_TOKEN");
  if (token.empty()) {
    const std::string named = environment("HF_TOKEN_PATH");
    const fs::path file = named.empty() ? hub_home_folder() / "token" : fs::path(named);
    std::error_code error;
    if (fs::is_regular_file(file, error)) token = read_text_file(file);
  }
  token = std::string(trimmed(token, white_space));
  // Unprintable characters could inject another header.
  if (!std::ranges::all_of(token, [](unsigned char c) { return c > ' ' && c < 127; }))
    throw UsageError("HF_TOKEN", "holds characters that no token has", "set it to the token alone");
  return token;
}

} // namespace

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

fs::path hub_home_folder() {
  if (const std::string home = environment("HF_HOME"); !home.empty()) return expanded(home);
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return expanded(cache) / "huggingface";
  return home() / ".cache" / "huggingface";
}

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = environment(name); !cache.empty()) return expanded(cache);
  return hub_home_folder() / "hub";
}

bool is_repository_name(std::string_view name) {
  constexpr std::size_t longest = 193; // two parts of 96
  if (name.size() > longest) return false;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_name_part(name);
  return is_name_part(name.substr(0, slash)) && is_name_part(name.substr(slash + 1));
}

bool is_safe_relative_path(std::string_view name) {
  if (name.empty() || name.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool is_cache_name(std::string_view name) {
  constexpr std::size_t longest = 128;
  return !name.empty() && name.size() <= longest && name.front() != '.' &&
         std::ranges::all_of(name, is_plain_character);
}

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && revision.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

fs::path repository_folder(const fs::path& cache, std::string_view repository) {
  std::string folder(folder_prefix);
  for (const char c : repository) folder.append(c == '/' ? 2 : 1, c == '/' ? '-' : c);
  return cache / folder;
}

std::string repository_of_snapshot(const fs::path& folder) {
  const fs::path plain = folder.filename().empty() ? folder.parent_path() : folder;
  if (plain.parent_path().filename() != "snapshots") return {};
  const std::string name = plain.parent_path().parent_path().filename().string();
  if (!name.starts_with(folder_prefix)) return {};
  const std::string repository = name.substr(folder_prefix.size());
  const std::size_t dashes = repository.find("--");
  if (dashes == std::string::npos) return repository;
  return repository.substr(0, dashes) + '/' + repository.substr(dashes + 2);
}

bool is_complete_model(const fs::path& folder) {
  if (!is_file(folder / "config.json")) return false;
  const fs::path index = folder / "model.safetensors.index.json";
  return is_file(folder / "model.safetensors") || (is_file(index) && has_all_shards(index));
}

fs::path cached_snapshot(const fs::path& cache, std::string_view repository,
                         const std::optional<std::string>& revision) {
  const fs::path folder = repository_folder(cache, repository);
  const auto has_config = [](const fs::path& snapshot) { return is_file(snapshot / "config.json"); };
  fs::path named;
  const std::string wanted = revision.value_or("main");
  if (const fs::path reference = folder / "refs" / wanted; is_file(reference)) {
    const std::string text = read_text_file(reference);
    const std::string commit(trimmed(text, white_space));
    if (is_safe_relative_path(commit)) named = folder / "snapshots" / commit;
  } else if (revision && is_commit(wanted)) {
    named = folder / "snapshots" / wanted;
  }
  if (revision) return !named.empty() && has_config(named) ? named : fs::path();
  if (!named.empty() && is_complete_model(named)) return named;
  fs::path newest;
  std::error_code error;
  for (const bool complete : {true, false}) {
    if (!complete && !named.empty() && has_config(named)) return named;
    for (const fs::path& entry : entries_of(folder / "snapshots")) {
      if (complete ? !is_complete_model(entry) : !has_config(entry)) continue;
      if (newest.empty() || fs::last_write_time(entry, error) > fs::last_write_time(newest, error))
        newest = entry;
    }
    if (!newest.empty()) return newest;
  }
  return newest;
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_to_write(folder, error.message());
}

void write_reference(const fs::path& repository, const std::string& revision, const std::string& commit) {
  if (revision == commit) return;
  const fs::path reference = repository / "refs" / revision;
  // Does not write to another user's cache without need.
  if (is_file(reference) && read_text_file(reference) == commit) return;
  make_folders(reference.parent_path());
  write_file_atomically(reference, commit);
}

void link_into_snapshot(const fs::path& snapshot, const std::string& name, const fs::path& blob) {
  const fs::path link = snapshot / name;
  make_folders(link.parent_path());
  std::error_code error;
  // Created beside its name and renamed, so that readers find either the old or the new link.
  const fs::path fresh = link.string() + ".link";
  fs::remove(fresh, error);
  fs::create_symlink(blob.lexically_relative(link.parent_path()), fresh, error);
  if (error) fs::create_hard_link(blob, fresh, error); // a file system without symbolic links
  if (error) fs::copy_file(blob, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fail_to_write(link, error.message());
}

fs::path blob_lock_file(const fs::path& repository, const std::string& tag) {
  fs::path file = repository.parent_path() / ".locks" / repository.filename() / (tag + ".lock");
  make_folders(file.parent_path());
  return file;
}

HubSettings hub_settings() {
  HubSettings settings;
  if (std::string endpoint = environment("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://"))
      throw UsageError("HF_ENDPOINT", endpoint + " is neither https:// nor http://", "set it to https://…");
    settings.endpoint = endpoint;
  }
  settings.cache = hub_cache_folder();
  settings.offline = is_switched_on("HF_HUB_OFFLINE") || is_switched_on("TRANSFORMERS_OFFLINE");
  if (!settings.offline) settings.token = token_of_environment();
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (settings.certificates.empty()) settings.certificates = environment(name);
  return settings;
}

} // namespace hydrascope
