// What stands behind one weight: q, k, φ(q), φ(k) of a pair of tokens and their products feature by feature;
// for a Hydra kernel its global vector, the query's gate over it, and which tokens fill a feature.
#include "app/document/edits.h"
#include "app/panels/head_choice.h"
#include "app/panels/panels.h"
#include "app/panels/side_columns.h"
#include "app/panels/vectors/vectors_column.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

class VectorsPanel final : public Panel {
public:
  explicit VectorsPanel(PanelServices services) : Panel("vectors", "Vectors", services), columns_(services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    ask_sides(document, [&](const Document& side, bool) { requested.first.add(vectors_key(side)); });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    draw_toolbar();
    if (columns_.empty()) {
      empty_notice(graphics(), "The vectors behind a weight of the selected layer, once the model has run.");
      return;
    }
    columns_.draw(graphics(), [&](VectorsColumn& column) {
      if (column.empty()) {
        missing_notice(graphics());
      } else {
        column.draw(brightness());
      }
    });
  }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const VectorsColumn& column) { return column.figure(); });
  }

private:
  void draw_toolbar() {
    const Scene& scene = document().scene();
    const KernelSpec kernel = detail_kernel(document());
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "layer %d", scene.layer);
    ImGui::SameLine(0, 12);
    if (kernel_info(kernel.name).family == "hydra") {
      ImGui::TextColored(theme::quiet, "all features");
    } else {
      head_combo(editor(), 124);
    }
    same_line_if_fits(190);
    detail_kernel_combo(editor(), detail_kernel(document()), 186);
    same_line_if_fits(190);
    forced_choice(editor());
  }

  SideColumns<VectorsColumn> columns_;
};

} // namespace

std::unique_ptr<Panel> make_vectors_panel(PanelServices services) {
  return std::make_unique<VectorsPanel>(services);
}

} // namespace hydrascope::app
