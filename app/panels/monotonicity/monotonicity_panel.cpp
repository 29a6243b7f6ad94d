// How monotone a kernel is in softmax's logits: Spearman's ρ of every head, and the weights of one head
// against q·k/√d.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/heads/head_table.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/scatter_view.h"
#include "app/views/table_views.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

constexpr std::int64_t rows_of_long_input = 128;

// Whether ρ is of the layers' own kernels, and not of one kernel in all layers on the q and k of softmax.
bool in_place(const Document& document, bool one_of_two) {
  return !document.view.teacher_forced && !document.scene().detail_kernel &&
         (one_of_two || !edited_schedule(document).all_exact_softmax());
}

// The kernel whose weights are shown: the chosen one or the layer's own. If that is softmax by default and
// only one side is shown, the compared kernel.
KernelSpec monotonicity_kernel(const Document& document, bool one_of_two) {
  const KernelSpec own = detail_kernel(document);
  const bool chosen = one_of_two || document.scene().detail_kernel;
  return kernel_info(own).exact_softmax && !chosen ? compared_kernel(document, 1) : own;
}

HeadTableKey monotonicity_table(const Document& document, bool one_of_two) {
  if (in_place(document, one_of_two)) return {"monotonicity", {}};
  return {"monotonicity", monotonicity_kernel(document, one_of_two)};
}

WeightsKey monotonicity_weights(const Document& document, bool one_of_two) {
  return {.layer = document.scene().layer,
          .kernel = monotonicity_kernel(document, one_of_two),
          .most_rows = likely_tokens(document) > most_tokens_whole ? rows_of_long_input : 0,
          .teacher_forced = document.view.teacher_forced};
}

void request_monotonicity(const Document& document, bool one_of_two, Requested& requested) {
  requested.first.add(queries_and_keys(document));
  requested.first.add(monotonicity_weights(document, one_of_two));
  requested.then.add(monotonicity_table(document, one_of_two));
}

// The table and the scatter plot of one side, or the difference of the tables.
class MonotonicityColumn {
public:
  explicit MonotonicityColumn(PanelServices services) : services_(services) {}

  void prepare(const Snapshot& snapshot);
  // The scatter plot has no difference.
  void subtract(const MonotonicityColumn& a, const MonotonicityColumn& b);

  bool empty() const { return run_ == nullptr || !error_.empty(); }
  const std::string& error() const { return error_; } // why it is empty
  std::optional<HeadIndex> draw(float brightness);    // returns the head under the pointer
  Figure figure() const;

private:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }

  void prepare_table(const Snapshot& snapshot);
  void draw_facts();
  void draw_table(ImVec2 from, ImVec2 room);
  void draw_scatter(ImVec2 from, ImVec2 room);

  PanelServices services_;
  std::shared_ptr<const RunResult> run_;
  std::shared_ptr<const WeightsResult> weights_; // null in a difference
  int head_ = 0;
  ScatterView view_;
  DrawnFigure scatter_;
  std::string error_;
  HeadTableView table_;
  std::string caption_; // of table_
  float brightness_ = 1;
  std::optional<HeadIndex> hovered_;
};

void MonotonicityColumn::prepare(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  const bool one_of_two = snapshot.one_of_two;
  if (snapshot.shown().any() == nullptr) {
    run_ = nullptr;
    weights_ = nullptr;
    table_.clear();
    scatter_.clear();
    return;
  }
  prepare_table(snapshot);
  const auto weights = find(snapshot.shown(), monotonicity_weights(document, one_of_two));
  const auto vectors = find(snapshot.shown(), queries_and_keys(document));
  if (!weights || !vectors) return; // keep the last plot
  head_ = vectors_head(document, weights.result->kernel);
  error_.clear();
  try {
    view_ = scatter_view(*weights.run, *weights.result, *vectors.result, head_, document.view.logarithmic);
    scatter_.set(scatter_figure(*weights.run, *weights.result, view_, head_));
  } catch (const std::exception& error) {
    error_ = error_message(error);
  }
  run_ = weights.run;
  weights_ = weights.owned();
}

void MonotonicityColumn::subtract(const MonotonicityColumn& a, const MonotonicityColumn& b) {
  run_ = nullptr;
  weights_ = nullptr;
  error_.clear();
  table_.clear();
  scatter_.clear();
  table_.spreads.clear();
  if (a.table_.empty() || b.table_.empty()) return;
  if (same_values(a.table_.panel.values, b.table_.panel.values)) {
    error_ = same_note;
    return;
  }
  try {
    HeatMapPanel difference = head_table_difference(a.table_.panel, b.table_.panel);
    difference.row_colours.clear();
    table_.set(std::move(difference), {});
    run_ = a.run_;
  } catch (const std::exception& error) {
    error_ = error_message(error);
  }
  table_.undefined = a.table_.undefined;
  caption_ = a.caption_ == b.caption_ ? a.caption_ : a.caption_ + " − " + b.caption_;
}

