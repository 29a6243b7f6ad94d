#include "app/document/gallery.h"

#include <algorithm>
#include <exception>

#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

fs::path gallery_folder() {
  try {
    return assets_folder() / "gallery";
  } catch (const Error&) {
    return {}; // nothing is bundled
  }
}

std::string without_number(const std::string& name) {
  const std::size_t dash = name.find('-');
  return dash == std::string::npos ? name : name.substr(dash + 1);
}

Gallery read_gallery() {
  Gallery gallery;
  std::error_code none;
  for (const auto& found : fs::directory_iterator(gallery_folder(), none)) {
    const fs::path& file = found.path();
    if (file.extension() != ".json") continue;
    try {
      if (auto lesson = read_lesson(read_text_file(file), file))
        gallery.entries.push_back({.id = without_number(file.stem().string()),
                                   .session = file,
                                   .thumbnail = fs::path(file).replace_extension(".png"),
                                   .lesson = std::move(*lesson)});
    } catch (const std::exception& error) {
      gallery.problems.emplace_back(error_message(error));
    }
  }
  std::ranges::sort(gallery.entries, {}, &GalleryEntry::session);
  return gallery;
}

} // namespace

const Gallery& gallery() {
  static const Gallery read = read_gallery();
  return read;
}

bool is_bundled_lesson(const fs::path& file) {
  const fs::path folder = gallery_folder();
  std::error_code none;
  return !folder.empty() && fs::equivalent(file.parent_path(), folder, none);
}

const Lesson* shown_lesson(const Editor& editor) {
  const SessionFile& session = editor.session();
  return session.lesson && !session.lesson_closed ? &*session.lesson : nullptr;
}

} // namespace hydrascope::app
