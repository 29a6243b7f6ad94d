// One file of a repository: its metadata on the hub, and downloading it into the cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "engine/models/hub/hub_http.h"

namespace hydrascope {

// The repository at one commit.
struct HubCommit {
  std::string repository, revision, commit;
};

struct RemoteFile {
  std::string name, url;
  std::string tag;                  // names the blob: sha256 of large files, git's hash of small ones
  std::optional<std::int64_t> size; // unknown on some mirrors

  bool has_sha256() const; // the tag is one
};

// Queries a file's size and tag. Throws Error if the hub refuses or its reply is invalid, Cancelled.
RemoteFile query_file(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                      const std::string& name, const std::stop_token& stop);

// `bytes`: size of the file so far; `received`: over the network since the last call.
using ReceiveObserver = std::function<void(std::int64_t bytes, std::int64_t received, bool checking)>;

// Downloads blobs/TAG below `repository`: resumes TAG.incomplete if it exists, retries after interruptions,
// and renames the file when its size and digest are right, else removes it. Returns the blob. Throws Error
// (refused, disk full, wrong content), Cancelled; keeps the part that has arrived.
std::filesystem::path download_blob(HttpSession& session, const HubSettings& settings,
                                    const HubCommit& commit, const RemoteFile& file,
                                    const std::filesystem::path& repository, const ReceiveObserver& observer,
                                    const std::stop_token& stop);

// The error of a status other than 2xx, with its remedy.
Error status_error(const HttpReply& reply, const HubSettings& settings, const HubCommit& commit,
                   const std::string& file);

} // namespace hydrascope
