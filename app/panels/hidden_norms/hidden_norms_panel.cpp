// The norm of each token's hidden state by layer; outlier tokens are bright columns.
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/table_views.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

// The norms of one side, or the difference.
class HiddenNormsColumn {
public:
  bool empty() const { return figure_.panels.empty(); }
  const Figure& figure() const { return figure_; }
  const std::string& error() const { return error_; }

  void prepare(const Snapshot& snapshot) {
    error_.clear();
    if (snapshot.shown().any() == nullptr) return clear();
    const auto found = find(snapshot.shown(), HiddenNormsKey{});
    if (!found) return; // keep the last map
    run_ = found.run;
    set(hidden_norms_figure(*run_, *found.result));
  }

  void subtract(const HiddenNormsColumn& a, const HiddenNormsColumn& b) {
    clear();
    error_.clear();
    if (a.empty() || b.empty()) return;
    if (same_values(a.map().values, b.map().values)) {
      error_ = same_note;
      return;
    }
    try {
      Figure difference = a.figure_;
      difference.panels = {hidden_norms_difference(a.map(), b.map())};
      run_ = a.run_;
      set(std::move(difference));
    } catch (const std::exception& reason) {
      error_ = error_message(reason);
    }
  }

  void draw(Editor& editor, const Graphics& graphics, float brightness) {
    const DrawnFigure::Input input =
        drawn_.draw("##norms", graphics, ImGui::GetContentRegionAvail(), brightness);
    if (!input.item) return;
    const std::size_t row = input.item->item.index, column = input.item->item.within;
    const auto token = static_cast<std::int64_t>(column);
    editor.hover(token);
    text_tooltip(fmt::format(
        "{}, {}: {}", token_text(*run_, column),
        row + 1 == rows() ? std::string("after the last layer") : fmt::format("before layer {}", row),
        number_text(static_cast<double>(map().values.slice(static_cast<std::int64_t>(row))[column]))));
    if (input.clicked) select_query(editor, token);
  }

private:
  const HeatMapPanel& map() const { return std::get<HeatMapPanel>(figure_.panels.front()); }
  std::size_t rows() const { return static_cast<std::size_t>(map().values.extent(0)); }
  void clear() {
    figure_ = {};
    drawn_.clear();
    run_ = nullptr;
  }
  void set(Figure figure) {
    figure_ = std::move(figure);
    drawn_.set(figure_);
  }

  std::shared_ptr<const RunResult> run_;
  Figure figure_;
  DrawnFigure drawn_;
  std::string error_;
};

class HiddenNormsPanel final : public Panel {
public:
  explicit HiddenNormsPanel(PanelServices services) : Panel("norms", "Hidden norms", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (document.scene().model) requested.then.add(HiddenNormsKey{});
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    if (columns_.empty() && columns_.shown().front().error().empty()) {
      empty_notice(graphics(),
                   "The norm of every token's hidden state, layer by layer, once the model has run.");
      return;
    }
    columns_.draw(graphics(), [&](HiddenNormsColumn& column) {
      if (column.empty()) return missing_notice(graphics(), column.error());
      column.draw(editor(), graphics(), brightness());
    });
  }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const HiddenNormsColumn& column) { return column.figure(); });
  }

private:
  SideColumns<HiddenNormsColumn> columns_;
};

} // namespace

std::unique_ptr<Panel> make_hidden_norms_panel(PanelServices services) {
  return std::make_unique<HiddenNormsPanel>(services);
}

} // namespace hydrascope::app
