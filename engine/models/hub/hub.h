// Fetching models from the Hugging Face Hub into its cache, which is shared with Python's huggingface_hub.
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
  bool offline = false;                            // no network access
  std::filesystem::path certificates;              // authorities to trust; empty: the system's
  std::chrono::milliseconds retry_pause{1000};     // before the first retry; doubled before each that follows
};

// The settings of the environment, by huggingface_hub's rules: HF_ENDPOINT; HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME; HF_TOKEN, HF_TOKEN_PATH, $HF_HOME/token; HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE;
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE. Throws UsageError for an invalid value.
HubSettings hub_settings();

struct FetchProgress {
  std::string file;          // being fetched
  bool checking = false;     // the file has arrived, and its digest is being computed
  std::int64_t bytes = 0;    // already in the cache, of the files known so far
  std::int64_t total = 0;    // of the files known so far; grows when an index names its shards
  std::int64_t received = 0; // over the network, in this call
};
using FetchObserver = std::function<void(const FetchProgress&)>;

struct FetchedFile {
  std::string name;
  std::int64_t size = 0;
  std::string sha256;      // empty for small files, which the hub identifies by their git hash
  bool downloaded = false; // by this call; false: already in the cache
};

struct FetchedModel {
  std::string repository, revision, commit;
  std::filesystem::path folder; // the snapshot
  std::vector<FetchedFile> files;
  ModelInfo info;
  bool offline = false; // taken from the cache without asking the hub
};

// Fetches the files that running the model needs: config.json, weights as safetensors (one file or shards
// with their index), vocabulary and pre-processing. A file gets its name only after its size and digest have
// been checked; an interrupted download is resumed. config.json comes first: an unsupported model is rejected
// before its weights are fetched. `repository`: "organisation/name" or "name"; `revision`: a branch, a tag or
// a commit. Throws UsageError, Error, ForeignFile; Cancelled when `stop` is requested.
FetchedModel fetch_model(const std::string& repository, const std::string& revision,
                         const HubSettings& settings, const FetchObserver& observer = {},
                         const std::stop_token& stop = {});

} // namespace hydrascope