std::optional<HeadIndex> MonotonicityColumn::draw(float brightness) {
  brightness_ = brightness;
  hovered_.reset();
  if (weights_ != nullptr) draw_facts();
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (weights_ == nullptr) {
    draw_table(from, room);
    return hovered_;
  }
  if (table_.empty()) {
    draw_scatter(from, room);
    return hovered_;
  }
  constexpr float side_by_side = 420; // minimum width
  if (room.x < side_by_side) {
    const float upper = std::floor(room.y * 0.5f);
    draw_table(from, {room.x, upper - theme::grid});
    draw_scatter({from.x, from.y + upper}, {room.x, room.y - upper});
  } else {
    const float left = std::floor(room.x * 0.45f);
    draw_table(from, {left - theme::grid, room.y});
    draw_scatter({from.x + left, from.y}, {room.x - left, room.y});
  }
  return hovered_;
}

Figure MonotonicityColumn::figure() const {
  Figure figure;
  if (weights_ != nullptr) {
    figure = scatter_.figure();
  } else {
    figure.title = difference_label(run_->model.name + " · monotonicity");
  }
  if (!table_.empty()) figure.panels.insert(figure.panels.begin(), table_.panel);
  return figure;
}

void MonotonicityColumn::prepare_table(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  const bool one_of_two = snapshot.one_of_two;
  const KernelSpec kernel = monotonicity_kernel(document, one_of_two);
  const HeadTableKey key = monotonicity_table(document, one_of_two);
  const bool own = !key.kernel;
  const auto found = find(snapshot.shown(), key);
  if (!found) return; // keep the last table
  table_.undefined = "undefined: this kernel has another number of heads";
  std::vector<std::string> kernels;
  for (const LayerRun& layer : found.run->layers) kernels.push_back(own ? layer.kernel.name : kernel.name);
  table_.set(head_table_panel(*found.run, *found.result), std::move(kernels));
  table_.spreads = kernel_spreads(table_.panel, table_.kernels);
  caption_ = own ? "each layer's current kernel, this run" : kernel.label() + ", softmax inputs";
}

void MonotonicityColumn::draw_facts() {
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  std::vector<std::string> facts{fmt::format("{}, head {}", weights_->kernel.label(), head_)};
  if (!std::isnan(view_.correlation))
    facts.push_back(fmt::format("Spearman's ρ {}", number_text(view_.correlation)));
  if (weights_->rows.size() < run_->tokens.size())
    facts.push_back(fmt::format("{} of {} query rows", weights_->rows.size(), run_->tokens.size()));
  facts.push_back(
      fmt::format("q·k/√d {} to {}", number_text(view_.low_score), number_text(view_.high_score)));
  facts.push_back(fmt::format("{} below −1", percent_text(view_.share_below)));
  const float room = ImGui::GetContentRegionAvail().x;
  ellipsis_text(fitting_parts(facts, room), room, weights_->untrained ? theme::amber : theme::quiet);
  if (ImGui::IsItemHovered())
    text_tooltip(fmt::format("{}\nSpearman's ρ is taken within rows, then the mean over rows; 1: monotone",
                             fmt::join(facts, "\n")));
  ImGui::PopFont();
}

void MonotonicityColumn::draw_table(ImVec2 from, ImVec2 room) {
  ImGui::SetCursorScreenPos(from);
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  ellipsis_text("ρ of every head, " + caption_, room.x, theme::quiet);
  ImGui::PopFont();
  const float line = theme::size_small + 5;
  hovered_ = table_.draw_with_spreads(editor(), graphics(), {from.x, from.y + line}, {room.x, room.y - line},
                                      brightness_);
}

void MonotonicityColumn::draw_scatter(ImVec2 from, ImVec2 room) {
  ImGui::SetCursorScreenPos(from);
  const auto item = scatter_.draw("scatter", graphics(), room, brightness_).item;
  if (!item) return;
  const auto columns = view_.counts.extent(1);
  const auto column = static_cast<std::int64_t>(item->item.within);
  const float count = view_.counts.values.at(
      static_cast<std::size_t>(static_cast<std::int64_t>(item->item.index) * columns + column));
  const double score = view_.low_score + (static_cast<double>(column) + 0.5) / static_cast<double>(columns) *
                                             (view_.high_score - view_.low_score);
  text_tooltip(fmt::format("q·k/√d {}\n{} pairs of tokens", number_text(score),
                           std::isnan(count) ? "no" : fmt::format("{:.0f}", count)));
}

class MonotonicityPanel final : public Panel {
public:
  explicit MonotonicityPanel(PanelServices services)
      : Panel("monotonicity", "Monotonicity", services), columns_(services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    request_sides(document, [&](const Document& side, bool one_of_two) {
      request_monotonicity(side, one_of_two, requested);
    });
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
        menu_.set_hovered(column.draw(brightness()));
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
