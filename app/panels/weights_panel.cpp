// The attention weights of the selected layer under as many kernels as chosen, side by side on the same q and
// k, zoomed and panned together; or every head of every layer as thumbnails.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/head_choice.h"
#include "app/panels/panels.h"
#include "app/panels/token_names.h"
#include "app/panels/weights_column.h"
#include "app/panels/weights_overview.h"
#include "app/state/edits.h"
#include "app/views/weights_view.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

// Before a run has said it: how many tokens the input will have at most.
std::int64_t expected_tokens(const Document& document) {
  const ModelInfo& model = *document.scene().model;
  if (model.input == InputKind::text) return model.max_tokens;
  const std::int64_t side =
      document.execution.image_size.value_or(model.image_size) / std::max(model.patch_size, 1);
  return side * side + model.prefix_tokens;
}

bool by_tiles(const Document& document) { return expected_tokens(document) > most_tokens_whole; }

// q and k of every head, for q·k under the pointer; softmax has no feature map that would come with them.
VectorsAsk queries_and_keys(const Document& document) {
  VectorsAsk ask;
  ask.layer = document.scene().layer;
  ask.kernels = {KernelSpec{}};
  ask.teacher_forced = document.view.teacher_forced;
  return ask;
}

class WeightsPanel final : public Panel {
public:
  explicit WeightsPanel(PanelServices services) : Panel("weights", "Weights", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    const Scene& scene = document.scene();
    if (!scene.model) return;
    if (document.view.all_heads) return overview_.ask(document, wants.then);
    add_vectors(wants.first, queries_and_keys(document));
    if (!by_tiles(document)) {
      for (std::size_t i = 0; i < scene.comparison.size(); ++i)
        add_weights(wants.first, scene.layer, compared_kernel(document, static_cast<int>(i)),
                    document.view.teacher_forced);
      return;
    }
    for (const WeightsColumn& column : columns_) column.tiles().ask(wants.first, editor().clock());
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const RunResult* any = snapshot.shown().any();
    if (any == nullptr || !document.scene().model || (any->rows > 0) != (document.kind == InputKind::image))
      return clear();
    if (document.view.all_heads) return overview_.prepare(snapshot.shown(), document);
    if (any->tokens.size() != tokens_) zoom_ = {};
    tokens_ = any->tokens.size();
    const WeightsOptions options{.head = document.scene().head,
                                 .shared_scale = document.view.shared_scale,
                                 .logarithmic = document.view.logarithmic,
                                 .percentile = document.view.percentile};
    const bool ready =
        by_tiles(document) ? prepare_tiles(snapshot, options) : prepare_whole(snapshot, options);
    if (!ready) return; // the last good picture stays
    const FoundVectors vectors = find_vectors(snapshot.shown(), queries_and_keys(document));
    vectors_ = vectors.vectors;
    keep_ = snapshot.shown().parts;
    run_ = any;
    if (options.shared_scale) share_scale();
    prepare_figure(document);
  }

  void draw() override {
    draw_toolbar();
    if (document().view.all_heads) {
      if (overview_.empty()) {
        empty_notice(graphics(), "The weights of every head of every layer, once the model has run.");
      } else {
        overview_.draw(editor(), graphics(), brightness());
      }
      return;
    }
    const bool nothing = std::ranges::all_of(
        columns_, [](const WeightsColumn& column) { return column.empty() && column.error().empty(); });
    if (nothing) {
      empty_notice(graphics(), "Attention weights of the selected layer, once the model has run.");
      return;
    }
    draw_columns();
  }

  std::optional<Figure> figure() const override {
    if (document().view.all_heads)
      return overview_.empty() ? std::nullopt : std::optional(overview_.figure(document()));
    if (figure_.panels.empty()) return std::nullopt;
    return figure_;
  }

private:
  void clear() {
    columns_.clear();
    figure_ = {};
    vectors_ = nullptr;
    run_ = nullptr;
  }

