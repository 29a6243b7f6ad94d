// Entropy, divergence and output change of every head: layers down, heads across; a click opens that head
// everywhere.
#include <cmath>

#include <fmt/format.h>

#include "app/panels/head_choice.h"
#include "app/panels/head_marks.h"
#include "app/panels/head_table_view.h"
#include "app/panels/panels.h"
#include "app/panels/side_columns.h"
#include "app/state/edits.h"
#include "app/views/table_views.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

// A table of the run as it is shown: which, in what unit, and what its size says.
struct TableMeaning {
  std::string table, title, unit;
  std::string direction; // "low: each query looks at few tokens"
};

// A divergence of softmax from itself says nothing: a schedule without another kernel shows the compared one,
// but for where it is one of two that are compared.
bool teacher_forced(const Document& document, bool one_of_two, const TableMeaning& meaning) {
  const bool against_softmax = meaning.table == "kl" || meaning.table == "change";
  return document.view.teacher_forced ||
         (against_softmax && !one_of_two && edited_schedule(document).all_exact_softmax());
}

// One side's table, or what lies between the two.
struct HeadTableColumn {
  TableMeaning meaning;
  HeadTableView view;
  std::string caption;
  std::string error; // why there is nothing

  bool empty() const { return view.empty(); }
  void prepare(const Snapshot& snapshot);
  void subtract(const HeadTableColumn& a, const HeadTableColumn& b);
};

void HeadTableColumn::prepare(const Snapshot& snapshot) {
  const bool forced = teacher_forced(*snapshot.document, snapshot.one_of_two, meaning);
  const KernelSpec kernel = compared_kernel(*snapshot.document, 1);
  HeadTable change; // in place a run holds it beside its tables
  FoundTable found = find_table(snapshot.shown(), meaning.table, forced ? &kernel : nullptr);
  for (const auto& part : snapshot.shown().parts) {
    if (forced || meaning.table != "change" || part->change.empty()) continue;
    change.name = meaning.table;
    change.values = part->change;
    found = {part.get(), &change};
  }
  if (found.table == nullptr) {
    if (snapshot.shown().any() == nullptr) view.clear();
    return; // else the last good one stays
  }
  error.clear();
  std::vector<std::string> kernels;
  for (const LayerRun& layer : found.run->layers) kernels.push_back(forced ? kernel.name : layer.kernel.name);
  view.set(head_table_panel(*found.run, *found.table, snapshot.document->view.change_measure),
           std::move(kernels));
  view.spreads = kernel_spreads(view.panel, view.kernels);
  caption = forced ? kernel.text() + ", teacher-forced" : "each layer's own kernel, in place";
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
  HeadTablePanel(std::string id, std::string title, TableMeaning meaning, PanelServices services)
      : Panel(std::move(id), std::move(title), services),
        meaning_(std::move(meaning)),
        columns_(empty_column(meaning_)) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    ask_sides(document, [&](const Document& side, bool one_of_two) {
      if (teacher_forced(side, one_of_two, meaning_)) {
        add_teacher_forced(wants.then, compared_kernel(side, 1));
      } else {
        wants.then.entropy |= meaning_.table == "entropy";
        wants.then.kl |= meaning_.table == "kl";
        wants.then.change |= meaning_.table == "change";
      }
    });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    if (columns_.empty() && columns_.shown().front().error.empty()) {
      empty_notice(graphics(), meaning_.title + " of every head, once the model has run.");
      return;
    }
    if (meaning_.table == "change") draw_measures();
    columns_.draw(graphics(), [&](HeadTableColumn& column) { draw_column(column); });
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    return columns_.figure([&](const HeadTableColumn& column) {
      Figure figure;
      figure.title = meaning_.title;
      figure.subtitle = column.caption;
      figure.panels.emplace_back(column.view.panel);
      return figure;
    });
  }

private:
  static HeadTableColumn empty_column(const TableMeaning& meaning) {
    HeadTableColumn column;
    column.meaning = meaning;
    column.view.unit = meaning.unit;
    if (meaning.table == "change")
      column.view.undefined = "undefined: this kernel has another number of heads, or softmax's output is 0";
    return column;
  }

  void draw_column(HeadTableColumn& column) {
    if (column.view.empty()) {
      missing_notice(graphics(), column.error);
      return;
    }
    const std::string& label = column.view.panel.scale.label;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const std::string text = (label.empty() ? meaning_.title : label) + " — " + column.caption +
                             (meaning_.direction.empty() ? "" : "; " + meaning_.direction);
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    menu_.point(column.view.draw_with_spreads(editor(), graphics(), ImGui::GetCursorScreenPos(),
                                              ImGui::GetContentRegionAvail(), brightness()));
  }

  void draw_measures() {
    static constexpr std::array<const char*, 3> measures = {"ratio of norms", "cosine", "relative error"};
    const int chosen = segmented("measure", measures, static_cast<int>(document().view.change_measure));
    if (chosen < 0) return;
    change_view(editor(), "Measure of the output's change",
                [&](ViewOptions& view) { view.change_measure = static_cast<ChangeMeasure>(chosen); });
  }

  TableMeaning meaning_;
  SideColumns<HeadTableColumn> columns_;
  HeadMenu menu_;
};

} // namespace

std::unique_ptr<Panel> make_entropy_panel(PanelServices services) {
  return std::make_unique<HeadTablePanel>(
      "entropy", "Entropy",
      TableMeaning{"entropy", "Entropy, nats", "nats",
                   "low: each query looks at few tokens; natural logarithm"},
      services);
}

std::unique_ptr<Panel> make_divergence_panel(PanelServices services) {
  return std::make_unique<HeadTablePanel>(
      "kl", "KL",
      TableMeaning{"kl", "KL(softmax ‖ kernel), nats", "nats",
                   "0: the kernel's rows are softmax's; natural logarithm"},
      services);
}

std::unique_ptr<Panel> make_change_panel(PanelServices services) {
  return std::make_unique<HeadTablePanel>(
      "change", "Output change",
      TableMeaning{"change", "Output change", "", "against softmax on the same q, k, v"}, services);
}

} // namespace hydrascope::app
