// The query's row of weights as a table of tokens × kernels, which can be sorted and copied.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/panels/weights/weights_column.h"
#include "app/ui/widgets.h"
#include "app/views/selection.h"
#include "app/views/weights_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

// The weights of one kernel, or A − B.
struct ValueColumn {
  std::string name, kernel;
  std::vector<double> values; // one per line; empty: the kernel lacks the head, or its side has no results
};

std::string column_name(const Document& document, const ColumnSource& source) {
  const std::string kernel = source.kernel.label();
  return shows_both(document.view) ? std::string(side_name(source.side)) + "  " + kernel : kernel;
}

class ValuesPanel final : public Panel {
public:
  explicit ValuesPanel(PanelServices services) : Panel("values", "Values", services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    for (const ColumnSource& source : column_sources(document))
      requested.first.add(weights_key(document, source));
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const bool both = shows_both(document.view);
    std::vector<std::string> failures;
    std::vector<ValueColumn> columns;
    std::vector<ShownToken> tokens;
    std::shared_ptr<const RunResult> run;
    for (const ColumnSource& source : column_sources(document)) {
      ValueColumn column{column_name(document, source), source.kernel.name, {}};
      const SideResults& results = snapshot.of(source.side);
      const auto found = find(results, weights_key(document, source));
      if (!found) {
        std::string failure = both ? snapshot.named_failure(source.side) : snapshot.failure(source.side);
        if (results.any() != nullptr && why_none(snapshot, source.side).empty())
          return; // keep the last numbers
        if (!failure.empty() && std::ranges::count(failures, failure) == 0)
          failures.push_back(std::move(failure));
        columns.push_back(std::move(column)); // empty, beside the other side's numbers
        continue;
      }
      run = found.run;
      ShownWeights shown = shown_weights(run, *found.result, document.view.tokens);
      const auto row = shown_index(shown.tokens, row_query(document.scene(), *run));
      if (row) column.values = row_weights(*shown.weights, document.scene().head, *row);
      if (row && is_causal(run->model)) { // no key comes after its query
        const auto count = static_cast<std::size_t>(*row) + 1;
        column.values.resize(std::min(count, column.values.size()));
        shown.tokens.resize(std::min(count, shown.tokens.size()));
      }
      tokens = std::move(shown.tokens);
      columns.push_back(std::move(column));
    }
    failures_ = std::move(failures);
    if (!run) {
      columns_.clear();
      menu_line_.reset();
      return;
    }
    if (both) add_difference(columns);
    run_ = std::move(run);
    query_ = row_query(document.scene(), *run_); // the snapshot's, which may be another than the document's
    tokens_ = std::move(tokens);
    columns_ = std::move(columns);
    menu_line_.reset(); // it was one of the lines before
    names_.clear();
    for (const ShownToken& token : tokens_) {
      names_.push_back(run_->rows > 0 ? token_name(*run_, token.first) : token.text);
    }
    order_.resize(tokens_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    sorted_ = false;
  }

  void draw() override {
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) menu_line_.reset(); // until a line is found under it
    draw_toolbar();
    if (columns_.empty()) {
      empty_notice(graphics(), failures_.empty() ? "The query's weights as numbers, once the model has run."
                                                 : fmt::format("{}", fmt::join(failures_, "\n")));
      return;
    }
    for (const std::string& failure : failures_) wrapped_small_text(graphics(), failure);
    const auto count = static_cast<int>(columns_.size()) + 2;
    constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_ScrollY |
                                      ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit |
                                      ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
    if (!ImGui::BeginTable("values", count, flags)) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn("token", ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_WidthFixed,
                            60);
    ImGui::TableSetupColumn("key", ImGuiTableColumnFlags_WidthStretch);
    for (const ValueColumn& column : columns_)
      ImGui::TableSetupColumn(column.name.c_str(),
                              ImGuiTableColumnFlags_PreferSortDescending | ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableHeadersRow();
    sort();
    ImGuiListClipper clipper; // a long input has thousands of lines
    clipper.Begin(static_cast<int>(order_.size()));
    while (clipper.Step()) {
      for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line)
        draw_line(order_[static_cast<std::size_t>(line)]);
    }
    ImGui::EndTable();
  }

  void draw_menu() override {
    if (menu_line_ && ImGui::MenuItem("Copy line")) ImGui::SetClipboardText(line_text(*menu_line_).c_str());
    if (ImGui::MenuItem("Copy table", nullptr, false, !columns_.empty())) {
      std::string text = "token\tkey";
      for (const ValueColumn& column : columns_) text += "\t" + column.name;
      for (const std::size_t index : order_) text += "\n" + line_text(index);
      ImGui::SetClipboardText(text.c_str());
    }
    ImGui::Separator();
  }

