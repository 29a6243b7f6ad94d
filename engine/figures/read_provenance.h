// Where a figure came from, read back out of its own file. Plain header.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hydrascope {

// The provenance that write_figure stored: one JSON text. What kind of file it is, is found by its content;
// of an NPY file the JSON beside it is read. Throws ForeignFile if the file holds none (a photograph, a
// document of another program, a figure whose metadata was stripped), BrokenFile if it is damaged, Error if
// it cannot be read.
std::string read_provenance(const std::filesystem::path& file);

// The same of a file's bytes; `subject` is named in errors.
std::string provenance_of(std::string_view bytes, std::string_view subject);

} // namespace hydrascope
