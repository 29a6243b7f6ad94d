#include "app/panels/heads/head_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/table_views.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float spread_row = 18;

} // namespace

void HeadTableView::set(HeatMapPanel table, std::vector<std::string> layer_kernels) {
  kernels = std::move(layer_kernels);
  table.decimals = 2;
  for (const std::string& kernel : kernels) table.row_colours.push_back(kernel_colour(kernel));
  panel = std::move(table);
  set_map();
}

void HeadTableView::set_map() {
  HeatMapPanel table = panel;
  table.note.clear(); // as the label, it is in the line above the table
  table.scale.label.clear();
  if (low_) { // the cells need the room of the axes' names
    table.x_label.clear();
    table.y_label.clear();
  }
  Figure figure;
  figure.panels.emplace_back(std::move(table));
  map_.set(std::move(figure));
}

void HeadTableView::share(double high) {
  HeatMapPanel table = panel;
  table.scale.high = high;
  table.scale.shared = true;
  table.row_colours.clear();
  set(std::move(table), kernels);
}

void HeadTableView::clear() {
  panel = {};
  kernels.clear();
  map_.clear();
}

std::optional<HeadIndex> HeadTableView::draw(Editor& editor, const Graphics& graphics, ImVec2 from,
                                             ImVec2 room, float brightness) {
  constexpr float low = 100;
  if ((room.y < low) != low_) {
    low_ = !low_;
    set_map();
  }
  ImGui::SetCursorScreenPos(from);
  const DrawnFigure::Input input = map_.draw("table", graphics, room, brightness);
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto place_of = [&](HeadIndex head) {
    return map_.place_of({0, {static_cast<std::size_t>(head.layer), static_cast<std::size_t>(head.head)}});
  };
  const auto layers = static_cast<int>(panel.values.extent(0)),
             heads = static_cast<int>(panel.values.extent(1));
  for (int layer = 0; layer < layers; ++layer) {
    for (int head = 0; head < heads; ++head) {
      if (of_layers || !is_muted(document, {layer, head})) continue;
      if (const auto place = place_of({layer, head})) muted_cross(list, place->from, place->to);
    }
  }
  // Between heads that share keys and those that share others.
  const int group = !of_layers && scene.model && scene.model->key_heads > 0 && heads == scene.model->heads
                        ? heads / scene.model->key_heads
                        : heads;
  for (int head = group; group > 1 && head < heads; head += group) {
    const auto top = place_of({0, head}), bottom = place_of({layers - 1, head});
    if (top && bottom)
      list->AddLine({top->from.x, top->from.y}, {bottom->from.x, bottom->to.y}, theme::packed(theme::surface),
                    2.0f);
  }
  const auto outline = [&](HeadIndex head, const ImVec4& colour) {
    if (const auto place = place_of(head))
      list->AddRect(place->from, place->to, theme::packed(colour), 0, 2.0f);
  };
  std::optional<HeadIndex> hovered;
  if (input.item) {
    hovered = HeadIndex{static_cast<int>(input.item->item.index), static_cast<int>(input.item->item.within)};
    outline(*hovered, theme::text);
    if (input.clicked && of_layers) select_layer(editor, hovered->layer);
    if (input.clicked && !of_layers) select_cell(editor, hovered->layer, hovered->head);
    const float value = panel.values.values.at(input.item->item.index * static_cast<std::size_t>(heads) +
                                               input.item->item.within);
    std::string shown = std::isnan(value) ? undefined : number_text(static_cast<double>(value));
    if (!std::isnan(value) && !unit.empty()) shown += " " + unit;
    const bool muted = !of_layers && is_muted(document, *hovered);
    const std::string shares =
        of_layers || !scene.model ? std::string() : shares_keys_text(*scene.model, hovered->head);
    text_tooltip(fmt::format("layer {}{}{}\n{}{}{}", hovered->layer,
                             of_layers ? "" : fmt::format(", head {}", hovered->head), muted ? ", muted" : "",
                             shown, shares.empty() ? "" : "\n", shares));
    if (!of_layers) editor.hover_head(*hovered);
  }
  if (of_layers) outline({scene.layer, 0}, theme::accent);
  if (scene.head.head && !of_layers) outline({scene.layer, *scene.head.head}, theme::accent);
  return hovered;
}

std::vector<KernelSpread> kernel_spreads(const HeatMapPanel& panel, const std::vector<std::string>& kernels) {
  std::vector<KernelSpread> spreads;
  for (std::size_t layer = 0; layer < kernels.size(); ++layer) {
    for (const float value : panel.values.slice(static_cast<std::int64_t>(layer))) {
      if (std::isnan(value)) continue;
      auto found = std::ranges::find(spreads, kernels[layer], &KernelSpread::kernel);
      if (found == spreads.end()) found = spreads.insert(spreads.end(), KernelSpread{kernels[layer], {}});
      found->values.push_back(value);
    }
  }
  for (KernelSpread& spread : spreads) std::ranges::sort(spread.values);
  return spreads;
}

