#include "app/panels/heat_map_view.h"

#include <algorithm>
#include <cmath>

#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float label_size = 11;
constexpr float smallest_label_step = 10; // pixels a row must have for its label to be written
constexpr float smallest_column_width = 30;

void outline_row(ImDrawList* list, ImVec2 from, ImVec2 to, int row, float cell_height, ImU32 colour) {
  const float y = from.y + static_cast<float>(row) * cell_height;
  list->AddRect({from.x - 1, y - 1}, {to.x + 1, y + std::max(cell_height, 2.0f) + 1}, colour, 0.0f);
}

} // namespace

void HeatMapView::set(HeatMapPanel panel) {
  map_.set(panel.values, panel.scale);
  panel_ = std::move(panel);
}

HeatMapView::Input HeatMapView::draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size,
                                     const Marks& marks, float opacity) {
  Input input;
  if (map_.empty() || size.x < 8 || size.y < 8) return input;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const int rows = map_.rows(), columns = map_.columns();
  ImGui::PushFont(graphics.fonts().mono, label_size);

  // Labels take room only where every one of them can be written.
  float label_width = 0;
  const bool labels = static_cast<int>(panel_.y_ticks.size()) == rows &&
                      size.y / static_cast<float>(rows) >= smallest_label_step;
  if (labels) {
    for (const std::string& tick : panel_.y_ticks) {
      label_width = std::max(label_width, ImGui::CalcTextSize(tick.c_str()).x + 6);
    }
    label_width = std::min(label_width, size.x * 0.32f);
  }
  const bool square = rows == columns;
  float width = size.x - label_width, height = size.y;
  const bool column_labels = static_cast<int>(panel_.x_ticks.size()) == columns &&
                             width / static_cast<float>(columns) >= smallest_column_width;
  if (column_labels) height -= label_size + 4;
  if (square) width = height = std::min(width, height);
  const ImVec2 at{from.x + label_width, from.y};
  const ImVec2 to{at.x + width, at.y + height};
  const float cell_width = width / static_cast<float>(columns),
              cell_height = height / static_cast<float>(rows);
  if (labels) {
    for (int row = 0; row < rows; ++row) {
      const std::string text =
          fitted(with_known_glyphs(panel_.y_ticks[static_cast<std::size_t>(row)]), label_width - 5);
      const float text_width = ImGui::CalcTextSize(text.c_str()).x;
      const bool marked = marks.row == row || marks.hovered_row == row;
      list->AddText(
          {at.x - 5 - text_width, at.y + (static_cast<float>(row) + 0.5f) * cell_height - label_size / 2 - 1},
          theme::packed(marked ? theme::text : theme::quiet, opacity), text.c_str());
    }
  }
  if (column_labels) {
    for (int column = 0; column < columns; ++column) {
      const std::string text =
          fitted(with_known_glyphs(panel_.x_ticks[static_cast<std::size_t>(column)]), cell_width - 4);
      const float middle = at.x + (static_cast<float>(column) + 0.5f) * cell_width;
      list->AddText({middle - ImGui::CalcTextSize(text.c_str()).x / 2, to.y + 2},
                    theme::packed(marks.hovered_column == column ? theme::text : theme::quiet, opacity),
                    text.c_str());
    }
  }
  map_.draw(graphics, list, at, to, opacity);
  input.from = at;
  input.to = to;
  if (marks.row && *marks.row < rows)
    outline_row(list, at, to, *marks.row, cell_height, theme::packed(theme::accent));
  if (marks.hovered_row && *marks.hovered_row < rows) {
    outline_row(list, at, to, *marks.hovered_row, cell_height, theme::packed(theme::text, 0.5f));
  }

  ImGui::SetCursorScreenPos(at);
  const bool clicked = ImGui::InvisibleButton(id, {width, height});
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const Cell cell{std::clamp(static_cast<int>((mouse.y - at.y) / cell_height), 0, rows - 1),
                    std::clamp(static_cast<int>((mouse.x - at.x) / cell_width), 0, columns - 1)};
    input.hovered = cell;
    if (clicked) input.clicked = cell;
    const ImVec2 corner{at.x + static_cast<float>(cell.column) * cell_width,
                        at.y + static_cast<float>(cell.row) * cell_height};
    list->AddRect({corner.x - 1, corner.y - 1},
                  {corner.x + std::max(cell_width, 2.0f) + 1, corner.y + std::max(cell_height, 2.0f) + 1},
                  theme::packed(theme::text));
  }
  ImGui::PopFont();
  return input;
}

} // namespace hydrascope::app
