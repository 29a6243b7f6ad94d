// Labelled pictures: a folder with a sub-folder per class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hydrascope::training {

struct LabelledImage {
  std::filesystem::path file;
  std::int64_t label = 0; // index into ImageFolder::classes
};

struct ImageFolder {
  std::filesystem::path path;
  std::vector<std::string> classes;  // sub-folder names
  std::vector<LabelledImage> images; // class by class, by path within a class
};

// The names of the sub-folders, sorted. Throws Error if the folder is missing or has none.
std::vector<std::string> class_folders(const std::filesystem::path& folder);

// The pictures (by their endings) of these classes, in this order of classes; at most `images_per_class` of
// each, the first by name; 0: all. Throws Error (a class without folder or pictures).
ImageFolder list_image_folder(const std::filesystem::path& folder, const std::vector<std::string>& classes,
                              int images_per_class);

// Splits off a share of each class, chosen by `seed` (at least one picture, never the last one): the rest
// stays.
ImageFolder split_off(ImageFolder& folder, double share, std::uint64_t seed);

// First column → second column of a TSV; of several names parted by commas the first. Throws Error,
// BrokenFile.
std::map<std::string, std::string> read_labels(const std::filesystem::path& file);

} // namespace hydrascope::training
