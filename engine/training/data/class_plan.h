// How the sub-folders of an image folder map onto a classifier's classes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope::training {

// The class that a sub-folder names: by id, else by label; −1 if there is none.
std::int64_t matching_class(const std::vector<AdapterInfo::Class>& classes, const std::string& folder);

struct ClassPlan {
  std::vector<std::string> folders;        // to train on
  std::vector<AdapterInfo::Class> classes; // of the classifier after training
  std::vector<std::int64_t> targets;       // folder → class
  bool new_head = false;                   // the classifier is made anew, for these folders
  std::string note;                        // what was left out; empty if nothing
};

// `asked`: --classes, may be empty; `available`: the folders there are; `known`: the classifier's classes
// (empty without one); `labels`: folder → label. Where the classifier knows some of the folders only those it
// knows are used, unless all were asked for by name, which is an error. Throws UsageError listing the folders
// it does not know.
ClassPlan plan_classes(const std::vector<std::string>& asked, const std::vector<std::string>& available,
                       const std::vector<AdapterInfo::Class>& known,
                       const std::map<std::string, std::string>& labels);

} // namespace hydrascope::training
