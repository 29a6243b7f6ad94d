#include "engine/training/data/labelled_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/json_text.h"
#include "engine/base/text.h"
#include "engine/base/tsv.h"
#include "engine/training/data/sampling.h"

namespace hydrascope {
namespace {

void check(const LabelledColumns& columns) {
  const auto refuse = [](const char* option, const char* reason) {
    throw UsageError(option, reason, "name the columns of the table, counted from 1");
  };
  if (columns.text < 1) refuse("--column", "must be 1 or more");
  if (columns.label < 1) refuse("--label-column", "must be 1 or more");
  if (columns.pair < 0) refuse("--pair-column", "must be 1 or more");
  if (columns.label == columns.text) refuse("--label-column", "is the column of the texts");
  if (columns.pair == columns.text) refuse("--pair-column", "is the column of the texts");
  if (columns.pair == columns.label) refuse("--pair-column", "is the column of the labels");
}

} // namespace

std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& file,
                                              const LabelledColumns& columns, const bool header,
                                              const int limit) {
  check(columns);
  if (std::filesystem::is_directory(file))
    throw UsageError(file.string(), "is a folder, not a table of texts and labels",
                     "name a tab-separated file, or choose a model for images with --model");
  std::vector<LabelledText> texts;
  for (const TsvLine& line : read_tsv(file)) {
    if (header && line.number == 1) continue;
    if (limit > 0 && texts.size() >= static_cast<std::size_t>(limit)) break;
    LabelledText& read = texts.emplace_back();
    read.text = tsv_cell(line, columns.text, file, "--column");
    if (columns.pair > 0) read.pair = tsv_cell(line, columns.pair, file, "--pair-column");
    read.label = tsv_cell(line, columns.label, file, "--label-column");
    if (read.label.empty())
      throw Error(file.string(), fmt::format("line {} has no label in column {}", line.number, columns.label),
                  "write one, or choose another --label-column");
  }
  if (texts.empty())
    throw Error(file.string(), header ? "holds no example below its header" : "holds no example",
                "a line is a text and its label, separated by a tab");
  return texts;
}

std::vector<double> label_numbers(const std::vector<LabelledText>& texts, const std::filesystem::path& file) {
  std::vector<double> numbers;
  for (const LabelledText& text : texts) {
    const auto number = decimal_number(text.label);
    if (!number)
      throw Error(file.string(),
                  fmt::format("the label \"{}\" of \"{}\" is no number", text.label, text.text),
                  "name the column of the numbers with --label-column; --header skips the first line");
    numbers.push_back(*number);
  }
  return numbers;
}

} // namespace hydrascope

namespace hydrascope::training {

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
      if (entry.is_regular_file() && has_picture_ending(entry.path())) files.push_back(entry.path());
    if (files.empty())
      throw Error(class_folder.string(), "holds no pictures",
                  "PNG, JPEG, BMP, GIF, PSD, TGA and PNM are read");
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
  for (const TsvLine& line : read_tsv(file)) {
    if (line.cells.size() < 2)
      throw BrokenFile(file.string(), fmt::format("no tab in line \"{}\"", line.cells.front()),
                       "a line is: folder, tab, label");
    labels[line.cells[0]] = line.cells[1].substr(0, line.cells[1].find(','));
  }
  return labels;
}

std::int64_t matching_class(const std::vector<AdapterInfo::Class>& classes, const std::string& folder) {
  // A name that is not UTF-8 is stored with U+FFFD.
  const std::string name = read_from_json(folder);
  const auto index = [&](const auto& member) -> std::int64_t {
    const auto found = std::ranges::find(classes, name, member);
    return found == classes.end() ? -1 : found - classes.begin();
  };
  const std::int64_t by_id = index(&AdapterInfo::Class::id);
  return by_id >= 0 ? by_id : index(&AdapterInfo::Class::label);
}

void check_distinct(const std::vector<std::string>& classes) {
  std::set<std::string> stored;
  for (const std::string& name : classes)
    if (const auto [same, is_new] = stored.insert(read_from_json(name)); !is_new)
      throw UsageError("--classes", fmt::format("two classes have the name \"{}\"", *same),
                       "rename one; bytes that are not UTF-8 do not tell names apart");
}

