// The attention weights of the selected layer for several kernels on the same q and k, side by side, zoomed
// and panned together; or all heads of all layers as thumbnails.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/panels/weights/weights_column.h"
#include "app/panels/weights/weights_overview.h"
#include "app/panels/weights/weights_toolbar.h"
#include "app/ui/widgets.h"
#include "app/views/weights_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

// Why the maps have a scale each; empty if they can share one.
const char* why_not_shared(std::span<const WeightsColumn> columns) {
  const auto has_sign = [](const WeightsColumn& column) { return !column.empty() && column.is_signed(); };
  const auto alike = std::ranges::count_if(
      columns, [](const WeightsColumn& column) { return !column.empty() && !column.is_signed(); });
  if (columns.empty() || alike > 1) return "";
  return std::ranges::any_of(columns, has_sign)
             ? "Signed weights have a scale of their own, and no two other maps are shown"
             : "One map alone has its own scale";
}

bool by_tiles(const Document& document) { return likely_tokens(document) > most_tokens_whole; }

WeightsKey weights_key(const Document& document, const ColumnSource& source) {
  return {.layer = document.scene().layer,
          .kernel = source.kernel,
          .teacher_forced = document.view.teacher_forced,
          .value_weighted = document.view.value_weighted};
}

class WeightsPanel final : public Panel {
public:
  explicit WeightsPanel(PanelServices services) : Panel("weights", "Weights", services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    if (document.view.all_heads) {
      return request_sides(
          document, [&](const Document& side, bool) { WeightsOverview::add_keys(side, requested.then); });
    }
    requested.first.add(queries_and_keys(document));
    if (by_tiles(document)) {
      for (const WeightsColumn& column : columns_) column.tiles().add_keys(requested.first, editor().clock());
      return;
    }
    for (const ColumnSource& source : column_sources(document))
      requested.first.add(weights_key(document, source));
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const RunResult* any = snapshot.present().any();
    failure_ = any == nullptr ? snapshot.failure(edited_side(document.view)) : "";
    if (any == nullptr) return clear();
    if (document.view.all_heads) return prepare_overview(snapshot);
    if (any->tokens.size() != tokens_) zoom_ = {};
    tokens_ = any->tokens.size();
    if (!prepare_columns(snapshot)) return; // keep the last matrices
    of_sides_ = shows_both(document.view);
    vectors_ = find(snapshot.shown(), queries_and_keys(document)).result;
    runs_ = snapshot.present().parts;
    run_ = any;
    if (document.view.shared_scale) share_scale(columns_);
    prepare_figure(document);
  }

  void draw() override {
    const bool all_heads = document().view.all_heads;
    draw_weights_toolbar(editor(), zoom_, all_heads ? "" : why_not_shared(columns_));
    if (all_heads) return draw_overview();
    const bool all_empty = std::ranges::all_of(
        columns_, [](const WeightsColumn& column) { return column.empty() && column.error().empty(); });
    if (all_empty) {
      empty_notice(graphics(), failure_.empty()
                                   ? "Attention weights of the selected layer, once the model has run."
                                   : failure_);
      return;
    }
    draw_columns();
  }

  void draw_menu() override {
    if (document().view.all_heads) menu_.draw(editor());
  }

  std::optional<Figure> figure() const override {
    if (!document().view.all_heads) return figure_.panels.empty() ? std::nullopt : std::optional(figure_);
    const auto shown = overview_.shown(); // a figure has one grid
    const auto first = std::ranges::find_if_not(shown, &WeightsOverview::empty);
    return first == shown.end() ? std::nullopt : std::optional(first->figure(document()));
  }

private:
  void clear() {
    columns_.clear();
    figure_ = {};
    vectors_ = nullptr;
    run_ = nullptr;
    overview_ = {};
  }

