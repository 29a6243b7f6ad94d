// Models by their names on the Hugging Face Hub, fetched into its cache. What is written there Python's
// huggingface_hub reads, and the other way round.
// Interface: https://huggingface.co/docs/hub/api; layout:
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope {

struct HubSettings {
  std::string endpoint = "https://huggingface.co"; // no slash at its end
  std::filesystem::path cache;                     // …/hub
  std::string token;                               // sent to the endpoint alone; empty: none
  bool offline = false;                            // nothing is asked of the network
  std::filesystem::path certificates;              // authorities to trust; empty: the system's
  std::chrono::milliseconds retry_pause{1000};     // before the first retry; doubled before each that follows
};

// As the environment has them, by huggingface_hub's rules: HF_ENDPOINT; HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME; HF_TOKEN, HF_TOKEN_PATH, $HF_HOME/token; HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE;
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE. Throws UsageError where one of them makes no sense.
HubSettings hub_settings();

struct FetchProgress {
  std::string file;          // being worked on
  bool checking = false;     // it has arrived, and its digest is being computed
  std::int64_t bytes = 0;    // of the files known so far that are here
  std::int64_t total = 0;    // … of which there are so many; grows when an index names its shards
  std::int64_t received = 0; // over the network, by this call
};
using FetchObserver = std::function<void(const FetchProgress&)>;

struct FetchedFile {
  std::string name;
  std::int64_t size = 0;
  std::string sha256;      // empty for small files, which the hub knows by their git hash
  bool downloaded = false; // by this call; otherwise it was in the cache
};

struct FetchedModel {
  std::string repository, revision, commit;
  std::filesystem::path folder; // the snapshot
  std::vector<FetchedFile> files;
  ModelInfo info;
  bool offline = false; // the hub was not asked: this is what the cache has
};

// Fetches what running the model needs: config.json, weights as safetensors (one file or shards with their
// index), vocabulary and pre-processing. Sizes and digests are checked, and a file gets its name only after
// that; one that was cut off is gone on with where it ended. config.json comes first: a model that cannot be
// run is refused before its weights. `repository`: "organisation/name" or "name"; `revision`: a branch, a tag
// or a commit. Throws UsageError, Error, ForeignFile; Cancelled when `stop` asks for it.
FetchedModel fetch_model(const std::string& repository, const std::string& revision,
                         const HubSettings& settings, const FetchObserver& observer = {},
                         const std::stop_token& stop = {});

} // namespace hydrascope