ClassPlan plan_classes(const std::vector<std::string>& asked, const std::vector<std::string>& available,
                       const std::vector<AdapterInfo::Class>& known,
                       const std::map<std::string, std::string>& labels) {
  ClassPlan plan;
  const auto& folders = asked.empty() ? available : asked;
  check_distinct(folders);
  std::vector<std::string> matched, unmatched;
  for (const auto& folder : folders)
    (matching_class(known, folder) >= 0 ? matched : unmatched).push_back(folder);
  if (matched.empty()) {
    plan.new_head = true;
    plan.folders = folders;
    if (plan.folders.size() < 2)
      throw UsageError("--classes", "a classifier needs two classes or more", "name more");
    for (std::size_t i = 0; i < folders.size(); ++i) {
      const auto label = labels.find(folders[i]);
      plan.classes.push_back({folders[i], label == labels.end() ? folders[i] : label->second});
      plan.targets.push_back(static_cast<std::int64_t>(i));
    }
    return plan;
  }
  if (!unmatched.empty() && !asked.empty())
    throw UsageError("--classes",
                     fmt::format("the model's classifier does not know {}", fmt::join(unmatched, ", ")),
                     "leave them out, or start from the bare model with --no-adapter");
  if (!unmatched.empty())
    plan.note = fmt::format("{} of {} folders are left out: the model's classifier does not know them",
                            unmatched.size(), folders.size());
  plan.folders = std::move(matched);
  plan.classes = known;
  for (const auto& folder : plan.folders) plan.targets.push_back(matching_class(known, folder));
  return plan;
}

ClassPlan plan_number(const std::vector<AdapterInfo::Class>& known) {
  ClassPlan plan;
  plan.new_head = known.size() != 1;
  plan.classes = plan.new_head ? std::vector<AdapterInfo::Class>{{"", "number"}} : known;
  return plan;
}

namespace {

constexpr const char* table_form = "a line is image, class, x0, y0, x1, y1, separated by tabs, in pixels";

enum Column : std::uint8_t { image, class_name, x0, y0, x1, y1, column_count };
constexpr std::array<const char*, column_count> column_names = {"image", "class", "x0", "y0", "x1", "y1"};

std::array<int, column_count> find_columns(const TsvLine& header, const std::filesystem::path& file) {
  std::array<int, column_count> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::ranges::find(header.cells, column_names.at(i));
    if (found == header.cells.end())
      throw Error(file.string(), fmt::format("its header names no column {}", column_names.at(i)),
                  table_form);
    columns.at(i) = static_cast<int>(found - header.cells.begin()) + 1;
  }
  return columns;
}

} // namespace

std::vector<ObjectBox> read_boxes(const std::filesystem::path& file) {
  const std::vector<TsvLine> lines = read_tsv(file);
  if (lines.size() < 2) throw Error(file.string(), "holds no box", table_form);
  const auto columns = find_columns(lines.front(), file);
  std::vector<ObjectBox> boxes;
  for (auto line = lines.begin() + 1; line != lines.end(); ++line) {
    const auto cell = [&](const Column which) -> const std::string& {
      const auto column = static_cast<std::size_t>(columns.at(which));
      if (column > line->cells.size())
        throw Error(file.string(), fmt::format("line {} has no {}", line->number, column_names.at(which)),
                    table_form);
      return line->cells[column - 1];
    };
    const auto pixel = [&](const Column which) {
      const std::string& text = cell(which);
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        throw Error(
            file.string(),
            fmt::format("line {}: {} is \"{}\", not a number", line->number, column_names.at(which), text),
            table_form);
      return value;
    };
    const PixelBox box{pixel(x0), pixel(y0), pixel(x1), pixel(y1)};
    if (box.x1 < box.x0 || box.y1 < box.y0)
      throw Error(file.string(), fmt::format("line {}: the box ends before it begins", line->number),
                  "x0, y0 is its first pixel, x1, y1 its last one");
    boxes.push_back({cell(image), cell(class_name), box});
  }
  return boxes;
}

bool names_picture(const std::string& image, const std::filesystem::path& picture) {
  const std::string path = picture.generic_string();
  if (!path.ends_with(image)) return false;
  return path.size() == image.size() || path[path.size() - image.size() - 1] == '/';
}

} // namespace hydrascope::training
