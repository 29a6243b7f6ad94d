// A hash of the data that a training reads, for the metadata of what it writes. Plain header.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hydrascope::training {

// SHA-256 in lower-case hexadecimal. Of a file: of its bytes. Of a folder: of the relative names and the
// sizes of all files in it and below, a line "NAME\tSIZE\n" each, sorted by name: so that pictures need not
// be read. Of several: of their hashes in order, a line each. A capture is the file or folder that its
// address names. Throws Error if something cannot be read.
std::string data_hash(const std::vector<std::filesystem::path>& data);

// A file's line in such a list. Throws Error if the file is gone.
std::string listed_file(const std::filesystem::path& file, const std::filesystem::path& folder);
// The same with the time of its last change in nanoseconds, "NAME\tSIZE\tTIME\n": another file of the same
// name and size has another line, and a copy that keeps times, in whatever folder, the same one.
std::string stamped_file(const std::filesystem::path& file, const std::filesystem::path& folder);

} // namespace hydrascope::training
