// The rows of a flops table: input sizes × schedules. Plain types.
#pragma once

#include <string>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/measure/flops.h"

namespace hydrascope {

// Height and width of an image in pixels, or the tokens of a text.
struct InputSize {
  int height = 0, width = 0;
  int tokens = 0;
};

struct FlopsRow {
  InputSize size;
  std::string schedule; // as written: "hydra-cosine", "back:2=hydra-cosine"
  std::string summary;  // "softmax ×10, hydra-cosine ×2"
  Flops flops;
};

// What a schedule replaces, in the words of the command line; the base kernel where it is not softmax.
std::string written_schedule(const ScheduleText& text);

// Images: the rows of the Hydra paper's tables 2 to 4, as far as the layers go. Text, for which no paper has
// such a table: one kernel of each cost in all layers.
std::vector<ScheduleText> default_schedules(const Architecture& architecture);

// The side lengths of the Hydra paper's tables that the patch size divides, the architecture's own first if
// it is another; a text model's 128 tokens and the length of its position table.
std::vector<InputSize> default_sizes(const Architecture& architecture);

// A row for each size and schedule, sizes outermost. Throws as parse_schedule and flops_of_….
std::vector<FlopsRow> flops_table(const Architecture& architecture, const std::vector<InputSize>& sizes,
                                  const std::vector<ScheduleText>& schedules);

} // namespace hydrascope
