// A folder of pictures that is stepped through, and what the model makes of each of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

struct FolderPicture {
  std::filesystem::path file;
  std::string label; // the sub-folder's name, which is its class's; empty in the folder itself
};

struct PictureFolder {
  std::filesystem::path path;
  std::vector<FolderPicture> pictures; // class by class, by name within a class
  bool labelled = false;               // every picture lies in a sub-folder
};

// By the ending: what is opened as a picture.
bool has_picture_ending(const std::filesystem::path& file);
// The pictures in the folder and in its sub-folders. Throws Error if there are none.
PictureFolder list_pictures(const std::filesystem::path& path);
// Where a file stands in `pictures`.
std::optional<std::size_t> find_picture(const PictureFolder& folder, const std::filesystem::path& file);

// The prediction for one picture of the folder.
struct PictureCheck {
  enum class Verdict { right, wrong, unknown }; // unknown: the classifier has no class of the label's name
  Verdict verdict = Verdict::unknown;
  std::string predicted;
  double probability = 0;
};
// By model, kernels and folder: what they were found for.
struct PictureChecks {
  std::string setup;
  std::map<std::filesystem::path, PictureCheck> found;
  std::size_t total = 0;
  bool running = false;
  std::size_t wrong = 0, right = 0;
};
// Whether the best prediction is the class that `label` names: by an adapter's class id, else by the class's
// label or its first synonym, whatever the case; nullopt if no class is called so.
std::optional<bool> is_right(const RunResult& run, const std::string& label);

// Indices into `pictures` in the order in which they are shown: as they are, or the wrong ones first (the
// surest of them at the front), then those not yet seen, then the right ones (the least sure first).
std::vector<std::size_t> shown_order(const PictureFolder& folder, bool wrong_first,
                                     const PictureChecks& checks);

} // namespace hydrascope::app
