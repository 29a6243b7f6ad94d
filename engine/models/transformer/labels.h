// The names of a classifier's outputs. Plain types.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hydrascope {

// One label per class: the configuration's if it names them all, else the ImageNet-1k names for 1,000 classes
// where assets/imagenet1k.txt is, else `class n`.
std::vector<std::string> class_labels(const std::vector<std::string>& configured, std::size_t classes);

} // namespace hydrascope
