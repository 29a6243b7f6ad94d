// Entropy, divergence and output change of every head: layers down, heads across; a click opens that head
// everywhere.
#include <cmath>

#include <fmt/format.h>

#include "app/panels/head_choice.h"
#include "app/panels/head_table_view.h"
#include "app/panels/panels.h"
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

class HeadTablePanel final : public Panel {
public:
  HeadTablePanel(std::string id, std::string title, TableMeaning meaning, PanelServices services)
      : Panel(std::move(id), std::move(title), services), meaning_(std::move(meaning)) {
    view_.unit = meaning_.unit;
    if (meaning_.table == "change")
      view_.undefined = "undefined: this kernel has another number of heads, or softmax's output is 0";
  }
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    if (teacher_forced(document)) {
      add_teacher_forced(wants.then, compared_kernel(document, 1));
    } else {
      wants.then.entropy |= meaning_.table == "entropy";
      wants.then.kl |= meaning_.table == "kl";
      wants.then.change |= meaning_.table == "change";
    }
  }

  void prepare(const Snapshot& snapshot) override {
    const bool forced = teacher_forced(*snapshot.document);
    const KernelSpec kernel = compared_kernel(*snapshot.document, 1);
    HeadTable change; // in place a run holds it beside its tables
    FoundTable found = find_table(snapshot.shown(), meaning_.table, forced ? &kernel : nullptr);
    for (const auto& part : snapshot.shown().parts) {
      if (forced || meaning_.table != "change" || part->change.empty()) continue;
      change.name = meaning_.table;
      change.values = part->change;
      found = {part.get(), &change};
    }
    if (found.table == nullptr) {
      const RunResult* any = snapshot.shown().any();
      if (any == nullptr || (any->rows > 0) != (snapshot.document->kind == InputKind::image)) table_ = {};
      if (table_.values.empty()) view_.panel = {};
      return;
    }
    table_ = *found.table;
    for (const auto& part : snapshot.shown().parts) {
      if (part.get() == found.run) shown_ = part;
    }
    view_.panel = head_table_panel(*shown_, table_, measure_);
    view_.kernels.clear();
    for (const LayerRun& layer : found.run->layers)
      view_.kernels.push_back(forced ? kernel.name : layer.kernel.name);
    caption_ = forced ? kernel.text() + ", teacher-forced" : "each layer's own kernel, in place";
  }

  void draw() override {
    if (view_.empty()) {
      empty_notice(graphics(), meaning_.title + " of every head, once the model has run.");
      return;
    }
    if (meaning_.table == "change") draw_measures();
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const std::string what = view_.panel.scale.label.empty() ? meaning_.title : view_.panel.scale.label;
    const std::string text =
        what + " — " + caption_ + (meaning_.direction.empty() ? "" : "; " + meaning_.direction);
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    view_.draw(editor(), graphics(), ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail(),
               brightness());
  }

  std::optional<Figure> figure() const override {
    if (view_.empty()) return std::nullopt;
    Figure figure;
    figure.title = meaning_.title;
    figure.subtitle = caption_;
    figure.panels.emplace_back(view_.panel);
    return figure;
  }

private:
  // A divergence of softmax from itself says nothing: a schedule without another kernel shows the compared
  // one.
  bool teacher_forced(const Document& document) const {
    const bool against_softmax = meaning_.table == "kl" || meaning_.table == "change";
    return document.view.teacher_forced || (against_softmax && edited_schedule(document).all_exact_softmax());
  }

  void draw_measures() {
    static constexpr std::array<const char*, 3> measures = {"ratio of norms", "cosine", "relative error"};
    const int chosen = segmented("measure", measures, static_cast<int>(measure_));
    if (chosen < 0) return;
    measure_ = static_cast<ChangeMeasure>(chosen);
    view_.panel = head_table_panel(*shown_, table_, measure_);
  }

  TableMeaning meaning_;
  HeadTable table_;
  std::shared_ptr<const RunResult> shown_; // that table_ is of
  std::string caption_;
  HeadTableView view_;
  ChangeMeasure measure_ = ChangeMeasure::error;
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
