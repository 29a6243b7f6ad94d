// A number of every head (entropy, divergence, output change …): layers down, heads across; a click opens
// that head everywhere.
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/head_choice.h"
#include "app/panels/head_marks.h"
#include "app/panels/heads/head_table_view.h"
#include "app/panels/panels.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/table_views.h"

namespace hydrascope::app {

namespace {

// What is the same for every softmax layer says nothing of a schedule without another kernel: then the
// compared kernel is shown, but for where it is one of two that are compared.
HeadTableKey table_key(const Document& document, bool one_of_two, const HeadQuantityInfo& quantity) {
  const bool forced = document.view.teacher_forced || (quantity.against_softmax && !one_of_two &&
                                                       edited_schedule(document).all_exact_softmax());
  return {quantity.name, forced ? std::optional(compared_kernel(document, 1)) : std::nullopt};
}

// One side's table, or what lies between the two.
struct HeadTableColumn {
  const HeadQuantityInfo* quantity = nullptr;
  HeadTableView view;
  std::string caption;
  std::string error; // why there is nothing

  bool empty() const { return view.empty(); }
  void prepare(const Snapshot& snapshot);
  void subtract(const HeadTableColumn& a, const HeadTableColumn& b);
};

void HeadTableColumn::prepare(const Snapshot& snapshot) {
  const HeadTableKey key = table_key(*snapshot.document, snapshot.one_of_two, *quantity);
  const auto found = find(snapshot.shown(), key);
  if (!found) {
    if (snapshot.shown().any() == nullptr) view.clear();
    return; // else the last good one stays
  }
  error.clear();
  std::vector<std::string> kernels;
  for (const LayerRun& layer : found.run->layers)
    kernels.push_back(key.kernel ? key.kernel->name : layer.kernel.name);
  view.set(head_table_panel(*found.run, *found.result, snapshot.document->view.change_measure),
           std::move(kernels));
  view.spreads = kernel_spreads(view.panel, view.kernels);
  caption = key.kernel ? key.kernel->text() + ", teacher-forced" : "each layer's own kernel, in place";
}

void HeadTableColumn::subtract(const HeadTableColumn& a, const HeadTableColumn& b) {
  view.clear(); // its layers have no kernel: each may have two
  error.clear();
  if (a.view.empty() || b.view.empty()) return;
  try {
    HeatMapPanel difference = head_table_difference(a.view.panel, b.view.panel);
    difference.row_colours.clear();
    view.set(std::move(difference), {});
  } catch (const std::exception& reason) {
    error = reason.what();
  }
  view.spreads.clear();
  caption = a.caption == b.caption ? a.caption : a.caption + " − " + b.caption;
}

class HeadTablePanel final : public Panel {
public:
  HeadTablePanel(const HeadQuantityInfo& quantity, PanelServices services)
      : Panel(quantity.name, quantity.title, services),
        quantity_(quantity),
        columns_(empty_column(quantity)) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Requested& requested) const override {
    ask_sides(document, [&](const Document& side, bool one_of_two) {
      requested.then.add(table_key(side, one_of_two, quantity_));
    });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

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
    const std::string& label = column.view.panel.scale.label;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const std::string text = (label.empty() ? quantity_.heading : label) + " — " + column.caption +
                             (quantity_.meaning.empty() ? "" : "; " + quantity_.meaning);
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    menu_.point(column.view.draw_with_spreads(editor(), graphics(), ImGui::GetCursorScreenPos(),
                                              ImGui::GetContentRegionAvail(), brightness()));
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
