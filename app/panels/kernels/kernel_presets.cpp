#include "app/panels/kernels/kernel_presets.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr const char* fill_button = "Fill layers…###fill";

} // namespace

float KernelPresets::button_width() { return app::button_width(fill_button); }

void KernelPresets::draw(Editor& editor, bool folded) {
  if (!folded) return draw_controls(editor, ImGui::GetContentRegionAvail().x);
  if (ImGui::Button(fill_button)) ImGui::OpenPopup("presets");
  if (ImGui::IsItemHovered()) text_tooltip("Run one kernel in the first, the last or every other layer");
  if (!ImGui::BeginPopup("presets")) return;
  constexpr float width = 280;
  draw_controls(editor, width);
  ImGui::EndPopup();
}

std::vector<KernelSpec> KernelPresets::schedule_of(const Preset& preset, int layers) {
  std::vector<KernelSpec> kernels(static_cast<std::size_t>(layers));
  for (const int layer : replaced_layers(preset.strategy, preset.count, layers))
    kernels[static_cast<std::size_t>(layer)] = preset.kernel;
  return kernels;
}

// The preset that makes this schedule; nullopt without one, and for softmax in all layers.
std::optional<KernelPresets::Preset> KernelPresets::preset_of(const Schedule& schedule) {
  const auto replaced =
      std::ranges::find_if(schedule.layers, [](const KernelSpec& kernel) { return kernel != KernelSpec{}; });
  if (replaced == schedule.layers.end()) return std::nullopt;
  const int count = static_cast<int>(std::ranges::count(schedule.layers, *replaced));
  for (const Strategy strategy : {Strategy::back, Strategy::front, Strategy::interleave}) {
    const Preset preset{.kernel = *replaced, .strategy = strategy, .count = count};
    if (schedule_of(preset, static_cast<int>(schedule.layers.size())) == schedule.layers) return preset;
  }
  return std::nullopt;
}

// Shows the preset in force, or the user's choice, which Apply puts in force: a schedule made by hand is
// not lost by looking at the controls.
void KernelPresets::draw_controls(Editor& editor, float width) {
  const Schedule schedule = edited_schedule(editor.document());
  const int layers = static_cast<int>(schedule.layers.size());
  if (schedule.layers != schedule_) { // changed elsewhere
    schedule_ = schedule.layers;
    preset_ = preset_of(schedule);
  }
  Preset preset = preset_.value_or(Preset{});
  bool changed = false;
  const float label_width = ImGui::CalcTextSize("Fill layers with").x + 8;
  field_label("Fill layers with", label_width);
  const float room = width - label_width;
  const int picked = kernel_combo("##preset kernel", preset_ ? preset.kernel.name : "none", false, room,
                                  editor.list_search());
  if (picked >= 0) {
    preset.kernel = {.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}};
    changed = true;
  }
  field_label("Where", label_width);
  static constexpr std::array<const char*, 3> strategies = {"first", "last", "every other"};
  const int clicked = segmented("strategy", strategies, preset_ ? static_cast<int>(preset.strategy) : -1);
  if (ImGui::IsItemHovered())
    text_tooltip("Choose which layers get the kernel; every other: alternating from the last one");
  if (clicked >= 0) {
    preset.strategy = static_cast<Strategy>(clicked);
    changed = true;
  }
  field_label("Layers", label_width);
  constexpr const char* apply = "Apply###apply_preset";
  const float button = app::button_width(apply);
  ImGui::SetNextItemWidth(room - button - 8);
  preset.count = std::min(preset.count, layers);
  const auto count_text = [](int count) {
    return fmt::format("{} {}", count, count == 1 ? "layer" : "layers");
  };
  float widest = 0; // the slider keeps its width as its value changes
  for (int each = 0; each <= layers; ++each)
    widest = std::max(widest, ImGui::CalcTextSize(count_text(each).c_str()).x);
  ImGui::BeginDisabled(!preset_ && !changed);
  changed |= value_slider("##k", &preset.count, 0, layers, count_text(preset.count), widest);
  ImGui::EndDisabled();
  if (changed) preset_ = preset;
  ImGui::SameLine(0, 8);
  const bool in_force = !preset_ || schedule_of(*preset_, layers) == schedule.layers;
  ImGui::BeginDisabled(in_force);
  if (ImGui::Button(apply)) {
    apply_preset(editor, preset.strategy, preset.count, preset.kernel);
    schedule_ = edited_schedule(editor.document()).layers;
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    text_tooltip(in_force ? "Choose a kernel and its layers"
                          : "Set these layers to the kernel and the others to softmax");
}

} // namespace hydrascope::app
