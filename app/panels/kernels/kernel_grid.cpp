#include "app/panels/kernels/kernel_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "app/document/edits.h"
#include "app/panels/kernels/parameter_marks.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float least_row = 14, most_row = 44;
constexpr float number_width = 22;                // a layer's number
constexpr float wide_name = 98, narrow_name = 86; // a layer's kernel, at the end of its row; if rows scroll
constexpr float family_height = 18;
constexpr float name_size = 12, cost_size = 10; // of the turned text
constexpr float cost_height = 16;

const char* cost_text(const KernelInfo& info) {
  return info.complexity.find("N²") == std::string::npos ? "N" : "N²";
}

template <typename T>
const T& note_at(const std::vector<T>& notes, std::size_t index) {
  static const T none{};
  return index < notes.size() ? notes[index] : none;
}

float text_width_at(const Graphics& graphics, float size, const char* text) {
  ImGui::PushFont(graphics.fonts().regular, size);
  const float width = ImGui::CalcTextSize(text).x;
  ImGui::PopFont();
  return width;
}

std::string folded_name(KernelFamily family) { return fmt::format("+ {}", family_name(family)); }

// Of the families' names and the turned names of the kernels that are shown.
float header_height(const Graphics& graphics, const std::vector<GridColumns::Family>& families) {
  float longest = 0;
  for (const GridColumns::Family& family : families) {
    if (!family.open)
      longest = std::max(longest, text_width_at(graphics, name_size, folded_name(family.family).c_str()) + 4);
    for (std::size_t i = 0; family.open && i < family.kernels.size(); ++i) {
      const char* const name = kernel_infos()[family.kernels[i]].name.c_str();
      longest = std::max(longest, cost_height + text_width_at(graphics, name_size, name));
    }
  }
  return family_height + longest + 6;
}

// Runs a kernel in a layer, or says why it cannot.
void run_kernel(Editor& editor, const GridNotes& notes, int layer, std::size_t kernel) {
  const KernelInfo& info = kernel_infos()[kernel];
  if (const std::string& obstacle = note_at(notes.kernels, kernel); obstacle.empty()) {
    set_layer_kernel(editor, layer, KernelSpec{.name = info.name, .parameters = {}});
  } else {
    editor.say(Severity::note, fmt::format("{} cannot run in layer {}: {}", info.name, layer, obstacle));
  }
}

} // namespace

struct KernelGrid::Frame {
  Editor& editor;
  const Graphics& graphics;
  const GridNotes& notes;
  Schedule schedule; // at the start of the frame: a click may replace it
  std::vector<GridColumns::Family> families;
  ImDrawList* list = nullptr;
  ImVec2 origin;               // of the first row and column, after scrolling
  float left = 0, top = 0;     // of the parts that do not scroll
  float right = 0, bottom = 0; // of what is in view
  float header_height = 0, row_height = 0, columns_width = 0, name_width = wide_name;
  std::optional<GridPointer> pointer;

  float columns_left() const { return origin.x + number_width; }
  float rows_top() const { return top + header_height; }
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
    std::string text = fmt::format("{} {}: {}", verb, layer, kernel(layer).label());
    if (const std::string word = badge(layer); !word.empty()) text += ", " + word;
    if (!reason(layer).empty()) text += "\n" + reason(layer);
    text_tooltip(text);
  }
};

void KernelGrid::draw_search(Editor& editor, const GridNotes& notes, float width) {
  std::string text = columns_.searched();
  ImGui::SetNextItemWidth(width);
  const bool entered =
      ImGui::InputTextWithHint("##search", "Find kernel", &text, ImGuiInputTextFlags_EnterReturnsTrue);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive())
    text_tooltip(
        "Show only the kernels with these letters in their name or family.\n"
        "Enter: run the one that is found in the selected layer");
  columns_.search(text);
  if (!entered) return;
  std::vector<std::size_t> found;
  for (const GridColumns::Family& family : columns_.place(0, {}))
    found.insert(found.end(), family.kernels.begin(), family.kernels.end());
  const auto exact = std::ranges::find(
      found, text, [](std::size_t kernel) -> const std::string& { return kernel_infos()[kernel].name; });
  if (exact != found.end()) found = {*exact};
  if (found.size() != 1) return;
  run_kernel(editor, notes, editor.document().scene().layer, found.front());
}

