// Where the objects lie in labelled pictures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/measure/pointing.h"

namespace hydrascope::training {

struct ObjectBox {
  std::string image;      // file name, or the last parts of its path, parted by /
  std::string class_name; // as in the table
  PixelBox box;
};

// A tab-separated table whose header names the columns image, class, x0, y0, x1, y1, in any order, among
// others or not. Throws Error (missing file, column or box; a cell that is no number; a box whose end lies
// before its beginning), naming the line.
std::vector<ObjectBox> read_boxes(const std::filesystem::path& file);

// Whether a box's `image` names this picture: the whole of its path or the last parts of it.
bool names_picture(const std::string& image, const std::filesystem::path& picture);

} // namespace hydrascope::training
