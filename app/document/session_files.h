// How a session names files and folders, so that another checkout or machine finds them: what came with the
// program as example:NAME, model:NAME or adapter:NAME, a model of the Hugging Face cache as
// repository:OWNER/NAME, what lies beside or below the session by its relative path, what lies in the home
// folder as ~/PATH, all else by its absolute path.
#pragma once

#include <filesystem>
#include <string>

namespace hydrascope::app {

// What a document needs that lies outside it.
enum class FileKind { picture, folder, model, adapter };
const char* kind_name(FileKind kind); // "picture", "folder of pictures", "model", "adapter"

// `folder` is the session's; empty: nothing is relative to it.
std::string reference_of(const std::filesystem::path& path, const std::filesystem::path& folder);
// Where that is now, whether or not anything is there.
std::filesystem::path path_of(const std::string& reference, const std::filesystem::path& folder);

} // namespace hydrascope::app
