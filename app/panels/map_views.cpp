#include "app/panels/map_views.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/theme.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float label_size = 11;
constexpr float smallest_label_step = 10; // pixels between the labels of rows
constexpr float most_cells_a_label = 3;   // cells smaller than that many to a label have none
constexpr float label_share = 0.32f;      // of the width or height, at most

// Position and size of the cells of the visible part of a matrix.
struct Placement {
  ImVec2 at, to;               // the visible rectangle
  ImVec2 whole_from, whole_to; // of the whole matrix
  float cell_width = 0, cell_height = 0;
  int first_row = 0, last_row = 0; // in view, last excluded
  int first_column = 0, last_column = 0;

  float y_of(int row) const { return whole_from.y + (static_cast<float>(row) + 0.5f) * cell_height; }
  float x_of(int column) const { return whole_from.x + (static_cast<float>(column) + 0.5f) * cell_width; }
};

Placement place(ImVec2 at, ImVec2 size, const MatrixAxes& axes, const MapZoom& zoom) {
  Placement placed;
  placed.at = at;
  placed.to = {at.x + size.x, at.y + size.y};
  const auto part = static_cast<float>(zoom.size);
  const ImVec2 whole{size.x / part, size.y / part};
  placed.whole_from = {at.x - static_cast<float>(zoom.x) * whole.x,
                       at.y - static_cast<float>(zoom.y) * whole.y};
  placed.whole_to = {placed.whole_from.x + whole.x, placed.whole_from.y + whole.y};
  placed.cell_width = whole.x / static_cast<float>(axes.columns);
  placed.cell_height = whole.y / static_cast<float>(axes.rows);
  const auto range = [](double first, double share, int count, int& from, int& to) {
    from = std::clamp(static_cast<int>(std::floor(first * count)), 0, count);
    to = std::clamp(static_cast<int>(std::ceil((first + share) * count - 1e-6)), 0, count);
  };
  range(zoom.y, zoom.size, axes.rows, placed.first_row, placed.last_row);
  range(zoom.x, zoom.size, axes.columns, placed.first_column, placed.last_column);
  return placed;
}

bool has_labels(const std::vector<std::string>* ticks, int count) {
  return ticks != nullptr && static_cast<int>(ticks->size()) == count;
}

void outline_row(ImDrawList* list, const Placement& placed, int row, ImU32 colour) {
  const float y = placed.whole_from.y + static_cast<float>(row) * placed.cell_height;
  list->AddRect({placed.at.x - 1, y - 1}, {placed.to.x + 1, y + std::max(placed.cell_height, 2.0f) + 1},
                colour, 0.0f);
}

// The names below the columns: beside each other where all fit, else turned, read upwards.
struct ColumnLabels {
  float height = 0; // 0: there are none
  bool turned = false;
};

float widest(const std::vector<std::string>& ticks, int first, int last) {
  float width = 0;
  for (int i = first; i < last; ++i)
    width = std::max(width, ImGui::CalcTextSize(ticks[static_cast<std::size_t>(i)].c_str()).x);
  return width;
}

bool has_room(float cell) { return cell * most_cells_a_label >= smallest_label_step; }

ColumnLabels column_labels_of(const MatrixAxes& axes, const Placement& placed, float height) {
  if (!has_labels(axes.x_ticks, axes.columns)) return {};
  const float width = widest(*axes.x_ticks, placed.first_column, placed.last_column);
  if (width <= placed.cell_width - 4) return {.height = label_size + 4};
  constexpr float least_height = 90; // of the matrix, for turned names
  if (!has_room(placed.cell_width) || height < least_height) return {};
  return {.height = std::min(width, height * label_share) + 5, .turned = true};
}