  bool prepare_whole(const Snapshot& snapshot, const WeightsOptions& options) {
    const Document& document = *snapshot.document;
    std::vector<FoundWeights> found;
    const WeightsResult* softmax = nullptr;
    for (std::size_t i = 0; i < document.scene().comparison.size(); ++i) {
      found.push_back(find_weights(snapshot.shown(), document.scene().layer,
                                   compared_kernel(document, static_cast<int>(i)),
                                   document.view.teacher_forced));
      if (found.back().weights == nullptr) return false;
      if (found.back().weights->kernel == KernelSpec{}) softmax = found.back().weights;
    }
    columns_.resize(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) columns_[i].show(found[i], softmax, options);
    return true;
  }

  bool prepare_tiles(const Snapshot& snapshot, const WeightsOptions& options) {
    const Document& document = *snapshot.document;
    const Scene& scene = document.scene();
    if (snapshot.shown().stale && !columns_.empty() && columns_.front().tiled()) return false;
    columns_.resize(scene.comparison.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      WeightsTiles::Source source;
      source.key = request_key(document, edited_side(document.view));
      source.layer = scene.layer;
      source.kernel = compared_kernel(document, static_cast<int>(i));
      source.teacher_forced = document.view.teacher_forced;
      source.heads = shown_heads(scene.head, scene.model->heads);
      source.fusion = scene.head.fusion;
      source.tokens = static_cast<std::int64_t>(snapshot.shown().any()->tokens.size());
      columns_[i].tiles().aim(source);
      columns_[i].show_tiles(snapshot.shown(), options, editor().clock());
    }
    return true;
  }

  void share_scale() {
    double high = 0;
    for (const WeightsColumn& column : columns_) {
      if (!column.empty() && !column.is_signed()) high = std::max(high, column.scale().high);
    }
    for (WeightsColumn& column : columns_) {
      if (column.empty() || column.is_signed()) continue;
      Scale scale = column.scale();
      scale.high = high;
      scale.low = scale.logarithmic ? high * 1e-4 : 0;
      scale.shared = columns_.size() > 1;
      column.set_scale(scale);
    }
  }

  void prepare_figure(const Document& document) {
    figure_ = {};
    figure_.title = fmt::format("{}, layer {}, {}", run_->model.name, document.scene().layer,
                                document.scene().head.text());
    figure_.columns = columns_.size() > 4 ? 3 : 0;
    for (const WeightsColumn& column : columns_) {
      if (column.panel() != nullptr) figure_.panels.emplace_back(*column.panel());
    }
  }

  void draw_toolbar() {
    const ViewOptions& view = document().view;
    ImGui::AlignTextToFramePadding();
    if (!view.all_heads) {
      ImGui::TextColored(theme::quiet, "layer %d", document().scene().layer);
      ImGui::SameLine(0, 12);
      head_combo(editor(), 124);
      same_line_if_fits(134);
    }
    static constexpr std::array<const char*, 2> extents = {"one head", "all heads"};
    const int extent = segmented("extent", extents, view.all_heads ? 1 : 0);
    if (extent >= 0)
      change_view(editor(), "One head or all", [&](ViewOptions& v) { v.all_heads = extent == 1; });
    same_line_if_fits(170);
    static constexpr std::array<const char*, 3> scales = {"linear", "log", "99 %"};
    const int scale = segmented("scale", scales, view.logarithmic ? 1 : view.percentile ? 2 : 0);
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("99 %%: the scale ends at the 99th percentile of the weights");
    if (scale >= 0) {
      change_view(editor(), "Scale of the weights", [&](ViewOptions& v) {
        v.logarithmic = scale == 1;
        v.percentile = scale == 2;
      });
    }
    same_line_if_fits(110);
    static constexpr std::array<const char*, 2> ranges = {"own", "shared"};
    const int range = segmented("range", ranges, view.shared_scale ? 1 : 0);
    if (range >= 0)
      change_view(editor(), "Own or shared scale", [&](ViewOptions& v) { v.shared_scale = range == 1; });
    same_line_if_fits(190);
    forced_choice(editor());
    if (view.all_heads) return;
    same_line_if_fits(90);
    if (ImGui::Button("+ kernel")) add_compared_kernel(editor(), next_kernel());
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Compare with one more kernel");
    if (!(zoom_ == MapZoom{})) {
      ImGui::SameLine(0, 8);
      if (ImGui::Button("whole")) zoom_ = {};
      if (ImGui::IsItemHovered()) ImGui::SetTooltip("Show the whole matrix again (double-click)");
    }
  }

