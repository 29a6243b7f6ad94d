#include "engine/base/paths.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/base/temporary.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

// What a shell has opened to be read: standard input, <(a command).
bool is_descriptor(const fs::path& file) {
  const std::string_view name = file.native();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

// Opening another pipe may wait forever, and reading a device may never end.
std::ifstream opened(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) throw Error(file.string(), "is a folder", "name a file");
  if (fs::exists(status) && !fs::is_regular_file(status) && !is_descriptor(file))
    throw Error(file.string(), "is not a regular file", "name a file, or pipe into /dev/stdin");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(file.string(), std::strerror(errno), "check the path and its permissions");
  return stream;
}

fs::path deps_folder() {
  const std::string set = environment("HYDRASCOPE_DEPS");
  if (!set.empty()) return set;
  const fs::path root = resource_root();
  std::error_code failure;
  return fs::is_directory(root / "models", failure) ? root : root / ".deps";
}

// The base directory specification's folder, or its default below the home folder.
fs::path user_folder(const char* variable, const char* below_home) {
  const std::string set = environment(variable);
  if (!set.empty() && fs::path(set).is_absolute()) return fs::path(set) / "hydrascope";
  const std::string home = environment("HOME");
  return (home.empty() ? fs::temp_directory_path() : fs::path(home) / below_home) / "hydrascope";
}

// Whether the path, or what it is a link to, is a name that the system gives to an open file, as /dev/stdout.
// (/dev/shm holds files of their own.)
bool names_open_file(fs::path file) {
  std::error_code none;
  constexpr int most_links = 8;
  for (int i = 0; i < most_links; ++i) {
    const std::string_view name = file.native();
    if (name == "/dev/stdout" || name == "/dev/stderr" || name.starts_with("/dev/fd/") ||
        name.starts_with("/proc/"))
      return true;
    if (!fs::is_symlink(fs::symlink_status(file, none))) return false;
    file = file.parent_path() / fs::read_symlink(file, none);
  }
  return false;
}

// A device or a pipe is written to, /dev/stdout as well where it is a file; a new file would take its place.
// What that file holds already (>>) stays.
bool write_to_device(const fs::path& file, const std::span<const std::string_view> pieces) {
  std::error_code none;
  const fs::file_status status = fs::status(file, none);
  if (fs::is_directory(status)) throw Error(file.string(), "is a folder", "name a file");
  if (!fs::exists(status) || (fs::is_regular_file(status) && !names_open_file(file))) return false;
  std::ofstream stream(file, std::ios::binary | std::ios::app);
  for (const std::string_view piece : pieces)
    stream.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  stream.flush();
  if (!stream)
    throw Error(file.string(), std::string("cannot be written (") + std::strerror(errno) + ")",
                remedy_of_writing(errno));
  return true;
}

} // namespace

fs::path resource_root() {
  const std::string home = environment("HYDRASCOPE_HOME");
  if (!home.empty()) {
    if (fs::is_directory(fs::path(home) / "assets")) return home;
    throw Error("HYDRASCOPE_HOME", home + " has no folder assets", "set it to the checkout's folder");
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "assets", error)) return folder;
    if (const fs::path installed = folder / "share/hydrascope"; fs::is_directory(installed / "assets", error))
      return installed;
    if (folder == folder.root_path()) break;
  }
  throw Error(program.string(), "no folder above it has assets/",
              "set HYDRASCOPE_HOME to the checkout's folder");
}

fs::path assets_folder() { return resource_root() / "assets"; }
fs::path shaders_folder() { return resource_root() / "shaders"; }
fs::path fonts_folder() { return resource_root() / "fonts"; }
fs::path examples_folder() { return deps_folder() / "examples"; }
fs::path models_folder() { return deps_folder() / "models"; }
fs::path cache_folder() { return user_folder("XDG_CACHE_HOME", ".cache"); }
fs::path data_folder() { return user_folder("XDG_DATA_HOME", ".local/share"); }
fs::path config_folder() { return user_folder("XDG_CONFIG_HOME", ".config"); }