// Calls write(cell, colour) for the cells that get a name: those pointed at and chosen first, then every one,
// or every second or third, that is not too near to these.
template <class Write>
void for_labelled(int first, int last, float cell, std::optional<int> hovered, std::optional<int> chosen,
                  float least_step, const Write& write) {
  const auto near = [&](int one, std::optional<int> other) {
    return other && static_cast<float>(std::abs(one - *other)) * cell < least_step;
  };
  const auto in_view = [&](std::optional<int> one) { return one && *one >= first && *one < last; };
  if (in_view(hovered)) write(*hovered, theme::text);
  if (in_view(chosen) && !near(*chosen, hovered)) write(*chosen, theme::text);
  const int step = std::max(1, static_cast<int>(std::ceil(least_step / std::max(cell, 1.0f))));
  for (int each = first; each < last; ++each)
    if (each % step == 0 && !near(each, hovered) && !near(each, chosen)) write(each, theme::quiet);
}

void draw_labels(ImDrawList* list, const MatrixAxes& axes, const Placement& placed, const MatrixMarks& marks,
                 float label_width, const ColumnLabels& columns, float opacity) {
  const auto text_of = [](const std::vector<std::string>& ticks, int index, float room) {
    return fitted(ticks[static_cast<std::size_t>(index)], room);
  };
  if (label_width > 0) {
    const auto write = [&](int row, const ImVec4& colour) {
      const float y = placed.y_of(row);
      if (y < placed.at.y || y > placed.to.y) return; // cut by the edge
      right_aligned(list, placed.at.x - 5, y - label_size / 2 - 1, theme::packed(colour, opacity),
                    text_of(*axes.y_ticks, row, label_width - 5));
    };
    for_labelled(placed.first_row, placed.last_row, placed.cell_height, marks.hovered_row, marks.row,
                 smallest_label_step, write);
  }
  if (columns.height <= 0) return;
  const auto write = [&](int column, const ImVec4& colour) {
    const float x = placed.x_of(column);
    if (x < placed.at.x || x > placed.to.x) return;
    const std::string text =
        text_of(*axes.x_ticks, column, columns.turned ? columns.height - 5 : placed.cell_width - 4);
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    if (columns.turned) { // ends at the matrix
      turned_text(list, {x - label_size / 2 - 1, placed.to.y + 4 + width}, theme::packed(colour, opacity),
                  text);
    } else {
      list->AddText({x - width / 2, placed.to.y + 2}, theme::packed(colour, opacity), text.c_str());
    }
  };
  for_labelled(placed.first_column, placed.last_column, placed.cell_width, marks.hovered_column, std::nullopt,
               columns.turned ? smallest_label_step : 0.0f, write);
}

} // namespace

double smallest_zoom(int rows) { return rows <= 8 ? 1.0 : 8.0 / rows; }

bool update_zoom(MapZoom& zoom, ImVec2 from, ImVec2 to, double smallest) {
  const ImGuiIO& io = ImGui::GetIO();
  const double width = static_cast<double>(to.x - from.x), height = static_cast<double>(to.y - from.y);
  const bool space = ImGui::IsKeyDown(ImGuiKey_Space) && !io.WantTextInput;
  const bool pans = ImGui::IsItemActive() && (ImGui::IsMouseDown(ImGuiMouseButton_Middle) ||
                                              (space && ImGui::IsMouseDown(ImGuiMouseButton_Left)));
  if (pans) {
    zoom.x -= static_cast<double>(io.MouseDelta.x) / width * zoom.size;
    zoom.y -= static_cast<double>(io.MouseDelta.y) / height * zoom.size;
  }
  if (ImGui::IsItemHovered()) {
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY); // otherwise the panel would scroll
    if (io.MouseWheel != 0) {
      const double x = std::clamp(static_cast<double>(io.MousePos.x - from.x) / width, 0.0, 1.0);
      const double y = std::clamp(static_cast<double>(io.MousePos.y - from.y) / height, 0.0, 1.0);
      const double size =
          std::clamp(zoom.size * std::pow(0.8, static_cast<double>(io.MouseWheel)), smallest, 1.0);
      zoom.x += x * (zoom.size - size);
      zoom.y += y * (zoom.size - size);
      zoom.size = size;
    }
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) zoom = {};
  }
  zoom.x = std::clamp(zoom.x, 0.0, 1 - zoom.size);
  zoom.y = std::clamp(zoom.y, 0.0, 1 - zoom.size);
  return pans || space;
}