  // The first of the registry that is not among them.
  KernelSpec next_kernel() const {
    const auto count = static_cast<int>(document().scene().comparison.size());
    for (const KernelInfo& info : kernel_infos()) {
      bool there = false;
      for (int i = 0; i < count; ++i) there = there || compared_kernel(document(), i).name == info.name;
      if (!there) return {.name = info.name, .parameters = {}};
    }
    return {};
  }

  void draw_columns() {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const auto count = static_cast<int>(columns_.size());
    // As few rows as let the maps be as large as possible.
    const float header = ImGui::GetFrameHeight() + 4 + ImGui::GetTextLineHeightWithSpacing();
    int rows = 1;
    float largest = 0;
    for (int each = 1; each <= count; ++each) {
      const int across = (count + each - 1) / each;
      const float side = std::min(room.x / static_cast<float>(across) - colour_bar_width - theme::grid,
                                  room.y / static_cast<float>(each) - header - 4);
      if (side > largest) {
        largest = side;
        rows = each;
      }
    }
    const int across = (count + rows - 1) / rows;
    const bool one_bar = rows == 1 && std::ranges::all_of(columns_, [](const WeightsColumn& column) {
                           return !column.empty() && column.scale().shared;
                         });
    const float bars = one_bar ? colour_bar_width : colour_bar_width * static_cast<float>(across);
    const float width =
        (room.x - bars - theme::grid * static_cast<float>(across - 1)) / static_cast<float>(across);
    const float step = width + theme::grid + (one_bar ? 0 : colour_bar_width);
    const float height = room.y / static_cast<float>(rows);
    for (int position = 0; position < count; ++position) {
      const ImVec2 at{from.x + step * static_cast<float>(position % across),
                      from.y + height * static_cast<float>(position / across)};
      draw_column(position, at, {width, height - 4}, !one_bar || position == count - 1);
    }
  }

  void draw_column(int position, ImVec2 from, ImVec2 size, bool with_bar) {
    WeightsColumn& column = columns_[static_cast<std::size_t>(position)];
    ImGui::PushID(position);
    const float line = ImGui::GetFrameHeight();
    draw_header(position, from, size.x);
    ImGui::SetCursorScreenPos({from.x, from.y + line + 4});
    draw_caption(column, size.x);
    const float top = line + 4 + ImGui::GetTextLineHeightWithSpacing();
    const ImVec2 map_from{from.x, from.y + top};
    const ImVec2 map_size{size.x, std::min(size.y - top, size.x)};
    if (column.empty()) {
      ImGui::SetCursorScreenPos(map_from);
      ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
      small_text(graphics(), column.error());
      ImGui::PopTextWrapPos();
      ImGui::PopID();
      return;
    }
    MatrixMarks marks;
    const Scene& scene = document().scene();
    const auto query = scene.default_query ? run_->query : scene.query;
    if (query) marks.row = static_cast<int>(*query);
    if (editor().hovered_token()) marks.hovered_row = static_cast<int>(*editor().hovered_token());
    const MatrixInput input = column.draw("map", graphics(), map_from, map_size, marks, brightness(), zoom_);
    if (column.tiled()) {
      column.tiles().see(zoom_, (input.to.x - input.from.x) * ImGui::GetIO().DisplayFramebufferScale.x,
                         editor().clock());
      if (column.tiles().waits(editor().clock())) editor().shell.animate = true;
    }
    if (with_bar)
      colour_bar(graphics(), column.scale(), {from.x + size.x + 10, map_from.y},
                 std::max(40.0f, input.to.y - input.from.y));
    if (input.hovered) hover(*input.hovered);
    if (input.clicked) select_pair(editor(), input.clicked->row, input.clicked->column);
    ImGui::PopID();
  }

