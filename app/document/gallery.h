// The gallery: sessions that come with the program, each of which teaches something (assets/gallery).
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

struct GalleryEntry {
  std::string id; // "hydra-keeps-the-cat": the session's name without its number
  std::filesystem::path session, thumbnail;
  Lesson lesson;
};

// In the order of the file names. Appends what could not be read to `problems`, unless it is null.
std::vector<GalleryEntry> read_gallery(std::vector<std::string>* problems = nullptr);

// Whether the file is in the gallery's folder.
bool is_bundled_lesson(const std::filesystem::path& file);

// The lesson whose card is shown: that of the document's session; null if there is none or it was closed.
const Lesson* shown_lesson(const Editor& editor);

} // namespace hydrascope::app