MatrixInput draw_matrix(const char* id, Graphics& graphics, const MatrixAxes& axes, ImVec2 from, ImVec2 size,
                        const MatrixMarks& marks, float opacity, MapZoom* zoom,
                        const std::function<void(ImDrawList*, ImVec2, ImVec2)>& paint) {
  MatrixInput input;
  if (axes.rows <= 0 || axes.columns <= 0 || size.x < 8 || size.y < 8) return input;
  MapZoom whole;
  MapZoom& part = zoom == nullptr ? whole : *zoom;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(graphics.fonts().mono, label_size);

  // Labels take room only if a good part of them fits. Cells are square where rows and columns are as many.
  const bool square = axes.rows == axes.columns;
  const auto placed_in = [&](ImVec2 room) {
    if (square) room.x = room.y = std::min(room.x, room.y);
    return place(from, room, axes, part);
  };
  constexpr float least_named = 110;
  const bool named = size.x >= least_named && size.y >= least_named;
  const float name_left = named && !axes.y_label.empty() ? label_size + 3 : 0;
  const float name_below = named && !axes.x_label.empty() ? label_size + 3 : 0;
  ImVec2 room{size.x - name_left, size.y - name_below};
  Placement placed = placed_in(room);
  float label_width = 0;
  if (has_labels(axes.y_ticks, axes.rows) && has_room(placed.cell_height))
    label_width =
        std::min(widest(*axes.y_ticks, placed.first_row, placed.last_row) + 6, size.x * label_share);
  room.x -= label_width;
  const ColumnLabels column_labels = column_labels_of(axes, placed_in(room), room.y);
  room.y -= column_labels.height;
  if (square) room.x = room.y = std::min(room.x, room.y);
  if (!has_room(placed_in(room).cell_height)) label_width = 0; // their room stays empty
  const ImVec2 at{from.x + label_width + name_left, from.y};

  ImGui::SetCursorScreenPos(at);
  const bool clicked = ImGui::InvisibleButton(
      id, room,
      ImGuiButtonFlags_MouseButtonLeft | static_cast<ImGuiButtonFlags>(ImGuiButtonFlags_MouseButtonMiddle));
  const bool left = ImGui::IsMouseReleased(ImGuiMouseButton_Left);
  const bool hovered = ImGui::IsItemHovered();
  bool pans = false;
  if (zoom != nullptr) pans = update_zoom(part, at, {at.x + room.x, at.y + room.y}, smallest_zoom(axes.rows));
  placed = place(at, room, axes, part);
  draw_labels(list, axes, placed, marks, label_width, column_labels, opacity);
  const ImU32 quiet = theme::packed(theme::quiet, opacity);
  if (name_left > 0)
    turned_text(list, {from.x - 1, at.y + (room.y + ImGui::CalcTextSize(axes.y_label.c_str()).x) / 2}, quiet,
                axes.y_label);
  if (name_below > 0)
    list->AddText({at.x + (room.x - ImGui::CalcTextSize(axes.x_label.c_str()).x) / 2,
                   at.y + room.y + std::max(column_labels.height, 1.0f)},
                  quiet, axes.x_label.c_str());

  input.from = placed.at;
  input.to = placed.to;
  list->PushClipRect(placed.at, placed.to, true);
  paint(list, placed.whole_from, placed.whole_to);
  list->PopClipRect();
  list->PushClipRect({from.x - 2, placed.at.y - 2}, {placed.to.x + 2, placed.to.y + 2}, true);
  if (marks.row && *marks.row < axes.rows)
    outline_row(list, placed, *marks.row, theme::packed(theme::accent));
  if (marks.hovered_row && *marks.hovered_row < axes.rows)
    outline_row(list, placed, *marks.hovered_row, theme::packed(theme::text, 0.5f));
  if (hovered && !pans) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const Cell cell{
        std::clamp(static_cast<int>((mouse.y - placed.whole_from.y) / placed.cell_height), 0, axes.rows - 1),
        std::clamp(static_cast<int>((mouse.x - placed.whole_from.x) / placed.cell_width), 0,
                   axes.columns - 1)};
    input.hovered = cell;
    if (clicked && left) input.clicked = cell;
    const ImVec2 corner{placed.whole_from.x + static_cast<float>(cell.column) * placed.cell_width,
                        placed.whole_from.y + static_cast<float>(cell.row) * placed.cell_height};
    list->AddRect(
        {corner.x - 1, corner.y - 1},
        {corner.x + std::max(placed.cell_width, 2.0f) + 1, corner.y + std::max(placed.cell_height, 2.0f) + 1},
        theme::packed(theme::text));
  }
  list->PopClipRect();
  ImGui::PopFont();
  return input;
}