  std::optional<Figure> figure() const override {
    if (columns_.empty()) return std::nullopt;
    Figure figure;
    figure.title = fmt::format("{} · layer {} · {}", run_->model.name, document().scene().layer,
                               document().scene().head.text());
    figure.subtitle = "what " + token_name(*run_, query_) + " looks at";
    for (const ValueColumn& column : columns_) {
      if (column.values.empty()) continue;
      BarsPanel panel;
      panel.title = column.name;
      panel.x_label = "attention weight";
      for (const std::size_t index : order_) {
        if (index >= column.values.size()) continue;
        panel.labels.push_back(names_[index]);
        panel.values.push_back(column.values[index]);
      }
      figure.panels.emplace_back(std::move(panel));
    }
    if (figure.panels.empty()) return std::nullopt;
    return figure;
  }

private:
  static std::vector<std::int64_t> rows_of(const Document& document) {
    // A word may have several rows; of a long text all would be more than fits the memory.
    if (document.kind == InputKind::text && likely_tokens(document) <= most_tokens_whole) return {};
    return {row_query(document.scene())};
  }

  static WeightsKey weights_key(const Document& document, const ColumnSource& source) {
    return {.layer = document.scene().layer,
            .kernel = source.kernel,
            .rows = rows_of(document),
            .teacher_forced = document.view.teacher_forced};
  }

  static void add_difference(std::vector<ValueColumn>& columns) {
    ValueColumn difference{side_name(Shown::difference), "", {}};
    if (columns[0].values.size() == columns[1].values.size()) {
      for (std::size_t i = 0; i < columns[0].values.size(); ++i)
        difference.values.push_back(columns[0].values[i] - columns[1].values[i]);
    }
    columns.push_back(std::move(difference));
  }

  void draw_toolbar() {
    selected_head(editor());
    same_line_if_fits(190);
    forced_choice(editor());
    if (columns_.empty()) return;
    same_line_if_fits(160);
    ImGui::AlignTextToFramePadding();
    ellipsis_text("query " + token_name(*run_, query_), ImGui::GetContentRegionAvail().x, theme::quiet);
  }

  // By the column whose heading was clicked; the first column is the order of the tokens.
  void sort() {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (specs == nullptr || specs->SpecsCount == 0 || (sorted_ && !specs->SpecsDirty)) return;
    const ImGuiTableColumnSortSpecs& by = specs->Specs[0];
    const bool descending = by.SortDirection == ImGuiSortDirection_Descending;
    const auto column = static_cast<std::size_t>(by.ColumnIndex);
    const auto before = [&](std::size_t a, std::size_t b) {
      if (column == 0) return a < b;
      if (column == 1) return names_[a] < names_[b];
      const std::vector<double>& values = columns_[column - 2].values;
      return !values.empty() && values[a] < values[b];
    };
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(
        order_, [&](std::size_t a, std::size_t b) { return descending ? before(b, a) : before(a, b); });
    specs->SpecsDirty = false;
    sorted_ = true;
  }

  void draw_line(std::size_t index) {
    const ShownToken& token = tokens_[index];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    ImGui::PushID(static_cast<int>(index));
    const auto hovered = editor().hovered_token();
    const bool lit = hovered && *hovered >= token.first && *hovered < token.first + token.count;
    if (ImGui::Selectable(fmt::format("{:>4}", token.first).c_str(), lit,
                          ImGuiSelectableFlags_SpanAllColumns))
      select_key(editor(), token.first);
    if (ImGui::IsItemHovered()) {
      editor().hover(token.first, token.count);
      if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) menu_line_ = index;
    }
    ImGui::PopID();
    ImGui::TableNextColumn();
    const bool pinned = document().scene().key && *document().scene().key == token.first;
    ImGui::TextColored(pinned ? theme::accent : theme::text, "%s", with_known_glyphs(names_[index]).c_str());
    for (const ValueColumn& column : columns_) {
      ImGui::TableNextColumn();
      const std::string text = index < column.values.size() ? number_text(column.values[index]) : "—";
      const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(room, 0.0f));
      ImGui::TextUnformatted(text.c_str());
    }
    ImGui::PopFont();
  }

  // At full precision, for a spreadsheet.
  std::string line_text(std::size_t index) const {
    std::string text = fmt::format("{}\t{}", tokens_[index].first, names_[index]);
    for (const ValueColumn& column : columns_)
      text += index < column.values.size() ? fmt::format("\t{:.9g}", column.values[index]) : "\t";
    return text;
  }

  std::shared_ptr<const RunResult> run_;
  std::int64_t query_ = 0;
  std::vector<ShownToken> tokens_;
  std::vector<std::string> names_; // of tokens_
  std::vector<ValueColumn> columns_;
  std::vector<std::size_t> order_;
  std::vector<std::string> failures_;    // of sides whose column is empty
  std::optional<std::size_t> menu_line_; // under the pointer when the menu was opened
  bool sorted_ = false;
};

} // namespace

std::unique_ptr<Panel> make_values_panel(PanelServices services) {
  return std::make_unique<ValuesPanel>(services);
}

} // namespace hydrascope::app