bool is_file_name(const std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool has_file(const fs::path& file) {
  std::error_code failure;
  if (fs::exists(file, failure)) return true;
  if (failure && failure != std::errc::too_many_symbolic_link_levels)
    throw Error(file.string(), failure.message(), "check the path and its permissions");
  if (!fs::is_symlink(fs::symlink_status(file, failure))) return false;
  const std::string target = fs::read_symlink(file, failure).string();
  throw Error(file.string(), "is a link to " + target + ", which leads nowhere",
              "get the file again (hydrascope fetch gets a model's)");
}

std::string last_name(const fs::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::vector<std::string> telling_names(const std::span<const fs::path> paths) {
  std::vector<std::vector<fs::path>> parts;
  for (const fs::path& path : paths) {
    const fs::path plain = path.lexically_normal();
    parts.emplace_back(plain.begin(), plain.end());
    if (parts.back().size() > 1 && parts.back().back().empty()) parts.back().pop_back(); // a slash at the end
  }
  std::vector<std::size_t> shown(parts.size(), 1);
  std::vector<std::string> names(parts.size());
  for (bool longer = true; longer;) {
    for (std::size_t index = 0; index < parts.size(); ++index) {
      fs::path name;
      for (std::size_t part = parts[index].size() - std::min(shown[index], parts[index].size());
           part < parts[index].size(); ++part)
        name /= parts[index][part];
      names[index] = name.string();
    }
    longer = false;
    for (std::size_t index = 0; index < parts.size(); ++index) {
      bool taken = false;
      for (std::size_t other = 0; other < parts.size(); ++other)
        taken = taken || (names[other] == names[index] && parts[other] != parts[index]);
      if (!taken || shown[index] >= parts[index].size()) continue;
      ++shown[index];
      longer = true;
    }
  }
  return names;
}

std::string file_stamp(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return fmt::format("{} bytes, {}.{:09}, file {} of {}", status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ino, status.st_dev);
}

std::string sha256_of_file(const fs::path& file) {
  std::ifstream stream = opened(file);
  Digest digest(DigestKind::sha256);
  std::string buffer(std::size_t{1} << 20, '\0');
  while (stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.add({buffer.data(), static_cast<std::size_t>(stream.gcount())});
  }
  if (stream.bad() || !stream.eof())
    throw Error(file.string(), "cannot be read to its end", "check the disk");
  return digest.hexadecimal();
}

std::string sha256_of_text(std::string_view text) {
  Digest digest(DigestKind::sha256);
  digest.add(text);
  return digest.hexadecimal();
}

std::string read_beginning(const fs::path& file, const std::size_t most_bytes) {
  std::ifstream stream = opened(file);
  std::string bytes;
  std::error_code no_size; // of a pipe
  const std::uintmax_t size = fs::file_size(file, no_size);
  // One byte more, by which the end is found.
  std::size_t piece = no_size || size == 0 ? std::size_t{1} << 20 : static_cast<std::size_t>(size + 1);
  for (; stream && bytes.size() < most_bytes; piece = std::size_t{1} << 20) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + std::min(piece, most_bytes - begin));
    stream.read(bytes.data() + begin, static_cast<std::streamsize>(bytes.size() - begin));
    bytes.resize(begin + static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) throw Error(file.string(), "cannot be read to its end", "check the disk");
  return bytes;
}

std::string read_text_file(const fs::path& file, const std::size_t most_bytes) {
  const auto refuse = [&](const std::uintmax_t size) {
    throw Error(file.string(), fmt::format("has {} bytes, and at most {} are read", size, most_bytes),
                "use a smaller file");
  };
  std::error_code no_size;
  if (const std::uintmax_t size = fs::file_size(file, no_size); !no_size && size > most_bytes) refuse(size);
  std::string text = read_beginning(file, most_bytes == any_size ? any_size : most_bytes + 1);
  if (text.size() > most_bytes) refuse(text.size());
  return text;
}

void write_file_atomically(const fs::path& file, std::string_view bytes) {
  write_file_atomically(file, std::span<const std::string_view>(&bytes, 1));
}

void write_file_atomically(const fs::path& file, std::span<const std::string_view> pieces) {
  if (write_to_device(file, pieces)) return;
  TemporaryFile temporary(file);
  for (const std::string_view piece : pieces) temporary.write(piece);
  temporary.commit();
}

} // namespace hydrascope