std::optional<GridPointer> KernelGrid::draw(Editor& editor, const Graphics& graphics, const GridNotes& notes,
                                            float most_height) {
  Frame frame{.editor = editor,
              .graphics = graphics,
              .notes = notes,
              .schedule = edited_schedule(editor.document()),
              .families = {},
              .origin = {},
              .pointer = {}};
  std::array<float, kernel_families> labels{};
  for (int family = 0; family < kernel_families; ++family)
    labels[static_cast<std::size_t>(family)] =
        text_width_at(graphics, name_size, family_name(static_cast<KernelFamily>(family))) + 4;
  const auto layers = static_cast<int>(frame.schedule.layers.size());
  const auto place_columns = [&](float within) {
    frame.families = columns_.place(within - number_width - frame.name_width, labels);
    frame.columns_width = std::max(GridColumns::width_of(frame.families), 40.0f);
    frame.header_height = header_height(graphics, frame.families);
  };
  float room = ImGui::GetContentRegionAvail().x;
  place_columns(room);
  const bool has_legend = !is_low_window();
  ImGui::PushFont(graphics.fonts().regular, name_size);
  if (has_legend) most_height -= ImGui::GetTextLineHeight() + ImGui::GetStyle().ItemSpacing.y;
  ImGui::PopFont();
  if (frame.header_height + static_cast<float>(layers) * least_row > most_height) { // the rows will scroll
    room -= ImGui::GetStyle().ScrollbarSize;
    frame.name_width = narrow_name;
    place_columns(room);
  }
  const float width = number_width + frame.columns_width + frame.name_width;
  const float bar = width > room ? ImGui::GetStyle().ScrollbarSize : 0;
  frame.row_height = std::floor(std::clamp(
      (most_height - bar - frame.header_height) / static_cast<float>(layers), least_row, most_row));
  const float rows_height = frame.row_height * static_cast<float>(layers);
  // Whole rows: none is cut below the header or at the end.
  const float rows_in_view =
      std::clamp(std::floor((most_height - bar - frame.header_height) / frame.row_height), 4.0f,
                 std::max(4.0f, static_cast<float>(layers)));
  const float height = frame.header_height + std::min(rows_in_view * frame.row_height, rows_height) + bar;
  ImGui::SetNextWindowContentSize({width, frame.header_height + rows_height});
  if (!ImGui::BeginChild("grid", {0, height}, 0, ImGuiWindowFlags_HorizontalScrollbar)) {
    ImGui::EndChild();
    return std::nullopt;
  }
  frame.list = ImGui::GetWindowDrawList();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  frame.left = start.x + ImGui::GetScrollX();
  frame.top = start.y + ImGui::GetScrollY();
  frame.right = frame.left + ImGui::GetContentRegionAvail().x;
  frame.bottom = ImGui::GetWindowPos().y + ImGui::GetWindowHeight() - bar;
  const float scrolled = std::round(ImGui::GetScrollY() / frame.row_height) * frame.row_height;
  frame.origin = {start.x, frame.top + frame.header_height - scrolled};
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  draw_header(frame);
  ImGui::PushClipRect({frame.left, frame.rows_top()}, {frame.right + 4, frame.bottom}, true);
  for (int layer = 0; layer < layers; ++layer) draw_row(frame, layer);
  ImGui::PopClipRect();
  ImGui::PopFont();
  ImGui::SetCursorScreenPos(start);
  ImGui::Dummy({width, frame.header_height + rows_height});
  scroll_to_layer(frame);
  ImGui::EndChild();
  if (has_legend) draw_mark_legend(graphics, name_size);
  return frame.pointer;
}