void HeatMapView::set(HeatMapPanel panel) {
  map_.set(panel.values, panel.scale, {.blank_missing = panel.missing != MissingCells::hatched});
  panel_ = std::move(panel);
}

HeatMapView::Input HeatMapView::draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size,
                                     const Marks& marks, float opacity, MapZoom* zoom) {
  if (map_.empty()) return {};
  const MatrixAxes axes{map_.rows(),     map_.columns(), &panel_.y_ticks,
                        &panel_.x_ticks, panel_.y_label, panel_.x_label};
  return draw_matrix(id, graphics, axes, from, size, marks, opacity, zoom,
                     [&](ImDrawList* list, ImVec2 at, ImVec2 to) {
                       // The light theme's ground is also the colour of 0.
                       if (panel_.missing == MissingCells::grey)
                         list->AddRectFilled(at, to, theme::packed(theme::raised));
                       map_.draw(graphics, list, at, to, opacity);
                     });
}

namespace {

constexpr float strip_label_width = 86;
constexpr float range_width = 46;

// The index of the value furthest from zero among [first, last).
std::size_t largest_of(const std::vector<double>& values, std::size_t first, std::size_t last) {
  std::size_t largest = first;
  for (std::size_t f = first; f < last; ++f) {
    if (std::abs(values[f]) > std::abs(values[largest])) largest = f;
  }
  return largest;
}

} // namespace

