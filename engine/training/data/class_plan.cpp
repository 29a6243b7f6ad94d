#include "engine/training/data/class_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace hydrascope::training {

std::int64_t matching_class(const std::vector<AdapterInfo::Class>& classes, const std::string& folder) {
  const auto index = [&](const auto& member) -> std::int64_t {
    const auto found = std::ranges::find(classes, folder, member);
    return found == classes.end() ? -1 : found - classes.begin();
  };
  const std::int64_t by_id = index(&AdapterInfo::Class::id);
  return by_id >= 0 ? by_id : index(&AdapterInfo::Class::label);
}

ClassPlan plan_classes(const std::vector<std::string>& asked, const std::vector<std::string>& available,
                       const std::vector<AdapterInfo::Class>& known,
                       const std::map<std::string, std::string>& labels) {
  ClassPlan plan;
  const auto& folders = asked.empty() ? available : asked;
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

} // namespace hydrascope::training
