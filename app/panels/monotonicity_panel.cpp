// How far a kernel's weights follow the order of softmax's logits: the weights of the selected head against
// q·k/√d, and Spearman's ρ.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/head_choice.h"
#include "app/panels/head_table_view.h"
#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/views/scatter_view.h"
#include "app/views/table_views.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr std::int64_t most_rows = 128; // of a long input; spread evenly

// The kernel whose weights are shown: the layer's own, or the compared one where that is softmax itself.
KernelSpec scatter_kernel(const Document& document) {
  const KernelSpec own = detail_kernel(document);
  return kernel_info(own.name).exact_softmax && !document.scene().detail_kernel ? compared_kernel(document, 1)
                                                                                : own;
}

VectorsAsk queries_and_keys(const Document& document) {
  VectorsAsk ask;
  ask.layer = document.scene().layer;
  ask.kernels = {KernelSpec{}};
  ask.teacher_forced = document.view.teacher_forced;
  return ask;
}

class MonotonicityPanel final : public Panel {
public:
  explicit MonotonicityPanel(PanelServices services) : Panel("monotonicity", "Monotonicity", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    if (!document.scene().model) return;
    add_vectors(wants.first, queries_and_keys(document));
    add_weights(wants.first, document.scene().layer, scatter_kernel(document), document.view.teacher_forced,
                rows_of(document));
    if (in_place(document)) {
      wants.then.monotonicity = true;
    } else {
      add_teacher_forced_monotonicity(wants.then, scatter_kernel(document));
    }
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const RunResult* any = snapshot.shown().any();
    if (any == nullptr || !document.scene().model || (any->rows > 0) != (document.kind == InputKind::image)) {
      run_ = nullptr;
      table_.panel = {};
      return;
    }
    prepare_table(snapshot);
    const std::vector<std::int64_t> rows = rows_of(document);
    const FoundWeights weights =
        find_weights(snapshot.shown(), document.scene().layer, scatter_kernel(document),
                     document.view.teacher_forced, rows.empty() ? std::nullopt : std::optional(rows.front()));
    const FoundVectors vectors = find_vectors(snapshot.shown(), queries_and_keys(document));
    if (weights.weights == nullptr || vectors.vectors == nullptr) return; // the last good picture stays
    head_ = vectors_head(document, weights.weights->kernel);
    error_.clear();
    try {
      view_ =
          scatter_view(*weights.run, *weights.weights, *vectors.vectors, head_, document.view.logarithmic);
      scale_ = scatter_scale(view_);
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    keep_ = snapshot.shown().parts;
    run_ = weights.run;
    weights_ = weights.weights;
  }

  void draw() override {
    draw_toolbar();
    if (run_ == nullptr || !error_.empty()) {
      empty_notice(graphics(), !error_.empty() ? error_ : "Weights against q·k/√d, once the model has run.");
      return;
    }
    draw_facts();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float left = table_.empty() ? 0 : std::floor(room.x * 0.45f);
    if (!table_.empty()) draw_table(from, {left - theme::grid, room.y});
    draw_scatter({from.x + left, from.y}, {room.x - left, room.y});
  }

  std::optional<Figure> figure() const override {
    if (run_ == nullptr || !error_.empty()) return std::nullopt;
    Figure figure = scatter_figure(*run_, *weights_, view_, head_);
    if (!table_.empty()) figure.panels.insert(figure.panels.begin(), table_.panel);
    return figure;
  }

private:
  // ρ of the layers' own kernels, or of one kernel in every layer on the softmax run's q and k.
  static bool in_place(const Document& document) {
    return !document.view.teacher_forced && !document.scene().detail_kernel &&
           !edited_schedule(document).all_exact_softmax();
  }

  void prepare_table(const Snapshot& snapshot) {
    const Document& document = *snapshot.document;
    const KernelSpec kernel = scatter_kernel(document);
    const bool own = in_place(document);
    const FoundTable found = find_table(snapshot.shown(), "monotonicity", own ? nullptr : &kernel);
    if (found.table == nullptr) return; // the last good one stays
    table_.panel = head_table_panel(*found.run, *found.table);
    table_.undefined = "undefined: this kernel has another number of heads";
    table_.kernels.clear();
    for (const LayerRun& layer : found.run->layers)
      table_.kernels.push_back(own ? layer.kernel.name : kernel.name);
    caption_ = own ? "each layer's own kernel, in place" : kernel.text() + ", teacher-forced";
  }

  // All of a short input, some of a long one; empty: all.
  std::vector<std::int64_t> rows_of(const Document& document) const {
    const ModelInfo& model = *document.scene().model;
    std::int64_t tokens = model.max_tokens;
    if (model.input == InputKind::image) {
      const std::int64_t side =
          document.execution.image_size.value_or(model.image_size) / std::max(model.patch_size, 1);
      tokens = side * side;
    }
    constexpr std::int64_t few = 600;
    if (tokens <= few) return {};
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < most_rows; ++i) rows.push_back(i * tokens / most_rows);
    return rows;
  }

  void draw_toolbar() {
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "layer %d", document().scene().layer);
    ImGui::SameLine(0, 12);
    head_combo(editor(), 124);
    same_line_if_fits(190);
    detail_kernel_combo(editor(), scatter_kernel(document()), 186);
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

