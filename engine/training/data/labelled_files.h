// Labelled data on disk: tables of texts, folders of pictures and their mapping to a classifier's classes,
// boxes of the objects in pictures. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/measure/pointing.h"
#include "engine/models/model_info.h"

namespace hydrascope {

// ---- Texts, as the GLUE tasks have them ----

// Columns are counted from 1. CoLA: text 4, label 2. MRPC: text 4, pair 5, label 1, with a header.
struct LabelledColumns {
  int text = 1;
  int pair = 0; // the second text of each example; 0: none
  int label = 2;

  bool operator==(const LabelledColumns&) const = default;
};

struct LabelledText {
  std::string text;
  std::optional<std::string> pair;
  std::string label; // as in the table

  bool operator==(const LabelledText&) const = default;
};

// The examples of a tab-separated table (engine/base/tsv.h) in its order, with `header` without the first
// line; `limit` > 0 takes the first ones. A text may be empty. Throws Error with line, reason and remedy
// (missing file, no examples, a line without one of the columns or with an empty label), UsageError (a column
// below 1, two equal columns).
std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& file,
                                              const LabelledColumns& columns, bool header, int limit);

// The labels of a table's examples as numbers. Throws Error naming the file, the label and its text where one
// is no finite number.
std::vector<double> label_numbers(const std::vector<LabelledText>& texts, const std::filesystem::path& file);

} // namespace hydrascope

namespace hydrascope::training {

// ---- Pictures: a folder with a sub-folder per class ----

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

// The pictures (by their endings) of these classes, class by class; of each the first `images_per_class` by
// name, 0: all. Throws Error (a class without folder or pictures).
ImageFolder list_image_folder(const std::filesystem::path& folder, const std::vector<std::string>& classes,
                              int images_per_class);

// Removes a random share of each class, at least one picture and never all, and returns it; it depends on
// `seed` alone.
ImageFolder split_off(ImageFolder& folder, double share, std::uint64_t seed);

// First column → second column of a tab-separated table; of several names separated by commas the first.
// Throws Error, BrokenFile.
std::map<std::string, std::string> read_labels(const std::filesystem::path& file);

// ---- The classes of a classifier that is trained on such a folder ----

// The class whose id, else whose label, is the sub-folder's name; −1 if there is none.
std::int64_t matching_class(const std::vector<AdapterInfo::Class>& classes, const std::string& folder);

// Throws UsageError if two of these are stored as the same name, with U+FFFD for what is not UTF-8.
void check_distinct(const std::vector<std::string>& classes);

struct ClassPlan {
  std::vector<std::string> folders;        // to train on
  std::vector<AdapterInfo::Class> classes; // of the classifier after training
  std::vector<std::int64_t> targets;       // folder → class
  bool new_head = false;                   // a new classifier is made, for these folders
  std::string note;                        // the folders left out, for the user; empty if none
};

// `asked`: --classes, may be empty; `available`: the existing folders; `known`: the classifier's classes,
// empty without a classifier; `labels`: folder → label. If the classifier knows some of the folders, only
// those are used. Throws UsageError if --classes names some that it does not know, listing them, and as
// check_distinct.
ClassPlan plan_classes(const std::vector<std::string>& asked, const std::vector<std::string>& available,
                       const std::vector<AdapterInfo::Class>& known,
                       const std::map<std::string, std::string>& labels);
// The same of a regression: one output, the classifier's if it has one too.
ClassPlan plan_number(const std::vector<AdapterInfo::Class>& known);

// ---- Boxes of the objects in pictures ----

struct ObjectBox {
  std::string image;      // file name, or the last parts of its path, separated by /
  std::string class_name; // as in the table
  PixelBox box;
};

// The boxes of a tab-separated table whose header has the columns image, class, x0, y0, x1, y1, in any order,
// possibly among others. Throws Error naming the line (missing file, column or box; a cell that is not a
// number; a box that ends before it begins).
std::vector<ObjectBox> read_boxes(const std::filesystem::path& file);

// Whether a box's `image` is this picture's path or the last parts of it.
bool names_picture(const std::string& image, const std::filesystem::path& picture);

} // namespace hydrascope::training