// The families with their fold marks, and the turned names of the kernels.
void KernelGrid::draw_header(Frame& frame) {
  ImGui::PushClipRect({frame.left + number_width, frame.top}, {frame.right + 4, frame.rows_top()}, true);
  ImGui::PushFont(frame.graphics.fonts().regular, name_size);
  ImGui::PushID("families");
  for (const GridColumns::Family& family : frame.families) {
    const ImVec2 at{frame.columns_left() + family.x, frame.top};
    const char* const name = family_name(family.family);
    const float height = family.open ? family_height : frame.header_height;
    ImGui::SetCursorScreenPos(at);
    if (ImGui::InvisibleButton(name, {family.width, height})) columns_.toggle(family.family, family.open);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered)
      text_tooltip(fmt::format("{} {}, {} kernel{}: {}", family.open ? "Fold" : "Open", name,
                               family.kernels.size(), family.kernels.size() == 1 ? "" : "s",
                               family_summary(family.family)));
    const ImU32 colour = theme::packed(hovered ? theme::accent : theme::text);
    frame.list->AddRectFilled(
        {at.x + 1, at.y}, {at.x + family.width - 1, at.y + (family.open ? family_height - 2 : height - 2)},
        theme::packed(theme::raised, hovered ? 1.0f : 0.6f), 2.0f);
    if (family.open) {
      frame.list->AddText({at.x + (family.width - ImGui::CalcTextSize(name).x) / 2, at.y + 1}, colour, name);
    } else {
      turned_text(frame.list, {at.x - 1, at.y + height - 6}, colour, folded_name(family.family));
    }
  }
  ImGui::PopID();
  ImGui::PushID("names");
  for (const GridColumns::Family& family : frame.families)
    if (family.open) draw_names(frame, family);
  ImGui::PopID();
  ImGui::PopFont();
  ImGui::PopClipRect();
}

void KernelGrid::draw_names(Frame& frame, const GridColumns::Family& family) {
  const float line = ImGui::GetTextLineHeight();
  for (std::size_t place = 0; place < family.kernels.size(); ++place) {
    const std::size_t kernel = family.kernels[place];
    const KernelInfo& info = kernel_infos()[kernel];
    const float x = frame.columns_left() + family.centre_of(place);
    ImGui::SetCursorScreenPos({x - family.column / 2, frame.top + family_height});
    if (ImGui::InvisibleButton(info.name.c_str(), {family.column, frame.header_height - family_height}))
      run_kernel(frame.editor, frame.notes, frame.editor.document().scene().layer, kernel);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) frame.pointer = GridPointer{.kernel = kernel, .layer = std::nullopt};
    const bool usable = note_at(frame.notes.kernels, kernel).empty();
    const ImVec2 at{x - line / 2, frame.rows_top() - 3};
    ImGui::PushFont(nullptr, cost_size);
    turned_text(frame.list, {x - ImGui::GetTextLineHeight() / 2, at.y}, theme::packed(theme::quiet),
                cost_text(info));
    ImGui::PopFont();
    turned_text(frame.list, {at.x, at.y - cost_height},
                theme::packed(hovered  ? theme::accent
                              : usable ? theme::text
                                       : theme::faint),
                info.name);
  }
}

void KernelGrid::draw_row(Frame& frame, int layer) {
  const float y = frame.origin.y + static_cast<float>(layer) * frame.row_height;
  const bool selected = frame.selected(layer);
  if (selected)
    frame.list->AddRectFilled({frame.left, y}, {frame.right, y + frame.row_height},
                              theme::packed(theme::accent, 0.16f), 2.0f);
  ImGui::PushID(layer);
  // Columns that are scrolled away go below the layers' numbers.
  ImGui::PushClipRect({frame.left + number_width, frame.rows_top()}, {frame.right + 4, frame.bottom}, true);
  for (const GridColumns::Family& family : frame.families) {
    const float left = frame.columns_left() + family.x;
    ImGui::SetCursorScreenPos({left, y});
    if (!family.open) {
      draw_folded(frame, layer, family);
      continue;
    }
    for (std::size_t place = 0; place < family.kernels.size(); ++place) {
      ImGui::SetCursorScreenPos({frame.columns_left() + family.centre_of(place) - family.column / 2, y});
      draw_cell(frame, layer, family.kernels[place], {family.column, frame.row_height});
    }
  }
  ImGui::PopClipRect();
  draw_row_ends(frame, layer);
  ImGui::PopID();
}

