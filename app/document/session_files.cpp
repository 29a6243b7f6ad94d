#include "app/document/session_files.h"

#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/model_info.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

fs::path whole_path(const fs::path& path) {
  std::error_code none;
  const fs::path whole = fs::absolute(path, none);
  fs::path plain = (none ? path : whole).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path(); // a slash at the end
}

// Relative to a folder that holds it; empty if it does not.
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
    return {}; // nothing came with the program
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

// …/models--OWNER--NAME/snapshots/REVISION, if the cache gives this snapshot for the name.
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
    // Nothing that could be taken for one of the other forms.
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
      return repository; // it is missing under this name
    }
  }
  if (reference.starts_with("~/")) return home_folder() / reference.substr(2);
  const fs::path path(reference);
  return path.is_absolute() ? path : whole_path(folder / path);
}

} // namespace hydrascope::app
