#include "app/document/examples.h"

#include <algorithm>

#include "app/document/edits.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

std::vector<std::filesystem::path> example_pictures() {
  std::vector<std::filesystem::path> pictures;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(examples_folder(), none)) {
    if (has_picture_ending(entry.path())) pictures.push_back(entry.path());
  }
  std::ranges::sort(pictures);
  return pictures;
}

const std::vector<std::string>& example_sentences() {
  static const std::vector<std::string> sentences = {
      "The cat that chased the mice was sleeping by the window.",
      "She poured water from the jug into the glass until it was full.",
      "The bank raised its rates after the river flooded the town.",
  };
  return sentences;
}

} // namespace hydrascope::app