  void draw_header(int position, ImVec2 from, float width) {
    const KernelSpec kernel = compared_kernel(document(), position);
    const float line = ImGui::GetFrameHeight();
    const bool more = document().scene().comparison.size() > 1;
    kernel_square(ImGui::GetWindowDrawList(), {from.x + 6, from.y + line / 2}, 10, kernel.name);
    ImGui::SetCursorScreenPos({from.x + 18, from.y});
    const int picked =
        kernel_combo("##kernel", kernel.text(), position > 0, width - 18 - (more ? line + 2 : 0));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", kernel.text().c_str()); // its name may not fit
    if (picked == -1) compare_kernel(editor(), position, std::nullopt);
    if (picked >= 0) {
      compare_kernel(
          editor(), position,
          KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
    }
    if (!more) return;
    ImGui::SetCursorScreenPos({from.x + width - line, from.y});
    if (ImGui::Button("×##drop", {line, line})) drop_compared_kernel(editor(), position);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Take %s from the comparison", kernel.text().c_str());
  }

  void draw_caption(const WeightsColumn& column, float width) {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const std::string label = column.empty() ? "" : column.label();
    if (!label.empty()) {
      ImGui::TextColored(theme::amber, "%s", label.c_str());
      if (column.is_signed() && ImGui::IsItemHovered()) {
        ImGui::SetTooltip(
            "This kernel never forms such a matrix: shown is the sum over the features of each\noriginal "
            "head "
            "of φ(Q)_f φ(K)_fᵀ, which has signs and rows that do not sum to 1.");
      }
      ImGui::SameLine(0, 8);
      width -= ImGui::GetItemRectSize().x + 8;
    }
    ellipsis_text(column.measures().empty() ? " " : column.measures(), std::max(width, 24.0f), theme::quiet);
    ImGui::PopFont();
  }

  // Of one head: q·k, which is the same under every kernel.
  std::string scores(Cell cell) const {
    const std::optional<int> head = document().scene().head.head;
    if (!head || vectors_ == nullptr || *head >= vectors_->q.extent(0) || cell.row >= vectors_->q.extent(1))
      return {};
    const auto width = static_cast<std::size_t>(vectors_->q.extent(2));
    const auto q = vectors_->q.slice(*head).subspan(static_cast<std::size_t>(cell.row) * width, width);
    const auto k = vectors_->k.slice(*head).subspan(static_cast<std::size_t>(cell.column) * width, width);
    double score = 0;
    for (std::size_t f = 0; f < width; ++f) score += static_cast<double>(q[f]) * static_cast<double>(k[f]);
    return fmt::format("\nq·k {}   q·k/√d {}", number_text(score, 4),
                       number_text(score / std::sqrt(static_cast<double>(width)), 4));
  }

  // The cell under the pointer, for all kernels.
  void hover(Cell cell) {
    editor().hover(cell.row);
    std::string text =
        fmt::format("query {}\nkey {}", token_name(*run_, cell.row), token_name(*run_, cell.column));
    text += scores(cell);
    for (const WeightsColumn& each : columns_) {
      if (!each.empty()) text += fmt::format("\n{}: {}", each.kernel_text(), each.facts(cell));
    }
    text_tooltip(text);
  }

  std::vector<std::shared_ptr<const RunResult>> keep_;
  const RunResult* run_ = nullptr;         // one of keep_
  const VectorsResult* vectors_ = nullptr; // in keep_; null until they have come
  std::vector<WeightsColumn> columns_;
  WeightsOverview overview_;
  MapZoom zoom_;
  std::size_t tokens_ = 0; // that zoom_ is a part of
  Figure figure_;
};

} // namespace

std::unique_ptr<Panel> make_weights_panel(PanelServices services) {
  return std::make_unique<WeightsPanel>(services);
}

} // namespace hydrascope::app
