#include "app/shell/layout.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/document/arrangement.h"
#include "app/document/layouts.h"

namespace hydrascope::app {

namespace {

using Place = std::pair<const char*, ImGuiID>;

ImGuiID split(ImGuiID& rest, ImGuiDir side, float share) {
  ImGuiID part = 0;
  ImGui::DockBuilderSplitNode(rest, side, share, &part, &rest);
  return part;
}

// The share of the controls: wide enough for the kernel grid in the smallest window, and more of it in a
// large one.
float left_share(ImVec2 size) { return std::clamp(332.0f / size.x, 0.19f, 0.305f); }

std::vector<Place> explore_places(ImGuiID rest, ImVec2 size) {
  const float left_part = left_share(size);
  const float right_part = std::clamp(540.0f / (size.x * (1 - left_part)), 0.3f, 0.49f);
  ImGuiID kernels = split(rest, ImGuiDir_Left, left_part);
  ImGuiID weights = split(rest, ImGuiDir_Right, right_part);
  // Leaves enough height for the whole kernel grid.
  const ImGuiID input = split(kernels, ImGuiDir_Up, std::clamp((size.y - 680.0f) / size.y, 0.275f, 0.40f));
  const ImGuiID predictions = split(rest, ImGuiDir_Down, 0.20f);
  const ImGuiID layers = split(rest, ImGuiDir_Down, std::clamp(100.0f / (0.8f * size.y), 0.15f, 0.2f));
  ImGuiID tables = split(weights, ImGuiDir_Down, 0.62f);
  const ImGuiID timing = split(tables, ImGuiDir_Down, 0.48f);
  return {{"input", input},
          {"kernels", kernels},
          {"focus", rest},
          {"training", rest},
          {"own_kernel", rest},
          {"layers", layers},
          {"norms", layers},
          {"predictions", predictions},
          {"folder", predictions},
          {"loss", predictions},
          {"write", predictions},
          // As many beside each other as have room for their names at 1280 points.
          {"weights", weights},
          {"tokens", weights},
          {"vectors", weights},
          {"values", weights},
          {"similar", weights},
          {"entropy", tables},
          {"kl", tables},
          {"monotonicity", tables},
          {"distance", tables},
          {"sink", tables},
          {"deletion", timing},
          {"timing", timing},
          {"scaling", timing},
          {"roofline", timing},
          {"change", timing},
          {nullptr, tables}};
}

std::vector<Place> compare_places(ImGuiID rest, ImVec2 size) {
  ImGuiID kernels = split(rest, ImGuiDir_Left, left_share(size));
  const ImGuiID layers = split(rest, ImGuiDir_Down, 0.2f);
  ImGuiID weights = split(rest, ImGuiDir_Down, 0.5f);
  ImGuiID tables = split(weights, ImGuiDir_Right, 0.36f);
  const ImGuiID predictions = split(tables, ImGuiDir_Down, 0.42f);
  return {{"kernels", kernels}, {"input", kernels}, {"predictions", predictions}, {"focus", rest},
          {"own_kernel", rest}, {"layers", layers}, {"weights", weights},         {"entropy", tables},
          {"kl", tables},       {nullptr, tables}};
}

// The text above with what is expected of it, below what is written and the weights.
std::vector<Place> text_places(ImGuiID rest, ImVec2 size) {
  ImGuiID kernels = split(rest, ImGuiDir_Left, left_share(size));
  const ImGuiID input = split(kernels, ImGuiDir_Up, 0.36f);
  ImGuiID lower = split(rest, ImGuiDir_Down, 0.58f);
  const ImGuiID predictions = split(rest, ImGuiDir_Right, 0.32f);
  const ImGuiID matrices = split(lower, ImGuiDir_Right, 0.46f);
  return {{"input", input},  {"kernels", kernels},  {"loss", rest},
          {"focus", rest},   {"own_kernel", rest},  {"predictions", predictions},
          {"write", lower},  {"tokens", lower},     {"vectors", lower},
          {"values", lower}, {"weights", matrices}, {"layers", matrices},
          {nullptr, lower}};
}

std::vector<Place> measure_places(ImGuiID rest, ImVec2 size) {
  ImGuiID kernels = split(rest, ImGuiDir_Left, left_share(size));
  const ImGuiID predictions = split(kernels, ImGuiDir_Down, 0.25f);
  ImGuiID tables = split(rest, ImGuiDir_Down, 0.46f);
  const ImGuiID divergence = split(tables, ImGuiDir_Right, 0.5f);
  const ImGuiID timing = split(rest, ImGuiDir_Left, 0.5f);
  return {{"kernels", kernels}, {"input", kernels}, {"predictions", predictions}, {"timing", timing},
          {"scaling", rest},    {"roofline", rest}, {"own_kernel", rest},         {"entropy", tables},
          {"kl", divergence},   {"change", tables}, {"monotonicity", divergence}, {nullptr, tables}};
}

// The training above, the weights below.
std::vector<Place> train_places(ImGuiID rest, ImVec2 size) {
  ImGuiID kernels = split(rest, ImGuiDir_Left, left_share(size));
  const ImGuiID predictions = split(kernels, ImGuiDir_Down, 0.25f);
  ImGuiID weights = split(rest, ImGuiDir_Down, 0.46f);
  const ImGuiID tables = split(weights, ImGuiDir_Right, 0.3f);
  return {{"kernels", kernels}, {"input", kernels},   {"predictions", predictions},
          {"training", rest},   {"own_kernel", rest}, {"weights", weights},
          {"focus", weights},   {"tokens", weights},  {"kl", tables},
          {"entropy", tables},  {nullptr, tables}};
}

// The panels in front according to an arrangement. Dear ImGui does not restore this for windows drawn before,
// and a window drawn for the first time comes to the front.
std::vector<std::string> selected_panels(std::string_view arrangement,
                                         const std::vector<std::string>& panels) {
  std::vector<std::string> selected;
  for (const std::string& panel : panels) {
    // As Dear ImGui makes it of the window, which may not have been drawn yet.
    const ImGuiID tab = ImHashStr("#TAB", 0, ImHashStr(("###" + panel).c_str()));
    if (arrangement.find(fmt::format("Selected=0x{:08X}", tab)) != std::string_view::npos)
      selected.push_back(panel);
  }
  return selected;
}

void dock(const std::string& panel, ImGuiID node) {
  ImGui::DockBuilderDockWindow(("###" + panel).c_str(), node);
}

} // namespace

void build_layout(std::string_view layout, ImGuiID dock_space, ImVec2 size,
                  const std::vector<std::string>& panels) {
  ImGui::DockBuilderRemoveNode(dock_space);
  ImGui::DockBuilderAddNode(dock_space,
                            static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_DockSpace) |
                                static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoWindowMenuButton));
  ImGui::DockBuilderSetNodeSize(dock_space, size);
  const std::vector<Place> places = layout == "compare"   ? compare_places(dock_space, size)
                                    : layout == "text"    ? text_places(dock_space, size)
                                    : layout == "measure" ? measure_places(dock_space, size)
                                    : layout == "train"   ? train_places(dock_space, size)
                                                          : explore_places(dock_space, size);
  const ImGuiID others = places.back().second;
  for (const std::string& panel : panels) {
    const auto place = std::ranges::find_if(
        places, [&](const Place& each) { return each.first != nullptr && panel == each.first; });
    dock(panel, place == places.end() ? others : place->second);
  }
  ImGui::DockBuilderFinish(dock_space);
}

