// The mapping from the sub-folders of an image folder to a classifier's classes. Plain header.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/models/model_info.h"

namespace hydrascope::training {

// The class whose id, else whose label, is the sub-folder's name; −1 if there is none.
std::int64_t matching_class(const std::vector<AdapterInfo::Class>& classes, const std::string& folder);

struct ClassPlan {
  std::vector<std::string> folders;        // to train on
  std::vector<AdapterInfo::Class> classes; // of the classifier after training
  std::vector<std::int64_t> targets;       // folder → class
  bool new_head = false;                   // a new classifier is made, for these folders
  std::string note;                        // the folders left out, for the user; empty if none
};

// `asked`: --classes, may be empty; `available`: the existing folders; `known`: the classifier's classes,
// empty without a classifier; `labels`: folder → label. If the classifier knows some of the folders, only
// those are used. Throws UsageError if --classes names some that it does not know, listing them.
ClassPlan plan_classes(const std::vector<std::string>& asked, const std::vector<std::string>& available,
                       const std::vector<AdapterInfo::Class>& known,
                       const std::map<std::string, std::string>& labels);

} // namespace hydrascope::training
