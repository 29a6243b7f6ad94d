// Folders of the program and of the user, and reading and writing whole files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// The folder that holds assets/ and shaders/: HYDRASCOPE_HOME; or the executable's folder or one of its
// parents (a checkout), or share/hydrascope in one of them (an installation). Throws Error if there is none.
std::filesystem::path resource_root();
std::filesystem::path assets_folder();  // …/assets
std::filesystem::path shaders_folder(); // …/shaders
std::filesystem::path fonts_folder();   // …/fonts, which only a package has
std::filesystem::path examples_folder(); // pictures: examples/ in HYDRASCOPE_DEPS, …/.deps or a package's …
std::filesystem::path models_folder();   // models: models/ beside examples/
std::filesystem::path cache_folder();    // $XDG_CACHE_HOME/hydrascope or ~/.cache/hydrascope (not created)
std::filesystem::path data_folder();   // $XDG_DATA_HOME/hydrascope or ~/.local/share/hydrascope (not created)
std::filesystem::path config_folder(); // $XDG_CONFIG_HOME/hydrascope or ~/.config/hydrascope (not created)

// Whether there is such a file or folder. Throws Error for a symbolic link that leads nowhere, as a cache
// whose contents were removed holds.
bool has_file(const std::filesystem::path& file);

// The last component of a path, also of one that ends with a slash: "photographs" of /home/ada/photographs/.
std::string last_name(const std::filesystem::path& path);

// The last component of each path, with as many of the folders above it as tell it from the others:
// "mrpc/dev.tsv" and "qqp/dev.tsv". Equal paths have equal names.
std::vector<std::string> telling_names(std::span<const std::filesystem::path> paths);

// Whether this names a file that lies beside the one that names it: a path to another folder is malicious.
bool is_file_name(std::string_view name);

// A text that changes when the file is written to or another takes its place: its size, the time of its last
// change, and which file it is. Empty if there is none.
std::string file_stamp(const std::filesystem::path& file);

// SHA-256 in lower-case hexadecimal. Throws Error if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);
std::string sha256_of_text(std::string_view text);

// The whole file, or all that comes through a pipe or a terminal that the shell has opened (/dev/stdin,
// /dev/fd/N). Throws Error if it cannot be read, is another pipe or device, or has more bytes than that.
constexpr std::size_t any_size = static_cast<std::size_t>(-1);
std::string read_text_file(const std::filesystem::path& file, std::size_t most_bytes = std::size_t{1} << 30);
// The same of at most so many bytes, however many the file has.
std::string read_beginning(const std::filesystem::path& file, std::size_t most_bytes);
// Writes a temporary file beside `file`, flushes it and renames it, so that readers see either the old or the
// new content. A file that is replaced keeps its mode, a symbolic link stays one. What a shell has opened
// (/dev/stdout) is appended to. Throws Error (disk full, no permission).
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);
// The same for several pieces, written one after another.
void write_file_atomically(const std::filesystem::path& file, std::span<const std::string_view> pieces);

} // namespace hydrascope
