#include "app/panels/kernels/kernel_grid.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float grid_row = 21;
constexpr float grid_column = 19;
constexpr float sticky_width = 44; // a layer's number and its kernel's colour
constexpr float kernel_label_width = 96;
constexpr float slant = 1.15f; // of the headers, in radians above the horizontal

// Draws at `from`, inside the clip rectangle so that no glyph is dropped, then rotates the text to `at`.
void slanted_text(ImDrawList* list, ImVec2 from, ImVec2 at, ImU32 colour, const char* text) {
  const int first = list->VtxBuffer.Size;
  list->AddText(from, colour, text);
  ImGui::ShadeVertsTransformPos(list, first, list->VtxBuffer.Size, from, std::cos(slant), -std::sin(slant),
                                at);
}

// The height of the longest slanted name.
float slanted_height(const Graphics& graphics) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  float longest = 0;
  for (const KernelInfo& info : kernel_infos())
    longest = std::max(longest, ImGui::CalcTextSize(info.name.c_str()).x);
  ImGui::PopFont();
  return longest * std::sin(slant) + 20;
}

const std::string& note_at(const std::vector<std::string>& notes, std::size_t index) {
  static const std::string none;
  return index < notes.size() ? notes[index] : none;
}

} // namespace

struct KernelGrid::Frame {
  Editor& editor;
  const Graphics& graphics;
  const GridNotes& notes;
  Schedule schedule; // at the start of the frame: a click may replace it
  ImDrawList* list = nullptr;
  ImVec2 origin;  // of the whole grid, after scrolling
  float left = 0; // of the part that does not scroll sideways
  float header_height = 0, width = 0, height = 0;

  float column_x(std::size_t kernel) const {
    return origin.x + sticky_width + (static_cast<float>(kernel) + 0.5f) * grid_column;
  }
  const KernelSpec& kernel(int layer) const { return schedule.layers[static_cast<std::size_t>(layer)]; }
  bool selected(int layer) const { return layer == editor.document().scene().layer; }
  const std::string& reason(int layer) const {
    return note_at(notes.layers, static_cast<std::size_t>(layer));
  }
  // The problem of the layer in a word or two; may be empty.
  std::string badge(int layer) const {
    return reason(layer).empty() ? note_at(notes.badges, static_cast<std::size_t>(layer)) : "cannot run";
  }
  void layer_tooltip(int layer, const char* verb) const {
    std::string text = fmt::format("{} {}: {}", verb, layer, kernel(layer).text());
    if (const std::string word = badge(layer); !word.empty()) text += ", " + word;
    if (!reason(layer).empty()) text += "\n" + reason(layer);
    text_tooltip(text);
  }
};

void KernelGrid::draw(Editor& editor, const Graphics& graphics, const GridNotes& notes, float most_height) {
  const Schedule schedule = edited_schedule(editor.document());
  const auto layers = static_cast<float>(schedule.layers.size());
  Frame frame{.editor = editor, .graphics = graphics, .notes = notes, .schedule = schedule, .origin = {}};
  frame.header_height = slanted_height(graphics);
  frame.height = frame.header_height + layers * grid_row + 2;
  frame.width = sticky_width + static_cast<float>(kernel_infos().size()) * grid_column + kernel_label_width;
  // If there are more kernels than fit, the columns scroll below the layers' numbers and colours.
  const bool scrolls = frame.width > ImGui::GetContentRegionAvail().x;
  const float bar = scrolls ? ImGui::GetStyle().ScrollbarSize : 0;
  ImGui::SetNextWindowContentSize({frame.width, 0});
  const float height = std::min(std::max(grid_row * 4, most_height), frame.height + bar);
  if (!ImGui::BeginChild("grid", {0, height}, 0, ImGuiWindowFlags_HorizontalScrollbar)) {
    ImGui::EndChild();
    return;
  }
  frame.list = ImGui::GetWindowDrawList();
  frame.origin = ImGui::GetCursorScreenPos();
  frame.left = frame.origin.x + ImGui::GetScrollX();
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  draw_headers(frame);
  for (int layer = 0; layer < static_cast<int>(schedule.layers.size()); ++layer) draw_row(frame, layer);
  ImGui::PopFont();
  ImGui::SetCursorScreenPos(frame.origin);
  ImGui::Dummy({frame.width, frame.height - 2});
  scroll_to_kernel(frame);
  ImGui::EndChild();
}

void KernelGrid::draw_headers(const Frame& frame) {
  const auto& infos = kernel_infos();
  const float y = frame.origin.y + frame.header_height - 12;
  const float end = frame.list->GetClipRectMax().x;
  for (std::size_t kernel = 0; kernel < infos.size(); ++kernel) {
    const float x = frame.column_x(kernel);
    if (x - grid_column / 2 < frame.left + sticky_width) continue; // scrolled away
    const bool usable = note_at(frame.notes.kernels, kernel).empty();
    const std::string name = fitted(infos[kernel].name, (end - x) / std::cos(slant));
    slanted_text(frame.list, {frame.left, y}, {x - 5, y}, theme::packed(usable ? theme::quiet : theme::faint),
                 name.c_str());
  }
}

