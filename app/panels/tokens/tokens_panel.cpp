// Attention between tokens: lines from queries on the left to keys on the right, a colour per head (as in
// bertviz's head view), and the query's row of weights as bars beside the keys.
#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/panels/tokens/tokens_column.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

class TokensPanel final : public Panel {
public:
  explicit TokensPanel(PanelServices services) : Panel("tokens", "Tokens", services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    request_sides(document,
                  [&](const Document& side, bool) { requested.first.add(TokensColumn::key(side)); });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    draw_toolbar();
    if (columns_.empty()) {
      const std::string& error = columns_.shown().front().error();
      empty_notice(graphics(), error.empty() ? "What every token looks at, once the model has run." : error);
      return;
    }
    columns_.draw(graphics(), [&](TokensColumn& column) {
      if (column.empty()) {
        missing_notice(graphics(), column.error());
      } else {
        column.draw(editor(), graphics(), brightness());
      }
    });
  }

  std::optional<Figure> figure() const override {
    return columns_.figure([&](const TokensColumn& column) { return column.figure(document()); });
  }

private:
  void draw_toolbar() {
    selected_head(editor());
    same_line_if_fits(190);
    detail_kernel_combo(editor(), detail_kernel(document()), 186);
    same_line_if_fits(190);
    forced_choice(editor());
    if (!columns_.shown().front().has_pairs()) return;
    same_line_if_fits(230);
    static constexpr std::array<const char*, 5> pairs = {"all", "1→1", "1→2", "2→1", "2→2"};
    const int chosen = segmented("pairs", pairs, static_cast<int>(document().view.pairs));
    if (ImGui::IsItemHovered())
      text_tooltip("Show lines from one sentence of the pair to another; 1→2: from the first to the second");
    if (chosen >= 0) {
      change_view(editor(), "Token pairs",
                  [&](ViewOptions& view) { view.pairs = static_cast<TokenPairs>(chosen); });
    }
  }

  SideColumns<TokensColumn> columns_;
};

} // namespace

std::unique_ptr<Panel> make_tokens_panel(PanelServices services) {
  return std::make_unique<TokensPanel>(services);
}

} // namespace hydrascope::app