std::optional<HeadIndex> HeadTableView::draw_with_spreads(Editor& editor, const Graphics& graphics,
                                                          ImVec2 from, ImVec2 room, float brightness) {
  const float height = spreads_height();
  constexpr float least_table = 120; // height of the table
  constexpr float least_width = 160; // width of the spreads with their names
  const bool both = height > 0 && room.y - height > least_table && room.x - colour_bar_width >= least_width;
  if (both) room.y -= height;
  const auto hovered = draw(editor, graphics, from, room, brightness);
  if (both) draw_spreads(graphics, {from.x, from.y + room.y}, room.x, brightness);
  return hovered;
}

float HeadTableView::spreads_height() const {
  return spreads.empty() ? 0 : 6 + spread_row * static_cast<float>(spreads.size());
}

void HeadTableView::draw_spreads(const Graphics& graphics, ImVec2 from, float width, float brightness) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr float name_width = 100, number_width = 36;
  const float left = from.x + name_width + number_width,
              room = width - name_width - number_width - colour_bar_width;
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  float y = from.y + 6;
  { // the ends of the axis, which is the same for all kernels
    const ImU32 quiet = theme::packed(theme::quiet);
    right_aligned(list, left - 5, y + 2, quiet, number_text(panel.scale.low));
    const std::string high = number_text(panel.scale.high) + (unit.empty() ? "" : " " + unit);
    list->AddText({left + room + 5, y + 2}, quiet, fitted(high, colour_bar_width - 5).c_str());
  }
  for (const KernelSpread& spread : spreads) {
    const ImU32 colour = theme::packed(theme::kernel(spread.kernel), brightness);
    const auto x_of = [&](float value) {
      return left + static_cast<float>(scale_position(panel.scale, static_cast<double>(value))) * room;
    };
    kernel_square(list, {from.x + 5, y + spread_row / 2}, 7, spread.kernel);
    list->AddText({from.x + 13, y + 2}, theme::packed(theme::quiet),
                  fitted(spread.kernel, name_width - 16).c_str());
    list->AddLine({left, y + spread_row / 2}, {left + room, y + spread_row / 2}, theme::packed(theme::line));
    for (const float value : spread.values)
      list->AddLine({x_of(value), y + 5}, {x_of(value), y + spread_row - 5}, colour, 1.0f);
    list->AddLine({x_of(spread.median()), y + 1}, {x_of(spread.median()), y + spread_row - 1}, colour, 3.0f);
    ImGui::SetCursorScreenPos({from.x, y});
    ImGui::PushID(spread.kernel.c_str());
    ImGui::InvisibleButton("spread", {width - colour_bar_width, spread_row});
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      const auto number = [](float value) { return number_text(static_cast<double>(value)); };
      text_tooltip(
          fmt::format("{}: {} heads, median {}, from {} to {} {}\neach line is a head, the thick one "
                      "the median; the axis is that of the colours",
                      spread.kernel, spread.values.size(), number(spread.median()),
                      number(spread.values.front()), number(spread.values.back()), unit));
    }
    y += spread_row;
  }
  ImGui::PopFont();
}

namespace {

// A comparison with softmax is trivial for a schedule of softmax alone: the compared kernel is shown instead,
// unless both sides are shown.
HeadTableKey table_key(const Document& document, bool one_of_two, const HeadQuantityInfo& quantity) {
  const bool forced = document.view.teacher_forced || (quantity.against_softmax && !one_of_two &&
                                                       edited_schedule(document).all_exact_softmax());
  return {quantity.name, forced ? std::optional(compared_kernel(document, 1)) : std::nullopt};
}

// The table of one side, or the difference.
struct HeadTableColumn {
  const HeadQuantityInfo* quantity = nullptr;
  HeadTableView view;
  std::string caption;
  std::string error; // why it is empty

