// The attention weights of the selected layer and head under two kernels, side by side on the same q and k.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/heat_map_view.h"
#include "app/panels/panels.h"
#include "app/panels/token_names.h"
#include "app/state/edits.h"
#include "app/views/weights_view.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

struct Half {
  HeatMapView view;
  std::string kernel; // written form
  std::string error;  // why there is nothing to show
  bool signed_weights = false, untrained = false;
  std::string measures; // entropy, KL
};

class WeightsPanel final : public Panel {
public:
  explicit WeightsPanel(PanelServices services) : Panel("weights", "Weights", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    for (const int position : {0, 1}) {
      add_weights(wants.first, document.scene().layer, compared_kernel(document, position),
                  document.view.teacher_forced);
    }
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const Scene& scene = document.scene();
    const RunResult* any = snapshot.shown().any();
    if (any == nullptr || (any->rows > 0) != (document.kind == InputKind::image)) return clear();
    std::array<FoundWeights, 2> found;
    for (const int position : {0, 1}) {
      found[static_cast<std::size_t>(position)] = find_weights(
          snapshot.shown(), scene.layer, compared_kernel(document, position), document.view.teacher_forced);
    }
    if (found[0].weights == nullptr || found[1].weights == nullptr) return; // the last good picture stays
    keep_ = snapshot.shown().parts;
    run_ = found[0].run;
    const WeightsOptions options{.head = scene.head,
                                 .shared_scale = document.view.shared_scale,
                                 .logarithmic = document.view.logarithmic};
    const WeightsResult* softmax = nullptr;
    for (const auto& one : found) {
      if (one.weights->kernel == KernelSpec{}) softmax = one.weights;
    }
    for (std::size_t i = 0; i < 2; ++i) prepare_half(halves_[i], found[i], softmax, options);
    if (options.shared_scale && !halves_[0].signed_weights && !halves_[1].signed_weights) share_scale();
    prepare_figure(found, options);
  }

  void draw() override {
    draw_toolbar();
    if (halves_[0].view.empty() && halves_[1].view.empty()) {
      const std::string& error = halves_[0].error.empty() ? halves_[1].error : halves_[0].error;
      empty_notice(graphics(), error.empty()
                                   ? "Attention weights of the selected layer, once the model has run."
                                   : error);
      return;
    }
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const bool one_bar = halves_[0].view.panel().scale.shared && halves_[1].view.panel().scale.shared;
    const float bars = one_bar ? colour_bar_width : 2 * colour_bar_width;
    const float half_width = (room.x - bars - theme::grid) / 2;
    const float second = half_width + theme::grid + (one_bar ? 0 : colour_bar_width);
    for (const int position : {0, 1}) {
      const float x = from.x + (position == 0 ? 0 : second);
      draw_half(position, {x, from.y}, {half_width, room.y}, position == 1 || !one_bar);
    }
  }

  std::optional<Figure> figure() const override {
    if (halves_[0].view.empty()) return std::nullopt;
    return figure_;
  }

private:
  void clear() {
    for (Half& half : halves_) {
      half.view.clear();
      half.error.clear();
    }
  }

  void prepare_half(Half& half, const FoundWeights& found, const WeightsResult* softmax,
                    const WeightsOptions& options) {
    half.kernel = found.weights->kernel.text();
    half.signed_weights = found.weights->derived_signed;
    half.untrained = found.weights->untrained;
    half.error.clear();
    half.measures.clear();
    try {
      half.view.set(weights_panel(*found.run, *found.weights, softmax, options));
      if (const auto entropy = weights_entropy(*found.weights, options.head)) {
        half.measures = fmt::format("entropy {:.2f} nats", *entropy);
      }
      if (softmax != nullptr && softmax != found.weights) {
        const auto divergence = weights_divergence(*softmax, *found.weights, options.head);
        if (divergence) half.measures += fmt::format("   KL {:.3f} nats", *divergence);
      }
      if (!half.measures.empty()) half.measures += "   ";
      half.measures += fmt::format("|weights × V − output| ≤ {:.0e}, {} rows", found.weights->check,
                                   found.weights->rows.size());
    } catch (const std::exception& error) {
      half.view.clear();
      half.error = error.what();
    }
  }

  void share_scale() {
    double high = 0, low = 0;
    for (const Half& half : halves_) {
      if (half.view.empty()) return;
      high = std::max(high, half.view.panel().scale.high);
      low = half.view.panel().scale.logarithmic ? std::max(low, half.view.panel().scale.low)
                                                : half.view.panel().scale.low;
    }
    for (Half& half : halves_) {
      HeatMapPanel panel = half.view.panel();
      panel.scale.high = high;
      panel.scale.low = low;
      panel.scale.shared = true;
      half.view.set(std::move(panel));
    }
  }

  void prepare_figure(const std::array<FoundWeights, 2>& found, const WeightsOptions& options) {
    figure_ = {};
    figure_.title = fmt::format("{}, layer {}, {}", found[0].run->model.name, found[0].weights->layer,
                                options.head.text());
    for (const Half& half : halves_) {
      if (!half.view.empty()) figure_.panels.emplace_back(half.view.panel());
    }
  }

