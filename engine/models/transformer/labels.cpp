#include "engine/models/transformer/labels.h"

#include <algorithm>
#include <sstream>

#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope {
namespace {

std::vector<std::string> imagenet_labels() {
  std::vector<std::string> labels;
  try {
    std::istringstream lines(read_text_file(assets_folder() / "imagenet1k.txt"));
    for (std::string line; std::getline(lines, line);) labels.push_back(line);
  } catch (const Error&) {
    return {}; // without the list the classes are numbered
  }
  return labels;
}

// transformers writes LABEL_0, LABEL_1, … where nobody gave names.
bool placeholders(const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [](const std::string& label) { return label.starts_with("LABEL_"); });
}

} // namespace

std::vector<std::string> class_labels(const std::vector<std::string>& configured, std::size_t classes) {
  const bool complete = configured.size() == classes;
  if (complete && !(classes == 1000 && placeholders(configured))) return configured;
  if (classes == 1000)
    if (std::vector<std::string> names = imagenet_labels(); names.size() == classes) return names;
  if (complete) return configured;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < classes; ++i) labels.push_back("class " + std::to_string(i));
  return labels;
}

} // namespace hydrascope