// The layer's number, and the name of its kernel: what it runs is seen even if its column is not.
void KernelGrid::draw_row_ends(const Frame& frame, int layer) {
  const float y = frame.origin.y + static_cast<float>(layer) * frame.row_height;
  const float middle = y + frame.row_height / 2;
  const bool selected = frame.selected(layer);
  ImGui::SetCursorScreenPos({frame.left, y});
  if (ImGui::InvisibleButton("layer", {number_width, frame.row_height})) select_layer(frame.editor, layer);
  if (ImGui::IsItemHovered()) frame.layer_tooltip(layer, "Select layer");
  ImGui::PushFont(frame.graphics.fonts().mono, name_size);
  frame.list->AddText({frame.left + 6, middle - ImGui::GetTextLineHeight() / 2},
                      theme::packed(selected ? theme::text : theme::quiet),
                      fmt::format("{:>2}", layer).c_str());
  ImGui::PopFont();

  const float left = frame.columns_left() + frame.columns_width + 6;
  const KernelSpec& kernel = frame.kernel(layer);
  kernel_square(frame.list, {left + 5, middle}, 9, kernel.name, frame.reason(layer).empty() ? 1.0f : 0.35f);
  constexpr float before = 13; // the square
  const float size = std::min(theme::size_small, frame.row_height - 1);
  const float room = frame.name_width - 6 - before - 2;
  constexpr float least_size = 9; // the registry's names are never cut, those of maps may be
  const std::string name = kernel.label();
  const float wide = text_width_at(frame.graphics, size, name.c_str());
  ImGui::PushFont(frame.graphics.fonts().regular,
                  wide > room ? std::max(size * room / wide, least_size) : size);
  frame.list->AddText({left + before, middle - ImGui::GetTextLineHeight() / 2},
                      theme::packed(!frame.badge(layer).empty() ? theme::amber
                                    : selected                  ? theme::text
                                                                : theme::quiet),
                      fitted(name, room + 1).c_str());
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({left, y});
  if (ImGui::InvisibleButton("name", {frame.name_width - 6, frame.row_height}))
    select_layer(frame.editor, layer);
  if (ImGui::IsItemHovered()) frame.layer_tooltip(layer, "Layer");
}

// The layer's kernel, if it is one of a folded family's.
void KernelGrid::draw_folded(Frame& frame, int layer, const GridColumns::Family& family) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const KernelSpec& kernel = frame.kernel(layer);
  const KernelInfo& info = kernel_info(kernel);
  if (info.family == family.family)
    kernel_square(frame.list, {at.x + family.width / 2, at.y + frame.row_height / 2},
                  std::min(family.width, frame.row_height) - 3, kernel.name);
  ImGui::PushID("family");
  if (ImGui::InvisibleButton(family_name(family.family), {family.width, frame.row_height}))
    columns_.toggle(family.family, false);
  ImGui::PopID();
  if (ImGui::IsItemHovered()) text_tooltip(fmt::format("Open {}", family_name(family.family)));
}

void KernelGrid::draw_cell(Frame& frame, int layer, std::size_t kernel, ImVec2 size) {
  const KernelInfo& info = kernel_infos()[kernel];
  const bool on = info.name == frame.kernel(layer).name;
  const std::string& reason = on ? frame.reason(layer) : note_at(frame.notes.kernels, kernel);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 centre{at.x + size.x / 2, at.y + size.y / 2};
  if (ImGui::InvisibleButton(info.name.c_str(), size)) run_kernel(frame.editor, frame.notes, layer, kernel);
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) frame.pointer = GridPointer{.kernel = kernel, .layer = layer};
  const float side = std::min({size.x, size.y, 16.0f}) - 2;
  if (on) {
    kernel_square(frame.list, centre, side, info.name, reason.empty() ? 1.0f : 0.35f);
  } else if (hovered && reason.empty()) {
    kernel_square(frame.list, centre, side, info.name, 0.45f);
  } else if (reason.empty()) {
    draw_mark(frame.list, centre, std::clamp(side * 0.25f, 2.6f, 3.6f),
              note_at(note_at(frame.notes.marks, static_cast<std::size_t>(layer)), kernel));
  } else {
    frame.list->AddLine({centre.x - 3, centre.y}, {centre.x + 3, centre.y}, theme::packed(theme::line), 1.0f);
  }
}

// The selected row stays in view, also where the grid's height changes: with the parameters below it, and
// with the window.
void KernelGrid::scroll_to_layer(const Frame& frame) {
  const InView now{frame.editor.document().scene().layer, frame.bottom - frame.rows_top(), frame.row_height};
  if (now == in_view_) return;
  in_view_ = now;
  const float top = static_cast<float>(now.layer) * now.row; // below the header
  if (top >= ImGui::GetScrollY() && top + now.row <= ImGui::GetScrollY() + now.room) return;
  ImGui::SetScrollY(std::max(0.0f, std::round((top - (now.room - now.row) / 2) / now.row) * now.row));
}

} // namespace hydrascope::app
