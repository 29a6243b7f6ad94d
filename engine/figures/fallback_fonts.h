// Which installed fonts show the scripts that Inter and JetBrains Mono lack.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hydrascope {

struct FontFile {
  std::string family;
  std::filesystem::path file;
  int index = 0; // of the font within a collection
};

// Of the scalable fonts that fontconfig knows, those that it prefers for the scripts and signs that texts of
// the world most often need, each once. Empty where fontconfig finds no fonts at all. Asks fontconfig anew.
std::vector<FontFile> find_fallback_fonts();

// The same, found once per process.
const std::vector<FontFile>& fallback_fonts();

} // namespace hydrascope