StripInput draw_strip(const char* id, Graphics& graphics, const FeatureStrip& strip, ImVec2 from, ImVec2 size,
                      std::optional<int> marked, const ImVec4& colour, float brightness) {
  StripInput input;
  const std::size_t count = strip.values.size();
  if (count == 0 || size.x < strip_label_width + range_width + 20 || size.y < 8) return input;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(graphics.fonts().mono, theme::size_small);
  const float line = ImGui::GetTextLineHeight();
  list->AddText({from.x, from.y + (size.y - line) / 2}, theme::packed(theme::text),
                fitted(with_known_glyphs(strip.name), strip_label_width - 6).c_str());
  ImGui::PopFont();

  const float width = size.x - strip_label_width - range_width;
  const float left = from.x + strip_label_width, right = left + width;
  double high = 0;
  bool negative = false;
  for (const double value : strip.values) {
    high = std::max(high, std::abs(value));
    negative = negative || value < 0;
  }
  const float zero = negative ? from.y + size.y / 2 : from.y + size.y - 1;
  const float reach = negative ? size.y / 2 - 1 : size.y - 2;
  list->AddRectFilled({left, from.y}, {right, from.y + size.y}, theme::packed(theme::raised, 0.5f));
  const auto bars = std::min(count, static_cast<std::size_t>(width));
  const float step = width / static_cast<float>(bars);
  const auto first_of = [&](std::size_t bar) { return bar * count / bars; };

  ImGui::SetCursorScreenPos({left, from.y});
  const bool clicked = ImGui::InvisibleButton(id, {width, size.y});
  if (ImGui::IsItemHovered()) {
    const auto bar = static_cast<std::size_t>(
        std::clamp((ImGui::GetMousePos().x - left) / step, 0.0f, static_cast<float>(bars - 1)));
    input.hovered = static_cast<int>(largest_of(strip.values, first_of(bar), first_of(bar + 1)));
    if (clicked) input.clicked = input.hovered;
  }
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const std::size_t feature = largest_of(strip.values, first_of(bar), first_of(bar + 1));
    const float x = left + step * static_cast<float>(bar);
    const bool lit = input.hovered == static_cast<int>(feature);
    if (lit || marked == static_cast<int>(feature)) {
      list->AddRectFilled({x, from.y}, {x + std::max(step, 1.0f), from.y + size.y},
                          theme::packed(lit ? theme::raised_more : theme::accent, lit ? 1.0f : 0.35f));
    }
    const double share = high > 0 ? strip.values[feature] / high : 0;
    const float end = zero - reach * static_cast<float>(share);
    const float gap = step > 5 ? 1.0f : 0.0f;
    list->AddRectFilled({x, std::min(zero, end)}, {x + step - gap, std::max(zero, end)},
                        theme::packed(colour, brightness));
  }
  list->AddLine({left, zero}, {right, zero}, theme::packed(theme::faint));
  ImGui::PushFont(graphics.fonts().mono, 11.0f);
  const std::string top = number_text(high, 2);
  list->AddText({right + 4, from.y - 1}, theme::packed(theme::quiet), top.c_str());
  if (negative && size.y > 26) {
    list->AddText({right + 4, from.y + size.y - ImGui::GetTextLineHeight()}, theme::packed(theme::quiet),
                  number_text(-high, 2).c_str());
  }
  ImGui::PopFont();
  return input;
}

void muted_cross(ImDrawList* list, ImVec2 from, ImVec2 to) {
  // A dark line under a bright one stands out from every colour.
  for (const auto& [colour, width] :
       {std::pair{theme::under_picture_ring, 3.0f}, {theme::over_picture, 1.2f}}) {
    const ImU32 ink = theme::packed(colour, 0.85f);
    list->AddLine({from.x + 1, from.y + 1}, {to.x - 1, to.y - 1}, ink, width);
    list->AddLine({from.x + 1, to.y - 1}, {to.x - 1, from.y + 1}, ink, width);
  }
}

void HeadMenu::set_hovered(std::optional<HeadIndex> head) {
  if (head)
    set(head->layer, head->head);
  else
    set(std::nullopt, std::nullopt);
}

void HeadMenu::set_hovered_layer(std::optional<int> layer) { set(layer, std::nullopt); }

void HeadMenu::set(std::optional<int> layer, std::optional<int> head) {
  if (!ImGui::IsMouseClicked(ImGuiMouseButton_Right) || !ImGui::IsWindowHovered()) return;
  layer_ = layer;
  head_ = head;
}

void HeadMenu::draw(Editor& editor) const {
  const Document& document = editor.document();
  if (layer_ && head_) {
    const HeadIndex head{*layer_, *head_};
    const bool muted = is_muted(document, head);
    const std::string label =
        fmt::format("{} head {} of layer {}###mute_head", muted ? "Unmute" : "Mute", *head_, *layer_);
    if (ImGui::MenuItem(label.c_str(), "M", false, why_not_muted(document).empty()))
      mute_head(editor, head, !muted);
  }
  if (layer_) {
    const bool muted = layer_is_muted(document, *layer_);
    const std::string label = fmt::format("{} layer {}###mute_layer", muted ? "Unmute" : "Mute", *layer_);
    if (ImGui::MenuItem(label.c_str(), "Shift+M", false, why_not_muted(document).empty()))
      mute_layer(editor, *layer_, !muted);
  }
  if (ImGui::MenuItem("Unmute everything", "Ctrl+Shift+M", false, !document.scene().muted_heads.empty()))
    unmute_all(editor);
  ImGui::Separator();
}

} // namespace hydrascope::app
