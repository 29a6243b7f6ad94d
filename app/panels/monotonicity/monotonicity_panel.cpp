// How far a kernel's weights follow the order of softmax's logits: the weights of the selected head against
// q·k/√d, and Spearman's ρ.
#include "app/document/edits.h"
#include "app/panels/head_choice.h"
#include "app/panels/head_marks.h"
#include "app/panels/monotonicity/monotonicity_column.h"
#include "app/panels/panels.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

class MonotonicityPanel final : public Panel {
public:
  explicit MonotonicityPanel(PanelServices services)
      : Panel("monotonicity", "Monotonicity", services), columns_(services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    ask_sides(document,
              [&](const Document& side, bool one_of_two) { ask_monotonicity(side, one_of_two, requested); });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    draw_toolbar();
    if (columns_.empty()) {
      const std::string& error = columns_.shown().front().error();
      empty_notice(graphics(), error.empty() ? "Weights against q·k/√d, once the model has run." : error);
      return;
    }
    columns_.draw(graphics(), [&](MonotonicityColumn& column) {
      if (column.empty()) {
        missing_notice(graphics(), column.error());
      } else {
        menu_.point(column.draw(brightness()));
      }
    });
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const MonotonicityColumn& column) { return column.figure(); });
  }

private:
  void draw_toolbar() {
    selected_head(editor());
    same_line_if_fits(190);
    detail_kernel_combo(editor(), monotonicity_kernel(document(), shows_both(document().view)), 186);
    same_line_if_fits(100);
    static constexpr std::array<const char*, 2> scales = {"linear", "log"};
    const int scale = segmented("scale", scales, document().view.logarithmic ? 1 : 0);
    if (scale >= 0) {
      change_view(editor(), "Scale of the weights", [&](ViewOptions& view) {
        view.logarithmic = scale == 1;
        view.percentile = false;
      });
    }
    same_line_if_fits(190);
    forced_choice(editor());
  }

  SideColumns<MonotonicityColumn> columns_;
  HeadMenu menu_;
};

} // namespace

std::unique_ptr<Panel> make_monotonicity_panel(PanelServices services) {
  return std::make_unique<MonotonicityPanel>(services);
}

} // namespace hydrascope::app
