// Points of a study, some of which run on trained layers and some on the model's own weights. Plain header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/commands/figure/options.h"
#include "engine/figures/figure.h"
#include "engine/models/model_info.h"

namespace hydrascope::app {

struct StudyPoint {
  double x = 0, y = 0;
  std::optional<bool> trained = {};       // trained_for(); nullopt: no layer is replaced
  std::vector<AdapterInfo> adapters = {}; // applied, in order
};

struct StudySeries {
  std::string name;
  Colour colour;
  std::vector<StudyPoint> points;
};

// Sets `trained` and `adapters` of a point that ran by this schedule on these adapters.
void set_adapters(StudyPoint& point, const Schedule& schedule, const std::vector<AdapterInfo>& applied);

// The automatic choice, by --untrained and --trained. Throws UsageError for both, for either with other
// options of adapters, and for a folder that holds none.
AdapterChoice study_adapters(const FigureOptions& options);

// A line for each series or, where it has both, one for its trained points (joined marks) and one for the
// others (rings joined by dashes); points without a replaced layer are part of both.
std::vector<LinesPanel::Line> lines_of(const std::vector<StudySeries>& all);

// What marks and rings mean in these series; empty if no layer is replaced at any point.
std::string marks_text(const std::vector<StudySeries>& all);

// The adapters of all points, each once.
std::vector<AdapterInfo> adapters_of(const std::vector<StudySeries>& all);

// Puts "points", [{line, x, trained, adapters [name]}], in the place of a provenance's schedule; `trained` is
// null where no layer is replaced.
std::string with_points(const std::string& provenance, const std::vector<StudySeries>& all);

} // namespace hydrascope::app