  // A column for each compared kernel, or for A, B and A − B. Returns false if a result is missing.
  bool prepare_columns(const Snapshot& snapshot) {
    const Document& document = *snapshot.document;
    const WeightsOptions options{.head = document.scene().head,
                                 .shared_scale = document.view.shared_scale,
                                 .logarithmic = document.view.logarithmic,
                                 .value_weighted = document.view.value_weighted,
                                 .percentile = document.view.percentile,
                                 .tokens = document.view.tokens,
                                 .map = document.view.cividis ? ColourMap::cividis : ColourMap::viridis};
    const std::vector<ColumnSource> sources = column_sources(document);
    const bool ready = by_tiles(document) ? prepare_tiles(snapshot, sources, options)
                                          : prepare_whole(snapshot, sources, options);
    if (!ready || !shows_both(document.view)) return ready;
    columns_.resize(3);
    columns_[2].subtract(columns_[0], columns_[1]);
    if (document.view.shown == Shown::difference) columns_.erase(columns_.begin(), columns_.begin() + 2);
    return true;
  }

  bool prepare_whole(const Snapshot& snapshot, const std::vector<ColumnSource>& sources,
                     const WeightsOptions& options) {
    const Document& document = *snapshot.document;
    std::vector<Found<WeightsKey>> found;
    const WeightsResult* softmax = nullptr;
    for (const ColumnSource& source : sources) {
      found.push_back(find(snapshot.of(source.side), weights_key(document, source)));
      if (!found.back() && why_none(snapshot, source.side).empty()) return false;
      // A divergence needs weights on the same q and k.
      if (!shows_both(document.view) && source.kernel == KernelSpec{}) softmax = found.back().result;
    }
    columns_.resize(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i]) {
        columns_[i].show(found[i], softmax, options);
      } else {
        columns_[i].show_none(sources[i].kernel, why_none(snapshot, sources[i].side));
      }
    }
    return true;
  }

  bool prepare_tiles(const Snapshot& snapshot, const std::vector<ColumnSource>& sources,
                     const WeightsOptions& options) {
    const Document& document = *snapshot.document;
    const Scene& scene = document.scene();
    if (snapshot.present().stale && std::ranges::any_of(columns_, &WeightsColumn::tiled)) return false;
    columns_.resize(sources.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const int heads = kernel_heads(document, sources[i].kernel);
      std::vector<int> shown = shown_heads(scene.head, heads);
      if (shown.empty()) {
        columns_[i].show_no_tiles(sources[i].kernel, heads, scene.head);
        continue;
      }
      WeightsTiles::Source source;
      source.key = request_key(document, sources[i].side);
      source.layer = scene.layer;
      source.kernel = sources[i].kernel;
      source.teacher_forced = document.view.teacher_forced;
      source.value_weighted = document.view.value_weighted;
      if (static_cast<int>(shown.size()) < heads) source.heads = std::move(shown);
      source.fusion = scene.head.fusion;
      source.tokens = static_cast<std::int64_t>(snapshot.present().any()->tokens.size());
      source.first_key = queries_alone(*scene.model);
      source.causal = is_causal(*scene.model);
      const SideResults& results = snapshot.of(sources[i].side);
      columns_[i].tiles().set_source(source);
      if (results.any() != nullptr) columns_[i].show_tiles(results, options, editor().clock());
      std::string why = why_none(snapshot, sources[i].side);
      if (results.any() == nullptr || (columns_[i].empty() && !why.empty())) {
        columns_[i].show_none(sources[i].kernel, std::move(why));
        // Still requested: a failure is forgotten once what has failed is no longer asked for.
        columns_[i].tiles().set_source(source);
      }
    }
    return true;
  }

  void prepare_overview(const Snapshot& snapshot) {
    overview_.prepare(snapshot);
    const auto shown = overview_.shown();
    const ViewOptions& view = snapshot.document->view;
    if (shown.size() > 1 && view.shared_scale) WeightsOverview::share_scale(shown[0], shown[1], view);
  }

  void prepare_figure(const Document& document) {
    figure_ = {};
    figure_.title = fmt::format("{} · layer {} · {}", run_->model.name, document.scene().layer,
                                document.scene().head.text());
    if (is_causal(run_->model)) figure_.subtitle = causal_note;
    figure_.columns = columns_.size() > 4 ? 3 : 0;
    for (const WeightsColumn& column : columns_) {
      if (column.panel() != nullptr) figure_.panels.emplace_back(*column.panel());
    }
  }

  void draw_overview() {
    const bool alone = overview_.shown().size() == 1;
    if (alone && sides_differ(document().scene())) small_text(graphics(), kernels_text(document()));
    constexpr float least_width = 160; // of the thumbnails of one side
    overview_.draw(
        graphics(),
        [&](WeightsOverview& overview) {
          if (overview.empty()) {
            empty_notice(graphics(), failure_.empty() ? overview.empty_reason() : failure_);
          } else {
            menu_.set_hovered(overview.draw(editor(), graphics(), brightness()));
          }
        },
        least_width);
  }

  void draw_columns() {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const auto count = static_cast<int>(columns_.size());
    // The number of rows that gives the largest maps.
    const float header = ImGui::GetFrameHeight() + 4 + ImGui::GetTextLineHeightWithSpacing();
    constexpr float axes = 40; // about what the names of queries and keys take of a map
    const bool one_scale = std::ranges::all_of(
        columns_, [](const WeightsColumn& column) { return !column.empty() && column.scale().shared; });
    constexpr float narrow = 220; // of a map: a bar's name would take what the map needs
    bar_width_ =
        room.x / static_cast<float>(std::max(count, 1)) < narrow ? narrow_colour_bar_width : colour_bar_width;
    int rows = 1;
    float largest = 0;
    for (int each = 1; each <= count; ++each) {
      const int places = (count + each - 1) / each;
      const auto across = static_cast<float>(places);
      const float bars = each == 1 && one_scale ? bar_width_ / across : bar_width_;
      const float side =
          std::min(room.x / across - bars - theme::grid, room.y / static_cast<float>(each) - header - 4) -
          axes;
      if (side > largest) {
        largest = side;
        rows = each;
      }
    }
    const int across = (count + rows - 1) / rows;
    const bool one_bar = rows == 1 && one_scale;
    const float bars = one_bar ? bar_width_ : bar_width_ * static_cast<float>(across);
    const float width =
        (room.x - bars - theme::grid * static_cast<float>(across - 1)) / static_cast<float>(across);
    const float step = width + theme::grid + (one_bar ? 0 : bar_width_);
    const float height = room.y / static_cast<float>(rows);
    for (int position = 0; position < count; ++position) {
      const int row = position / across, place = position % across;
      const ImVec2 at{from.x + step * static_cast<float>(place), from.y + height * static_cast<float>(row)};
      draw_column(position, at, {width, height - 4}, !one_bar || position == count - 1);
    }
  }

  void draw_column(int position, ImVec2 from, ImVec2 size, bool with_bar) {
    WeightsColumn& column = columns_[static_cast<std::size_t>(position)];
    ImGui::PushID(position);
    const float line = ImGui::GetFrameHeight();
    const float heading = size.x + (with_bar ? bar_width_ : 0);
    draw_header(position, from, of_sides_ ? heading : size.x);
    ImGui::SetCursorScreenPos({from.x, from.y + line + 4});
    column.draw_caption(graphics(), heading);
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
    marks.row = column.row_of(query);
    marks.hovered_row = column.row_of(editor().hovered_token());
    const MatrixInput input = column.draw("map", graphics(), map_from, map_size, marks, brightness(), zoom_);
    if (column.tiled()) {
      column.tiles().set_view(zoom_, (input.to.x - input.from.x) * ImGui::GetIO().DisplayFramebufferScale.x,
                              editor().clock());
      if (column.tiles().will_refine(editor().clock())) editor().draw_soon();
    }
    if (with_bar)
      colour_bar(graphics(), column.scale(), {from.x + size.x + 10, map_from.y},
                 std::max(40.0f, input.to.y - input.from.y), Backdrop::matrix, bar_width_);
    if (input.hovered) hover(column, *input.hovered);
    if (input.clicked)
      select_pair(editor(), column.row_token(input.clicked->row).first,
                  column.column_token(input.clicked->column).first);
    ImGui::PopID();
  }

  // The choice of the kernel, or the name of the side and its kernel.
  void draw_header(int position, ImVec2 from, float width) {
    const WeightsColumn& column = columns_[static_cast<std::size_t>(position)];
    if (of_sides_ != shows_both(document().view)) { // the last matrices, until there are new ones
      ImGui::SetCursorScreenPos({from.x, from.y + 4});
      return ellipsis_text(column.kernel_text(), width);
    }
    if (of_sides_) {
      ImGui::SetCursorScreenPos({from.x, from.y + 4});
      side_heading(graphics(), column.is_difference() ? Shown::difference
                               : position == 0        ? Shown::a
                                                      : Shown::b);
      ImGui::SameLine(0, 24);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      kernel_square(ImGui::GetWindowDrawList(), {at.x - 11, from.y + 4 + ImGui::GetTextLineHeight() / 2}, 10,
                    column.kernel().name);
      return ellipsis_text(column.kernels(), from.x + width - at.x);
    }
    const KernelSpec kernel = compared_kernel(document(), position);
    const float line = ImGui::GetFrameHeight();
    const bool more = document().scene().comparison.size() > 1;
    kernel_square(ImGui::GetWindowDrawList(), {from.x + 6, from.y + line / 2}, 10, kernel.name);
    ImGui::SetCursorScreenPos({from.x + 18, from.y});
    const int picked = kernel_combo("##kernel", kernel.label(), position > 0,
                                    width - 18 - (more ? line + 2 : 0), editor().list_search());
    if (ImGui::IsItemHovered()) text_tooltip(kernel.label()); // the name may be cut off
    if (picked == -1) compare_kernel(editor(), position, std::nullopt);
    if (picked >= 0) {
      compare_kernel(
          editor(), position,
          KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
    }
    if (!more) return;
    ImGui::SetCursorScreenPos({from.x + width - line, from.y});
    if (ImGui::Button("×##drop", {line, line})) drop_compared_kernel(editor(), position);
    if (ImGui::IsItemHovered()) text_tooltip(fmt::format("Take {} from the comparison", kernel.label()));
  }

  // q·k of one head, which is the same for every kernel.
  std::string scores(std::int64_t query, std::int64_t key) const {
    const std::optional<int> head = document().scene().head.head;
    if (!head || vectors_ == nullptr || *head >= vectors_->q.extent(0) || query >= vectors_->q.extent(1))
      return {};
    const auto width = static_cast<std::size_t>(vectors_->q.extent(2));
    const auto q = vectors_->q.slice(*head).subspan(static_cast<std::size_t>(query) * width, width);
    const auto k = vectors_->k.slice(*head).subspan(static_cast<std::size_t>(key) * width, width);
    double score = 0;
    for (std::size_t f = 0; f < width; ++f) score += static_cast<double>(q[f]) * static_cast<double>(k[f]);
    return fmt::format("\nq·k {}   q·k/√d {}", number_text(score),
                       number_text(score / std::sqrt(static_cast<double>(width))));
  }

  // The tooltip of a cell, for all kernels.
  void hover(const WeightsColumn& column, Cell cell) {
    const ShownToken query = column.row_token(cell.row), key = column.column_token(cell.column);
    editor().hover(query.first, query.count);
    const auto name = [&](const ShownToken& token) {
      return token.count > 1 ? fmt::format("“{}”", token.text) : token_name(*run_, token.first);
    };
    std::string text = fmt::format("query {}\nkey {}", name(query), name(key));
    if (query.count == 1 && key.count == 1 && !shows_both(document().view))
      text += scores(query.first, key.first);
    for (const WeightsColumn& each : columns_) {
      if (!each.empty()) text += fmt::format("\n{}: {}", each.kernel_text(), each.cell_text(cell));
    }
    text_tooltip(text);
  }

  std::vector<std::shared_ptr<const RunResult>> runs_;
  const RunResult* run_ = nullptr;         // one of runs_
  const VectorsResult* vectors_ = nullptr; // in runs_; null until they are there
  std::vector<WeightsColumn> columns_;
  SideColumns<WeightsOverview> overview_;
  HeadMenu menu_;
  std::string failure_;                // why there are no matrices at all; empty: none have come yet
  bool of_sides_ = false;              // the columns are A, B and A − B, or one of these
  float bar_width_ = colour_bar_width; // of each colour bar, with the gap before it
  MapZoom zoom_;
  std::size_t tokens_ = 0; // of the matrix that zoom_ refers to
  Figure figure_;
};

} // namespace

std::unique_ptr<Panel> make_weights_panel(PanelServices services) {
  return std::make_unique<WeightsPanel>(services);
}

} // namespace hydrascope::app
