#include "app/commands/figure/study_points.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/models/checkpoint/adapter_files.h"

namespace hydrascope::app {
namespace {

using Style = LinesPanel::Style;

bool has(const StudySeries& series, const bool trained) {
  return std::ranges::any_of(series.points,
                             [&](const StudyPoint& point) { return point.trained == trained; });
}

bool any_has(const std::vector<StudySeries>& all, const bool trained) {
  return std::ranges::any_of(all, [&](const StudySeries& series) { return has(series, trained); });
}

// The points that are trained, or those that are not; nullopt: all.
LinesPanel::Line line_of(const StudySeries& series, const std::optional<bool> trained) {
  LinesPanel::Line line;
  line.name = series.name + (!trained ? "" : *trained ? ", trained" : ", untrained");
  line.colour = series.colour;
  line.style = trained == false ? Style::rings : Style::marked;
  for (const StudyPoint& point : series.points) {
    if (trained && point.trained && point.trained != trained) continue;
    line.x.push_back(point.x);
    line.y.push_back(point.y);
  }
  return line;
}

} // namespace

void set_adapters(StudyPoint& point, const Schedule& schedule, const std::vector<AdapterInfo>& applied) {
  point.trained = trained_for(schedule, applied);
  point.adapters = used_by(schedule, applied);
}

AdapterChoice study_adapters(const FigureOptions& options) {
  const CommonOptions& common = options.common;
  if (!options.untrained && options.trained.empty()) return {};
  const char* const option = options.untrained ? "--untrained" : "--trained";
  if (options.untrained && !options.trained.empty())
    throw UsageError("--untrained", "cannot be combined with --trained", "leave one of them out");
  if (common.no_adapter || !common.adapters.empty())
    throw UsageError(option, "cannot be combined with --adapter and --no-adapter", "leave one of them out");
  AdapterChoice choice;
  choice.tail_alone = options.untrained;
  choice.folder = options.trained;
  if (options.untrained) return choice;
  const auto is_adapter = [](const std::filesystem::path& file) {
    try {
      read_adapter_info(file);
      return true;
    } catch (const ForeignFile&) {
      return false;
    }
  };
  if (std::ranges::none_of(safetensors_in(choice.folder), is_adapter))
    throw UsageError("--trained " + options.trained, "is no folder that holds adapters",
                     "name one with files that distill or finetune has written");
  return choice;
}

std::vector<LinesPanel::Line> lines_of(const std::vector<StudySeries>& all) {
  std::vector<LinesPanel::Line> lines;
  for (const StudySeries& series : all) {
    for (const bool trained : {true, false})
      if (has(series, trained)) lines.push_back(line_of(series, trained));
    if (!has(series, true) && !has(series, false)) lines.push_back(line_of(series, std::nullopt));
  }
  return lines;
}

std::string marks_text(const std::vector<StudySeries>& all) {
  const std::string adapters = "adapters trained for the kernels of these layers";
  const bool untrained = any_has(all, false);
  if (any_has(all, true)) return "filled: with " + adapters + (untrained ? "; rings: without" : "");
  return untrained ? "without " + adapters : "";
}

std::vector<AdapterInfo> adapters_of(const std::vector<StudySeries>& all) {
  std::vector<AdapterInfo> adapters;
  for (const StudySeries& series : all)
    for (const StudyPoint& point : series.points)
      for (const AdapterInfo& adapter : point.adapters)
        if (std::ranges::find(adapters, adapter.hash, &AdapterInfo::hash) == adapters.end())
          adapters.push_back(adapter);
  return adapters;
}

std::string with_points(const std::string& provenance, const std::vector<StudySeries>& all) {
  using nlohmann::ordered_json;
  ordered_json json = ordered_json::parse(provenance), points = ordered_json::array();
  for (const StudySeries& series : all)
    for (const StudyPoint& point : series.points) {
      ordered_json names = ordered_json::array();
      for (const AdapterInfo& adapter : point.adapters) names.push_back(adapter.name);
      points.push_back({{"line", series.name},
                        {"x", point.x},
                        {"trained", point.trained ? ordered_json(*point.trained) : ordered_json()},
                        {"adapters", std::move(names)}});
    }
  json["adapters"] = ordered_json::array();
  for (const AdapterInfo& adapter : adapters_of(all))
    json["adapters"].push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  json["points"] = std::move(points);
  json.erase("schedule"); // each point has its own
  return text_of_json(json);
}

} // namespace hydrascope::app