std::vector<std::string> front_panels(std::string_view layout, const bool decoder) {
  if (layout == "compare") return {"kernels"};
  if (layout == "text" && decoder) return {"loss", "write", "weights"};
  if (layout == "text") return {"focus", "tokens", "weights"};
  if (layout == "measure") return {"scaling", "timing"};
  if (layout == "train") return {"weights", "kl", "training"};
  return {"timing", "entropy", "focus"};
}

std::string present_arrangement() {
  std::size_t size = 0;
  const char* text = ImGui::SaveIniSettingsToMemory(&size);
  return {text, size};
}

void save_layout(Editor& editor, const std::string& name) {
  const auto& closed = editor.document().closed_panels;
  SavedLayout layout{
      .name = name, .arrangement = present_arrangement(), .closed = {closed.begin(), closed.end()}};
  editor.change_settings([&](Settings& settings) {
    std::erase_if(settings.layouts, [&](const SavedLayout& each) { return each.name == name; });
    settings.layouts.push_back(std::move(layout));
  });
  // Nothing else changes: what is on the screen is what was saved.
  editor.change("Layout " + name,
                [&](Document& document) { document.layout = std::string(own_layout_prefix) + name; });
}

void Arrangement::show_training(Editor& editor) const {
  constexpr std::string_view train = "train";
  const std::string& layout = editor.document().layout;
  const bool own = layout.starts_with(own_layout_prefix);
  if (layout == train || (own && editor.status().panels_in_front.contains("training"))) return;
  std::vector<PanelName> panels;
  for (const std::string& panel : panels_) panels.push_back({.id = panel, .title = {}});
  choose_layout(editor, std::string(train), closed_in_layout(train, panels, editor.settings()));
}

void Arrangement::restore(const std::string& arrangement) {
  ImGui::LoadIniSettingsFromMemory(arrangement.data(), arrangement.size());
  focused_.clear();
  to_front_ = selected_panels(arrangement, panels_);
  build_ = false;
  built_for_ = {};
}

