#include "engine/models/hub/hub.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/config_fields.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"
#include "engine/models/hub/hub_cache.h"
#include "engine/models/hub/hub_download.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "engine/models/tokenizer/wordpiece.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_weights = "model.safetensors";
constexpr const char* weights_index = "model.safetensors.index.json";
// In the order in which they are fetched.
constexpr std::array<const char*, 10> small_files{"config.json",
                                                  "preprocessor_config.json",
                                                  "vocab.txt",
                                                  "vocab.json",
                                                  "merges.txt",
                                                  "added_tokens.json",
                                                  "tokenizer.json",
                                                  "tokenizer_config.json",
                                                  "special_tokens_map.json",
                                                  "generation_config.json"};

[[noreturn]] void reject_listing(const HubSettings& settings, const std::string& repository) {
  throw Error(repository, settings.endpoint + " replied with something that is not a model's listing",
              "check HF_ENDPOINT");
}

struct Listing {
  std::string commit;
  std::set<std::string> names;
};

Listing fetch_listing(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                      const std::stop_token& stop) {
  const HttpReply reply = session.get(fmt::format("{}/api/models/{}/revision/{}", settings.endpoint,
                                                  commit.repository, url_encoded(commit.revision, false)),
                                      stop);
  if (reply.status != 200) throw status_error(reply, settings, commit, "");
  const auto json = parse_json<nlohmann::json>(reply.body);
  if (!json.is_object() || !json.contains("sha") || !json["sha"].is_string() || !json.contains("siblings") ||
      !json["siblings"].is_array())
    reject_listing(settings, commit.repository);
  Listing listing{json["sha"].get<std::string>(), {}};
  if (!is_cache_name(listing.commit)) reject_listing(settings, commit.repository);
  for (const auto& sibling : json["siblings"])
    if (sibling.is_object() && sibling.contains("rfilename") && sibling["rfilename"].is_string())
      listing.names.insert(sibling["rfilename"].get<std::string>());
  return listing;
}

// The repository's files that are fetched before the weights. Throws if it holds no supported model.
std::vector<std::string> files_of_model(const HubCommit& commit, const std::set<std::string>& names) {
  std::vector<std::string> files;
  for (const char* name : small_files)
    if (names.contains(name)) files.emplace_back(name);
  if (!names.contains("config.json"))
    throw Error(commit.repository, "has no config.json: it is not a model of transformers",
                "choose a model of transformers");
  if (names.contains(single_weights)) return files;
  if (names.contains(weights_index)) {
    files.emplace_back(weights_index);
    return files;
  }
  const bool pickled = std::ranges::any_of(names, [](const std::string& name) {
    return name.starts_with("pytorch_model") && name.find('/') == std::string::npos;
  });
  if (pickled)
    throw Error(
        commit.repository,
        "holds its weights as pytorch_model.bin only, which is not read: unpickling can run any code",
        "choose a revision with model.safetensors (--revision refs/pr/N, where the hub's bot has made "
        "one), or save it with transformers' save_pretrained and open that folder");
  throw Error(commit.repository, "holds no model.safetensors",
              "choose a model that has its weights as safetensors");
}

// The files that hold the weights, given the index if there is one.
std::vector<std::string> weights_of_model(const HubCommit& commit, const std::set<std::string>& names,
                                          const fs::path& snapshot) {
  if (names.contains(single_weights)) return {single_weights};
  const ConfigFields map = ConfigFields::of_file(snapshot / weights_index).object("weight_map");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map.values().items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : std::string();
    if (!is_file_name(name))
      throw BrokenFile(commit.repository + "/" + weights_index,
                       "names '" + name + "', which is not a file name", "choose another model");
    shards.insert(name);
  }
  return {shards.begin(), shards.end()};
}

// One call of fetch_model.
class Fetch {
public:
  Fetch(const HubSettings& settings, HubCommit commit, const FetchObserver& observer, std::stop_token stop)
      : settings_(settings),
        commit_(std::move(commit)),
        observer_(observer),
        stop_(std::move(stop)),
        session_(settings),
        repository_(repository_folder(settings.cache, commit_.repository)) {}

  FetchedModel run() {
    const Listing listing = fetch_listing(session_, settings_, commit_, stop_);
    commit_.commit = listing.commit;
    snapshot_ = repository_ / "snapshots" / listing.commit;
    const std::vector<std::string> files = files_of_model(commit_, listing.names);
    // config.json and, if there is one, how pictures are prepared: all that checked_info() reads. A link
    // whose file was removed would be an error there.
    const auto rest = std::ranges::find_if_not(files, [](const std::string& name) {
      return name == "config.json" || name == "preprocessor_config.json";
    });
    fetch_all({files.begin(), rest});
    const ModelInfo info = checked_info();
    fetch_all({rest, files.end()});
    // These throw where the tokenizer cannot be read.
    if (info.causal || (info.input == InputKind::text && has_byte_pair(snapshot_))) {
      const BytePair tokens = load_byte_pair(snapshot_);
      if (!info.causal) static_cast<void>(tokens_at_both_ends(tokens, snapshot_));
    } else if (info.input == InputKind::text) {
      static_cast<void>(load_wordpiece(snapshot_));
    }
    fetch_all(weights_of_model(commit_, listing.names, snapshot_));
    write_reference(repository_, commit_.revision, commit_.commit);
    return {.repository = commit_.repository,
            .revision = commit_.revision,
            .commit = commit_.commit,
            .folder = snapshot_,
            .files = std::move(files_),
            .info = info};
  }

private:
  ModelInfo checked_info() const {
    try {
      return read_model_info(snapshot_);
    } catch (const Error& error) {
      throw ForeignFile(commit_.repository, fmt::format("is not a supported model ({})", error.what()),
                        "choose a DeiT, ViT, DINOv2, BERT, GPT-2 or Llama");
    }
  }