  bool empty() const { return view.empty(); }
  void prepare(const Snapshot& snapshot);
  void subtract(const HeadTableColumn& a, const HeadTableColumn& b);
};

void HeadTableColumn::prepare(const Snapshot& snapshot) {
  const HeadTableKey key = table_key(*snapshot.document, snapshot.one_of_two, *quantity);
  const auto found = find(snapshot.shown(), key);
  if (!found) {
    if (snapshot.shown().any() == nullptr) view.clear();
    return; // keep the last table
  }
  error.clear();
  std::vector<std::string> kernels;
  for (const LayerRun& layer : found.run->layers)
    kernels.push_back(key.kernel ? key.kernel->name : layer.kernel.name);
  view.set(head_table_panel(*found.run, *found.result, snapshot.document->view.change_measure),
           std::move(kernels));
  view.spreads = kernel_spreads(view.panel, view.kernels);
  caption = key.kernel ? key.kernel->text() + ", softmax inputs" : "each layer's current kernel, this run";
}

void HeadTableColumn::subtract(const HeadTableColumn& a, const HeadTableColumn& b) {
  view.clear();
  error.clear();
  if (a.view.empty() || b.view.empty()) return;
  view.spreads.clear();
  caption = a.caption == b.caption ? a.caption : a.caption + " − " + b.caption;
  if (same_values(a.view.panel.values, b.view.panel.values)) {
    error = same_note;
    return;
  }
  try {
    HeatMapPanel difference = head_table_difference(a.view.panel, b.view.panel);
    difference.row_colours.clear();
    view.set(std::move(difference), {});
  } catch (const std::exception& reason) {
    error = error_message(reason);
  }
}

class HeadTablePanel final : public Panel {
public:
  HeadTablePanel(const HeadQuantityInfo& quantity, PanelServices services)
      : Panel(quantity.name, quantity.title, services),
        quantity_(quantity),
        columns_(empty_column(quantity)) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    request_sides(document, [&](const Document& side, bool one_of_two) {
      requested.then.add(table_key(side, one_of_two, quantity_));
    });
  }

  void prepare(const Snapshot& snapshot) override {
    columns_.prepare(snapshot);
    share_scale();
  }

  void draw() override {
    if (columns_.empty() && columns_.shown().front().error.empty()) {
      empty_notice(graphics(), quantity_.heading + " of every head, once the model has run.");
      return;
    }
    if (quantity_.parts.size() > 1) draw_parts();
    columns_.draw(graphics(), [&](HeadTableColumn& column) { draw_column(column); });
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    return columns_.figure([&](const HeadTableColumn& column) {
      Figure figure;
      figure.title = quantity_.heading;
      figure.subtitle = column.caption;
      figure.panels.emplace_back(column.view.panel);
      return figure;
    });
  }

private:
  // Side by side, A and B have one scale: equal colours are equal numbers.
  void share_scale() {
    const auto shown = columns_.shown();
    if (shown.size() < 2 || shown[0].view.empty() || shown[1].view.empty()) return;
    const double high = std::max(shown[0].view.panel.scale.high, shown[1].view.panel.scale.high);
    for (HeadTableColumn& column : shown.first(2))
      if (column.view.panel.scale.high != high || !column.view.panel.scale.shared) column.view.share(high);
  }

  static HeadTableColumn empty_column(const HeadQuantityInfo& quantity) {
    HeadTableColumn column;
    column.quantity = &quantity;
    column.view.unit = quantity.unit;
    column.view.undefined = quantity.undefined;
    column.view.of_layers = quantity.of_layers;
    return column;
  }

  void draw_column(HeadTableColumn& column) {
    if (column.view.empty()) {
      missing_notice(graphics(), column.error);
      return;
    }
    if (columns_.has_tabs()) { // a low panel has no line to spare
      ImGui::SameLine(0, 12);
      ImGui::AlignTextToFramePadding();
    }
    const std::string& label = column.view.panel.scale.label;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    std::vector<std::string> parts{label.empty() ? quantity_.heading : label};
    if (!column.view.panel.note.empty()) parts.push_back(column.view.panel.note);
    parts.push_back(column.caption);
    if (!quantity_.meaning.empty()) parts.push_back(quantity_.meaning);
    const float width = ImGui::GetContentRegionAvail().x;
    ellipsis_text(fitting_parts(parts, width), width, theme::quiet);
    if (ImGui::IsItemHovered()) text_tooltip(fmt::format("{}", fmt::join(parts, "\n")));
    ImGui::PopFont();
    constexpr float least_height = 60; // else the panel scrolls
    ImVec2 room = ImGui::GetContentRegionAvail();
    room.y = std::max(room.y, least_height);
    menu_.set_hovered(
        column.view.draw_with_spreads(editor(), graphics(), ImGui::GetCursorScreenPos(), room, brightness()));
  }

  void draw_parts() {
    std::vector<const char*> names;
    for (const HeadQuantityInfo::Part& part : quantity_.parts) names.push_back(part.name.c_str());
    const int chosen = segmented("measure", names, static_cast<int>(document().view.change_measure));
    if (chosen < 0) return;
    change_view(editor(), "Measure of the output's change",
                [&](ViewOptions& view) { view.change_measure = static_cast<ChangeMeasure>(chosen); });
  }

  const HeadQuantityInfo& quantity_;
  SideColumns<HeadTableColumn> columns_;
  HeadMenu menu_;
};

} // namespace

std::unique_ptr<Panel> make_head_table_panel(const HeadQuantityInfo& quantity, PanelServices services) {
  return std::make_unique<HeadTablePanel>(quantity, services);
}

} // namespace hydrascope::app