  void draw_facts() {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    std::string text = fmt::format("{}, head {}", weights_->kernel.text(), head_);
    if (!std::isnan(view_.correlation))
      text +=
          fmt::format(": Spearman's ρ {:.3f} within rows, mean over rows (1: monotone)", view_.correlation);
    text += fmt::format("; q·k/√d from {} to {}, {:.1f} % below −1", number_text(view_.low_score, 3),
                        number_text(view_.high_score, 3), view_.share_below * 100);
    if (weights_->rows.size() < run_->tokens.size())
      text += fmt::format("; {} of {} query rows", weights_->rows.size(), run_->tokens.size());
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, weights_->untrained ? theme::amber : theme::quiet);
    ImGui::PopFont();
  }

  void draw_table(ImVec2 from, ImVec2 room) {
    ImGui::SetCursorScreenPos(from);
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text("ρ of every head, " + caption_, room.x, theme::quiet);
    ImGui::PopFont();
    const float line = theme::size_small + 5;
    table_.draw(editor(), graphics(), {from.x, from.y + line}, {room.x, room.y - line}, brightness());
  }

  void draw_scatter(ImVec2 from, ImVec2 room) {
    constexpr float left = 58, bottom = 30;
    const ImVec2 at{from.x + left, from.y + 4},
        to{from.x + room.x - colour_bar_width - 8, from.y + room.y - bottom};
    if (to.x - at.x < 40 || to.y - at.y < 30) return;
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(at, to, theme::packed(theme::raised, 0.4f));
    const auto rows = view_.counts.extent(0), columns = view_.counts.extent(1);
    const ImVec2 step{(to.x - at.x) / static_cast<float>(columns), (to.y - at.y) / static_cast<float>(rows)};
    ImGui::SetCursorScreenPos(at);
    ImGui::InvisibleButton("scatter", {to.x - at.x, to.y - at.y});
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const float count = view_.counts.values[static_cast<std::size_t>(row * columns + column)];
        if (std::isnan(count)) continue;
        const ImVec2 corner{at.x + static_cast<float>(column) * step.x,
                            at.y + static_cast<float>(row) * step.y};
        list->AddRectFilled(corner, {corner.x + step.x + 0.5f, corner.y + step.y + 0.5f},
                            theme::packed(scale_colour(scale_, static_cast<double>(count)), brightness()));
      }
    }
    draw_axes(list, at, to, from);
    if (ImGui::IsItemHovered()) hover(at, step, rows, columns);
    colour_bar(graphics(), scale_, {to.x + 14, at.y}, to.y - at.y);
  }

  void draw_axes(ImDrawList* list, ImVec2 at, ImVec2 to, ImVec2 from) {
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    for (const Tick& tick : ticks(view_.low_score, view_.high_score, false, 6)) {
      const float x = at.x + static_cast<float>(tick.position) * (to.x - at.x);
      list->AddLine({x, to.y}, {x, to.y + 3}, theme::packed(theme::faint));
      list->AddText({x - ImGui::CalcTextSize(tick.text.c_str()).x / 2, to.y + 3}, theme::packed(theme::quiet),
                    tick.text.c_str());
    }
    for (const Tick& tick : ticks(view_.low_weight, view_.high_weight, view_.logarithmic, 5)) {
      const float y = to.y - static_cast<float>(tick.position) * (to.y - at.y);
      list->AddLine({at.x - 3, y}, {at.x, y}, theme::packed(theme::faint));
      list->AddText({at.x - 5 - ImGui::CalcTextSize(tick.text.c_str()).x, y - 6}, theme::packed(theme::quiet),
                    tick.text.c_str());
    }
    ImGui::PopFont();
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const char* const label = "q·k/√d";
    list->AddText({(at.x + to.x - ImGui::CalcTextSize(label).x) / 2, to.y + 14}, theme::packed(theme::quiet),
                  label);
    list->AddText({from.x, to.y + 14}, theme::packed(theme::quiet),
                  view_.logarithmic ? "weight (log)" : "weight");
    ImGui::PopFont();
  }

  void hover(ImVec2 at, ImVec2 step, std::int64_t rows, std::int64_t columns) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const auto column =
        std::clamp(static_cast<std::int64_t>((mouse.x - at.x) / step.x), std::int64_t{0}, columns - 1);
    const auto row =
        std::clamp(static_cast<std::int64_t>((mouse.y - at.y) / step.y), std::int64_t{0}, rows - 1);
    const float count = view_.counts.values[static_cast<std::size_t>(row * columns + column)];
    const double score = view_.low_score + (static_cast<double>(column) + 0.5) /
                                               static_cast<double>(columns) *
                                               (view_.high_score - view_.low_score);
    ImGui::SetTooltip("q·k/√d %s\n%s pairs of tokens", number_text(score, 3).c_str(),
                      std::isnan(count) ? "no" : fmt::format("{:.0f}", count).c_str());
  }

  std::vector<std::shared_ptr<const RunResult>> keep_;
  const RunResult* run_ = nullptr;         // one of keep_
  const WeightsResult* weights_ = nullptr; // of run_
  int head_ = 0;
  ScatterView view_;
  Scale scale_;
  std::string error_;
  HeadTableView table_;
  std::string caption_; // of table_
};

} // namespace

std::unique_ptr<Panel> make_monotonicity_panel(PanelServices services) {
  return std::make_unique<MonotonicityPanel>(services);
}

} // namespace hydrascope::app
