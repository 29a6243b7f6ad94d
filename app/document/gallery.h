// The gallery: sessions that come with the program, each of which teaches something (assets/gallery).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

struct GalleryEntry {
  std::string id; // "hydra-keeps-the-cat": the session's name without its number
  std::filesystem::path session, thumbnail;
  Lesson lesson;
};

struct Gallery {
  std::vector<GalleryEntry> entries; // in the order of the file names
  std::vector<std::string> problems; // what could not be read
};

// Read from the files at the first call.
const Gallery& gallery();

// Whether the file is in the gallery's folder.
bool is_bundled_lesson(const std::filesystem::path& file);

// The lesson whose card is shown: that of the document's session; null if there is none or it was closed.
const Lesson* shown_lesson(const Editor& editor);

} // namespace hydrascope::app