void KernelGrid::draw_row(const Frame& frame, int layer) {
  const auto& infos = kernel_infos();
  const ImVec2 at{frame.left, frame.origin.y + frame.header_height + static_cast<float>(layer) * grid_row};
  const float right = frame.column_x(infos.size()) - grid_column / 2 + kernel_label_width;
  const bool selected = frame.selected(layer);
  if (selected)
    frame.list->AddRectFilled(at, {right, at.y + grid_row}, theme::packed(theme::accent, 0.16f), 2.0f);
  ImGui::PushID(layer);
  const float middle = at.y + grid_row / 2;
  ImGui::SetCursorScreenPos(at);
  if (ImGui::InvisibleButton("layer", {sticky_width, grid_row})) select_layer(frame.editor, layer);
  if (ImGui::IsItemHovered()) frame.layer_tooltip(layer, "Select layer");
  for (std::size_t i = 0; i < infos.size(); ++i) {
    ImGui::SetCursorScreenPos({frame.column_x(i) - grid_column / 2, at.y});
    draw_cell(frame, layer, i);
  }
  // Covers cells that have been scrolled away.
  const ImVec2 sticky{at.x + sticky_width, at.y + grid_row};
  frame.list->AddRectFilled(at, sticky, theme::packed(theme::surface));
  if (selected) frame.list->AddRectFilled(at, sticky, theme::packed(theme::accent, 0.16f));
  ImGui::PushFont(frame.graphics.fonts().mono, theme::size_small);
  frame.list->AddText({at.x + 6, middle - ImGui::GetTextLineHeight() / 2},
                      theme::packed(selected ? theme::text : theme::quiet),
                      fmt::format("{:>2}", layer).c_str());
  ImGui::PopFont();
  kernel_square(frame.list, {at.x + 34, middle}, 9, frame.kernel(layer).name,
                frame.reason(layer).empty() ? 1.0f : 0.35f);
  ImGui::SetCursorScreenPos({right - kernel_label_width + 8, at.y});
  draw_row_name(frame, layer);
  ImGui::PopID();
}

void KernelGrid::draw_row_name(const Frame& frame, int layer) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string badge = frame.badge(layer);
  const std::string label = badge.empty() ? frame.kernel(layer).text() : badge;
  frame.list->AddText({at.x, at.y + (grid_row - ImGui::GetTextLineHeight()) / 2},
                      theme::packed(badge.empty() ? theme::quiet : theme::amber),
                      fitted(label, kernel_label_width - 10).c_str());
  if (ImGui::InvisibleButton("name", {kernel_label_width - 8, grid_row})) select_layer(frame.editor, layer);
  if (ImGui::IsItemHovered()) frame.layer_tooltip(layer, "Layer");
}

void KernelGrid::draw_cell(const Frame& frame, int layer, std::size_t kernel) {
  const KernelInfo& info = kernel_infos()[kernel];
  const KernelSpec& chosen = frame.kernel(layer);
  const bool on = info.name == chosen.name;
  const std::string& reason = on ? frame.reason(layer) : note_at(frame.notes.kernels, kernel);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 centre{at.x + grid_column / 2, at.y + grid_row / 2};
  if (ImGui::InvisibleButton(info.name.c_str(), {grid_column, grid_row})) {
    if (const std::string& obstacle = note_at(frame.notes.kernels, kernel); obstacle.empty()) {
      set_layer_kernel(frame.editor, layer, KernelSpec{.name = info.name, .parameters = {}});
    } else {
      frame.editor.say(Severity::note,
                       fmt::format("{} cannot run in layer {}: {}", info.name, layer, obstacle));
    }
  }
  const bool hovered = ImGui::IsItemHovered();
  if (on) {
    kernel_square(frame.list, centre, 13, info.name, reason.empty() ? 1.0f : 0.35f);
  } else if (hovered && reason.empty()) {
    kernel_square(frame.list, centre, 13, info.name, 0.45f);
  } else if (reason.empty()) {
    frame.list->AddRectFilled({centre.x - 2, centre.y - 2}, {centre.x + 2, centre.y + 2},
                              theme::packed(theme::faint), 1.0f);
  } else {
    frame.list->AddLine({centre.x - 3, centre.y}, {centre.x + 3, centre.y}, theme::packed(theme::line), 1.0f);
  }
  if (!hovered) return;
  std::string text = fmt::format("Layer {}: {}\n{}   {}", layer, on ? chosen.text() : info.name,
                                 info.definition, info.complexity);
  if (!reason.empty()) text += "\nCannot run here: " + reason;
  text_tooltip(text);
}

// Scrolls to a kernel that was chosen elsewhere.
void KernelGrid::scroll_to_kernel(const Frame& frame) {
  const auto layer = static_cast<std::size_t>(frame.editor.document().scene().layer);
  if (layer >= frame.schedule.layers.size() || shown_kernel_ == frame.schedule.layers[layer].name) return;
  shown_kernel_ = frame.schedule.layers[layer].name;
  const auto& infos = kernel_infos();
  const auto found = std::ranges::find(infos, shown_kernel_, &KernelInfo::name);
  const float x = static_cast<float>(found - infos.begin()) * grid_column;
  const float room = ImGui::GetWindowWidth() - sticky_width;
  if (x < ImGui::GetScrollX() || x + 2 * grid_column > ImGui::GetScrollX() + room)
    ImGui::SetScrollX(std::clamp(x - room / 2, 0.0f, frame.width));
}

} // namespace hydrascope::app
