// One file of a repository: what the hub says of it, and its bytes on their way into the cache.
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
  std::optional<std::int64_t> size; // some mirrors do not say

  bool has_sha256() const; // the tag is one
};

// Asks for a file's size and tag. Throws Error where the hub refuses or answers nonsense, Cancelled.
RemoteFile ask_for_file(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                        const std::string& name, const std::stop_token& stop);

// `bytes`: of the file, that are here; `received`: that came over the network since the last call.
using ReceiveObserver = std::function<void(std::int64_t bytes, std::int64_t received, bool checking)>;

// Makes blobs/TAG below `repository`: goes on with TAG.incomplete if there is one, tries again after a cut,
// and gives it its name when size and digest are right; what is wrong is removed. Returns the blob. Throws
// Error (refused, disk full, wrong content), Cancelled: what has arrived by then is kept.
std::filesystem::path download_blob(HttpSession& session, const HubSettings& settings,
                                    const HubCommit& commit, const RemoteFile& file,
                                    const std::filesystem::path& repository, const ReceiveObserver& observer,
                                    const std::stop_token& stop);

// What a status other than 2xx means, with what to do about it.
Error status_error(const HttpReply& reply, const HubSettings& settings, const HubCommit& commit,
                   const std::string& file);

} // namespace hydrascope
