// The Hugging Face cache on disk:
//   models--ORGANISATION--NAME/refs/REVISION          the commit's hash
//   models--ORGANISATION--NAME/blobs/ETAG             a file's bytes
//   models--ORGANISATION--NAME/snapshots/COMMIT/FILE  a relative symbolic link to its blob
//   .locks/models--ORGANISATION--NAME/ETAG.lock       held while a blob is written
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub: the first that is set.
std::filesystem::path hub_cache_folder();
// HF_HOME, XDG_CACHE_HOME/huggingface, ~/.cache/huggingface.
std::filesystem::path hub_home_folder();

// Whether this is a valid repository name: "name" or "organisation/name" of letters, digits, '.', '_', '-'.
bool is_repository_name(std::string_view name);
// Whether the path is relative and without "..", so that it stays below the folder that it is joined to.
bool is_safe_relative_path(std::string_view name);
// Whether this may be a name in the cache: a commit's hash or a file's tag.
bool is_cache_name(std::string_view name);
bool is_commit(std::string_view revision); // 40 hexadecimal digits

// A folder's entries; none if it is missing or cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

std::filesystem::path repository_folder(const std::filesystem::path& cache, std::string_view repository);
// The repository of a snapshot's folder; empty for any other folder.
std::string repository_of_snapshot(const std::filesystem::path& folder);

// Whether the folder has config.json and all weights.
bool is_complete_model(const std::filesystem::path& folder);
// The snapshot of a revision; by default that of refs/main, else the newest, complete ones first. Empty if
// none has a config.json.
std::filesystem::path cached_snapshot(const std::filesystem::path& cache, std::string_view repository,
                                      const std::optional<std::string>& revision = std::nullopt);

// Throw Error where the cache cannot be written.
void write_reference(const std::filesystem::path& repository, const std::string& revision,
                     const std::string& commit);
void link_into_snapshot(const std::filesystem::path& snapshot, const std::string& name,
                        const std::filesystem::path& blob);
void make_folders(const std::filesystem::path& folder);

// The file by which a blob is locked, as in huggingface_hub. Creates its folder. Throws Error.
std::filesystem::path blob_lock_file(const std::filesystem::path& repository, const std::string& tag);

} // namespace hydrascope
