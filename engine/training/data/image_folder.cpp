#include "engine/training/data/image_folder.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/training/data/batches.h"
#include "engine/training/data/random.h"

namespace hydrascope::training {
namespace {

bool is_picture(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](const unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".bmp" || ending == ".ppm";
}

} // namespace

std::vector<std::string> class_folders(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw Error(folder.string(), "no such folder", "name a folder that has a sub-folder per class");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  if (names.empty())
    throw Error(folder.string(), "has no sub-folders", "put the pictures of each class into one");
  std::sort(names.begin(), names.end());
  return names;
}

ImageFolder list_image_folder(const std::filesystem::path& folder, const std::vector<std::string>& classes,
                              const int images_per_class) {
  ImageFolder result;
  result.path = folder;
  result.classes = classes;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::filesystem::path class_folder = folder / classes[label];
    if (!std::filesystem::is_directory(class_folder))
      throw Error(class_folder.string(), "no such class folder", "check --classes");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(class_folder))
      if (entry.is_regular_file() && is_picture(entry.path())) files.push_back(entry.path());
    if (files.empty())
      throw Error(class_folder.string(), "holds no pictures", "PNG, JPEG, BMP and PPM are read");
    std::sort(files.begin(), files.end());
    if (images_per_class > 0 && files.size() > static_cast<std::size_t>(images_per_class))
      files.resize(static_cast<std::size_t>(images_per_class));
    for (auto& file : files) result.images.push_back({std::move(file), static_cast<std::int64_t>(label)});
  }
  return result;
}

ImageFolder split_off(ImageFolder& folder, const double share, const std::uint64_t seed) {
  ImageFolder held_out;
  held_out.path = folder.path;
  held_out.classes = folder.classes;
  std::vector<LabelledImage> kept;
  for (auto first = folder.images.begin(); first != folder.images.end();) {
    const auto last = std::find_if(first, folder.images.end(),
                                   [&](const LabelledImage& image) { return image.label != first->label; });
    const std::int64_t count = last - first;
    const std::int64_t out = held_out_count(count, share);
    const auto order = shuffled(count, mix({seed, static_cast<std::uint64_t>(first->label)}));
    std::vector<bool> taken(static_cast<std::size_t>(count), false);
    for (std::int64_t i = 0; i < out; ++i)
      taken[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
    for (std::int64_t i = 0; i < count; ++i)
      (taken[static_cast<std::size_t>(i)] ? held_out.images : kept).push_back(*(first + i));
    first = last;
  }
  folder.images = std::move(kept);
  return held_out;
}

std::map<std::string, std::string> read_labels(const std::filesystem::path& file) {
  std::map<std::string, std::string> labels;
  std::istringstream lines(read_text_file(file));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const auto tab = line.find('\t');
    if (tab == std::string::npos)
      throw BrokenFile(file.string(), fmt::format("no tab in line \"{}\"", line),
                       "a line is: folder, tab, label");
    const std::string names = line.substr(tab + 1);
    labels[line.substr(0, tab)] = names.substr(0, names.find(','));
  }
  return labels;
}

} // namespace hydrascope::training
