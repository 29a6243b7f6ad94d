#include "engine/measure/flops_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hydrascope {
namespace {

constexpr int paper_sides[] = {224, 384, 448, 1024, 1280};
constexpr int paper_back[] = {2, 7, 8}; // layers replaced from the back: tables 2 (2, 8) and 3 (2, 7)

} // namespace

std::string written_schedule(const ScheduleText& text) {
  std::vector<std::string> parts;
  if (text.kernel != ScheduleText{}.kernel || (text.replace.empty() && text.layers.empty()))
    parts.push_back(text.kernel);
  parts.insert(parts.end(), text.replace.begin(), text.replace.end());
  parts.insert(parts.end(), text.layers.begin(), text.layers.end());
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<ScheduleText> default_schedules(const Architecture& architecture) {
  const auto everywhere = [](const char* kernel) { return ScheduleText{.kernel = kernel}; };
  std::vector<ScheduleText> schedules{everywhere("softmax")};
  if (architecture.input == InputKind::text) {
    for (const char* kernel : {"local-window", "linear-cosine", "hydra-cosine", "elu", "hedgehog", "t2r",
                               "cosformer", "performer", "taylor"})
      schedules.push_back(everywhere(kernel));
    return schedules;
  }
  for (const int layers : paper_back)
    if (layers < architecture.layers)
      schedules.push_back({.replace = {fmt::format("back:{}=hydra-cosine", layers)}});
  for (const char* kernel : {"hydra-cosine", "poly-nl", "local-window"})
    schedules.push_back(everywhere(kernel));
  return schedules;
}

std::vector<InputSize> default_sizes(const Architecture& architecture) {
  constexpr int sentence = 128;
  if (architecture.input == InputKind::text) {
    std::vector<InputSize> sizes{{.tokens = std::min(sentence, architecture.tokens)}};
    if (architecture.tokens > sentence) sizes.push_back({.tokens = architecture.tokens});
    return sizes;
  }
  const int height = architecture.image_height, width = architecture.image_width;
  std::vector<InputSize> sizes;
  const bool whole_patches = height % architecture.patch_height == 0 && width % architecture.patch_width == 0;
  if (whole_patches && (height != width || std::ranges::find(paper_sides, height) == std::end(paper_sides)))
    sizes.push_back({.height = height, .width = width});
  for (const int side : paper_sides)
    if (side % architecture.patch_height == 0 && side % architecture.patch_width == 0)
      sizes.push_back({.height = side, .width = side});
  if (sizes.empty()) { // a patch size that divides none: as many whole patches as the own size holds
    const auto whole = [](int side, int patch) { return std::max(patch, side - side % patch); };
    sizes.push_back({.height = whole(height, architecture.patch_height),
                     .width = whole(width, architecture.patch_width)});
  }
  return sizes;
}

std::vector<FlopsRow> flops_table(const Architecture& architecture, const std::vector<InputSize>& sizes,
                                  const std::vector<ScheduleText>& schedules) {
  std::vector<FlopsRow> rows;
  for (const InputSize& size : sizes) {
    for (const ScheduleText& text : schedules) {
      const Schedule schedule = parse_schedule(text, architecture.layers);
      Flops flops = architecture.input == InputKind::text
                        ? flops_of_text(architecture, size.tokens, schedule)
                        : flops_of_image(architecture, size.height, size.width, schedule);
      rows.push_back({size, written_schedule(text), schedule.summary(), std::move(flops)});
    }
  }
  return rows;
}

} // namespace hydrascope
