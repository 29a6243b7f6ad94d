// Fills layers with a kernel: which kernel, where, how many layers.
#pragma once

#include <optional>
#include <vector>

#include "app/document/editor.h"
#include "app/document/edits.h"
#include "engine/attention/interface/schedule.h"

namespace hydrascope::app {

class KernelPresets {
public:
  // `folded`: one button that opens the controls.
  void draw(Editor& editor, bool folded);
  static float button_width();

private:
  struct Preset {
    KernelSpec kernel{.name = "hydra-cosine", .parameters = {}};
    Strategy strategy = Strategy::back;
    int count = 2;
  };
  static std::vector<KernelSpec> schedule_of(const Preset& preset, int layers);
  static std::optional<Preset> preset_of(const Schedule& schedule);
  void draw_controls(Editor& editor, float width);

  std::optional<Preset> preset_;     // in force or chosen; nullopt: neither
  std::vector<KernelSpec> schedule_; // with which preset_ was last compared
};

} // namespace hydrascope::app