  void draw_toolbar() {
    const Scene& scene = document().scene();
    const int heads = scene.model ? scene.model->heads : 0;
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "layer %d", scene.layer);
    ImGui::SameLine(0, 12);
    ImGui::SetNextItemWidth(124);
    if (ImGui::BeginCombo("##head", scene.head.text().c_str(), ImGuiComboFlags_HeightLarge)) {
      for (int head = 0; head < heads; ++head) {
        const HeadChoice choice{.head = head, .fusion = HeadFusion::mean};
        if (ImGui::Selectable(choice.text().c_str(), scene.head == choice)) select_head(editor(), choice);
      }
      for (const HeadFusion fusion : {HeadFusion::mean, HeadFusion::min, HeadFusion::max}) {
        const HeadChoice choice{.head = std::nullopt, .fusion = fusion};
        if (ImGui::Selectable(choice.text().c_str(), scene.head == choice)) select_head(editor(), choice);
      }
      ImGui::EndCombo();
    }
    same_line_if_fits(104);
    const ViewOptions& view = document().view;
    static constexpr std::array<const char*, 2> scales = {"linear", "log"};
    const int scale = segmented("scale", scales, view.logarithmic ? 1 : 0);
    if (scale >= 0)
      change_view(editor(), "Logarithmic weights", [&](ViewOptions& v) { v.logarithmic = scale == 1; });
    same_line_if_fits(190);
    static constexpr std::array<const char*, 2> forced = {"in place", "teacher-forced"};
    const int force = segmented("forced", forced, view.teacher_forced ? 1 : 0);
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip(
          "in place: q and k of this run\nteacher-forced: q and k of the run with softmax in every layer");
    if (force >= 0)
      change_view(editor(), "Teacher-forced", [&](ViewOptions& v) { v.teacher_forced = force == 1; });
  }

  void draw_half(int position, ImVec2 from, ImVec2 size, bool with_bar) {
    Half& half = halves_[static_cast<std::size_t>(position)];
    ImGui::PushID(position);
    ImGui::SetCursorScreenPos(from);
    const float height = ImGui::GetFrameHeight();
    kernel_square(ImGui::GetWindowDrawList(), {from.x + 6, from.y + height / 2}, 10,
                  half.kernel.substr(0, half.kernel.find(':')));
    ImGui::SetCursorScreenPos({from.x + 18, from.y});
    const int picked = kernel_combo("##kernel", half.kernel, position == 1, size.x - 18);
    if (picked == -1) compare_kernel(editor(), position, std::nullopt);
    if (picked >= 0) {
      compare_kernel(
          editor(), position,
          KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
    }
    ImGui::SetCursorScreenPos({from.x, from.y + height + 4});
    draw_half_caption(half, size.x);
    const float top = height + 4 + ImGui::GetTextLineHeightWithSpacing();
    const ImVec2 map_from{from.x, from.y + top};
    const ImVec2 map_size{size.x, std::min(size.y - top, size.x)};
    if (half.view.empty()) {
      ImGui::SetCursorScreenPos(map_from);
      ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
      small_text(graphics(), half.error);
      ImGui::PopTextWrapPos();
      ImGui::PopID();
      return;
    }
    HeatMapView::Marks marks;
    if (run_ != nullptr && run_->query) marks.row = static_cast<int>(*run_->query);
    if (editor().hovered_token()) marks.hovered_row = static_cast<int>(*editor().hovered_token());
    const auto input = half.view.draw("map", graphics(), map_from, map_size, marks, brightness());
    if (with_bar)
      colour_bar(graphics(), half.view.panel().scale, {from.x + size.x + 10, map_from.y},
                 std::max(40.0f, input.to.y - input.from.y));
    if (input.hovered) hover(*input.hovered);
    if (input.clicked) select_query(editor(), input.clicked->row);
    ImGui::PopID();
  }

  void draw_half_caption(const Half& half, float width) {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    if (half.untrained || half.signed_weights) {
      const std::string label = half.signed_weights
                                    ? (half.untrained ? "derived, signed; untrained" : "derived, signed")
                                    : "untrained";
      ImGui::TextColored(theme::amber, "%s", label.c_str());
      if (half.signed_weights && ImGui::IsItemHovered()) {
        ImGui::SetTooltip(
            "This kernel never forms such a matrix: shown is the sum over the features of each\noriginal "
            "head "
            "of φ(Q)_f φ(K)_fᵀ, which has signs and rows that do not sum to 1.");
      }
      ImGui::SameLine(0, 8);
      width -= ImGui::GetItemRectSize().x + 8;
    }
    ellipsis_text(half.measures.empty() ? " " : half.measures, std::max(width, 24.0f), theme::quiet);
    ImGui::PopFont();
  }

  // Weight, rank in its row and the row's sum of the cell under the pointer, for both kernels.
  void hover(Cell cell) {
    editor().hover(cell.row);
    std::string text =
        fmt::format("query {}\nkey {}", token_name(*run_, cell.row), token_name(*run_, cell.column));
    for (const Half& each : halves_) {
      if (each.view.empty()) continue;
      const auto columns = static_cast<int>(each.view.panel().values.shape[1]);
      const float weight = each.view.value(cell.row, cell.column);
      int rank = 1;
      double sum = 0;
      for (int column = 0; column < columns; ++column) {
        const float other = each.view.value(cell.row, column);
        sum += static_cast<double>(other);
        if (other > weight) ++rank;
      }
      text += fmt::format("\n{}: weight {}, rank {} of {}, row sum {}", each.kernel,
                          number_text(static_cast<double>(weight), 4), rank, columns, number_text(sum, 4));
    }
    text_tooltip(text);
  }

  std::vector<std::shared_ptr<const RunResult>> keep_;
  const RunResult* run_ = nullptr; // one of keep_
  std::array<Half, 2> halves_;
  Figure figure_;
};

} // namespace

std::unique_ptr<Panel> make_weights_panel(PanelServices services) {
  return std::make_unique<WeightsPanel>(services);
}

} // namespace hydrascope::app