  // Asks for all sizes first, so that the total is known before the first byte arrives.
  void fetch_all(const std::vector<std::string>& names) {
    std::vector<RemoteFile> missing;
    std::error_code error;
    for (const std::string& name : names) {
      progress_.file = name;
      report();
      const fs::path link = snapshot_ / name;
      if (fs::is_regular_file(link, error)) {
        add_cached(link, name);
      } else {
        missing.push_back(query_file(session_, settings_, commit_, name, stop_));
        progress_.total += missing.back().size.value_or(0);
      }
    }
    for (const RemoteFile& file : missing) fetch(file);
  }

  void add_cached(const fs::path& link, const std::string& name) {
    std::error_code error;
    FetchedFile file{.name = name, .size = static_cast<std::int64_t>(fs::file_size(link)), .sha256 = {}};
    const std::string tag = fs::read_symlink(link, error).filename().string();
    if (RemoteFile{.name = name, .url = {}, .tag = tag, .size = {}}.has_sha256()) file.sha256 = tag;
    progress_.total += file.size;
    progress_.bytes += file.size;
    files_.push_back(std::move(file));
  }

  void fetch(const RemoteFile& file) {
    const std::int64_t before = progress_.bytes, received = progress_.received;
    progress_.file = file.name;
    const auto observe = [&](std::int64_t bytes, std::int64_t fresh, bool checking) {
      progress_.bytes = before + bytes;
      progress_.received += fresh;
      progress_.checking = checking;
      report();
    };
    const fs::path blob = download_blob(session_, settings_, commit_, file, repository_, observe, stop_);
    link_into_snapshot(snapshot_, file.name, blob);
    const auto size = static_cast<std::int64_t>(fs::file_size(blob));
    progress_.bytes = before + size;
    progress_.checking = false;
    if (!file.size) progress_.total += size;
    files_.push_back({.name = file.name,
                      .size = size,
                      .sha256 = file.has_sha256() ? file.tag : std::string(),
                      .downloaded = progress_.received > received || size == 0});
    report();
  }

  void report() const {
    if (stop_.stop_requested()) throw Cancelled();
    if (observer_) observer_(progress_);
  }

  const HubSettings& settings_;
  HubCommit commit_;
  const FetchObserver& observer_;
  std::stop_token stop_;
  HttpSession session_;
  fs::path repository_, snapshot_;
  std::vector<FetchedFile> files_;
  FetchProgress progress_;
};

// The model in the cache, without network access.
FetchedModel cached_model(const HubCommit& commit, const HubSettings& settings) {
  const fs::path snapshot = cached_snapshot(settings.cache, commit.repository, commit.revision);
  const std::string cache = settings.cache.string();
  if (snapshot.empty() || !is_complete_model(snapshot))
    throw Error(commit.repository,
                fmt::format("offline, and the cache {} {}", cache,
                            snapshot.empty() ? "does not hold revision " + commit.revision
                                             : "holds only a part of it"),
                "unset HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE to fetch it");
  FetchedModel model{.repository = commit.repository,
                     .revision = commit.revision,
                     .commit = snapshot.filename().string(),
                     .folder = snapshot,
                     .files = {},
                     .info = read_model_info(snapshot),
                     .offline = true};
  for (const auto& entry : fs::directory_iterator(snapshot)) {
    std::error_code error;
    if (!entry.is_regular_file(error)) continue;
    const std::string tag = fs::read_symlink(entry.path(), error).filename().string();
    const bool sha256 = RemoteFile{.name = {}, .url = {}, .tag = tag, .size = {}}.has_sha256();
    model.files.push_back({.name = entry.path().filename().string(),
                           .size = static_cast<std::int64_t>(entry.file_size()),
                           .sha256 = sha256 ? tag : std::string()});
  }
  std::ranges::sort(model.files, {}, &FetchedFile::name);
  return model;
}

} // namespace

FetchedModel fetch_model(const std::string& repository, const std::string& revision,
                         const HubSettings& settings, const FetchObserver& observer,
                         const std::stop_token& stop) {
  if (!is_repository_name(repository))
    throw UsageError(repository.empty() ? "repository" : repository,
                     "is not a repository name: organisation/name, of letters, digits, '.', '_' and '-'",
                     "as in facebook/deit-base-patch16-224");
  if (!is_safe_relative_path(revision) || revision.find_first_of(" \t\r\n") != std::string::npos)
    throw UsageError("--revision", "'" + revision + "' is not the name of a branch, a tag or a commit",
                     "leave it out for main");
  const HubCommit commit{.repository = repository, .revision = revision, .commit = {}};
  if (settings.offline) return cached_model(commit, settings);
  return Fetch(settings, commit, observer, stop).run();
}

} // namespace hydrascope