bool Arrangement::restore_saved(const std::string& arrangement) {
  const std::optional<std::string> sound = sound_arrangement(arrangement);
  if (sound) restore(*sound);
  return sound.has_value();
}

bool Arrangement::take_focus(const std::string& panel) {
  if (focused_ != panel) return false;
  focused_.clear();
  return true;
}

void Arrangement::before_frame(Editor& editor) {
  if (!to_restore_ && !to_front_.empty()) {
    focused_ = to_front_.front();
    to_front_.erase(to_front_.begin());
  }
  const std::string& layout = editor.document().layout;
  if (const auto given = std::exchange(to_restore_, std::nullopt)) {
    if (!shown_.empty()) last_arrangements_[shown_] = present_arrangement();
    const std::vector<std::string> later = std::exchange(to_front_, {});
    restore(*given);
    to_front_.insert(to_front_.end(), later.begin(), later.end());
    shown_ = layout;
    return;
  }
  const bool reset = std::exchange(reset_, false);
  if (layout == shown_ && !reset) return;
  const bool own = layout.starts_with(own_layout_prefix);
  const SavedLayout* saved =
      own ? find_layout(editor.settings(), layout.substr(own_layout_prefix.size())) : nullptr;
  if (shown_.empty() && editor.settings().last && editor.settings().last->name == layout) {
    build_ = !restore_saved(editor.settings().last->arrangement);
  } else if (const auto last = last_arrangements_.find(layout);
             !reset && layout != shown_ && last != last_arrangements_.end()) {
    last_arrangements_[shown_] = present_arrangement();
    restore(last->second);
  } else {
    if (!shown_.empty() && layout != shown_) last_arrangements_[shown_] = present_arrangement();
    build_ = saved == nullptr || !restore_saved(saved->arrangement);
  }
  shown_ = layout;
}

std::vector<Arrangement::Part> Arrangement::parts_of(ImGuiID id) {
  std::vector<Part> parts;
  std::vector<const ImGuiDockNode*> rest{ImGui::DockBuilderGetNode(id)};
  while (!rest.empty()) {
    const ImGuiDockNode* const node = rest.back();
    rest.pop_back();
    if (node == nullptr) continue;
    Part part{.size = node->Size, .panels = {}};
    for (const ImGuiWindow* window : node->Windows) part.panels.push_back(window->ID);
    parts.push_back(std::move(part));
    rest.insert(rest.end(), std::begin(node->ChildNodes), std::end(node->ChildNodes));
  }
  return parts;
}

bool Arrangement::needs_rebuild(ImGuiID dock_space, ImVec2 size, Editor& editor) {
  constexpr int frames_to_settle = 3; // until the parts have their sizes, and until the user lets the edge go
  if (built_for_.x == 0) return false;
  if (size.x != size_.x || size.y != size_.y) frames_ = 0;
  size_ = size;
  // The menu and the status bar take their room in the second frame: not worth a layout of its own.
  constexpr float bars = 80;
  if (built_parts_.empty() && size.x == built_for_.x && size.y > built_for_.y - bars) built_for_ = size;
  const bool other = size.x != built_for_.x || size.y != built_for_.y;
  if (++frames_ < frames_to_settle || !to_front_.empty()) {
    if (other || built_parts_.empty()) editor.draw_soon();
    return false;
  }
  if (other) return true;
  std::vector<Part> parts = parts_of(dock_space);
  const auto same = [](const Part& left, const Part& right) {
    return left.size.x == right.size.x && left.size.y == right.size.y && left.panels == right.panels;
  };
  if (built_parts_.empty())
    built_parts_ = std::move(parts);
  else if (!std::ranges::equal(parts, built_parts_, same))
    built_for_ = {}; // moved by the user
  return false;
}

bool Arrangement::arrange(ImGuiID dock_space, ImVec2 size, Editor& editor) {
  const bool present = !build_ && ImGui::DockBuilderGetNode(dock_space) != nullptr;
  if (present && !needs_rebuild(dock_space, size, editor)) return false;
  // Before the layout has settled no tab is selected.
  const bool settled = present && !built_parts_.empty() && to_front_.empty();
  const std::vector<std::string> later = std::exchange(to_front_, {});
  to_front_ = settled ? selected_panels(present_arrangement(), panels_)
                      : front_panels(editor.document().layout, is_decoder(editor.document().scene()));
  to_front_.insert(to_front_.end(), later.begin(), later.end());
  build_layout(editor.document().layout, dock_space, size, panels_);
  build_ = false;
  built_for_ = size_ = size;
  built_parts_.clear();
  frames_ = 0;
  return true;
}

} // namespace hydrascope::app
