#include "app/panels/weights/weights_column.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/weights_check.h"
#include "app/views/weights_view.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

std::vector<ColumnSource> column_sources(const Document& document) {
  const Scene& scene = document.scene();
  std::vector<ColumnSource> sources;
  if (shows_both(document.view)) {
    const auto layer = static_cast<std::size_t>(scene.layer);
    for (const Side side : {Side::a, Side::b})
      sources.push_back({side, scene.schedules[static_cast<std::size_t>(side)].layers.at(layer)});
    return sources;
  }
  for (int i = 0; i < static_cast<int>(scene.comparison.size()); ++i)
    sources.push_back({edited_side(document.view), compared_kernel(document, i)});
  return sources;
}

namespace {

std::string check_tooltip(const WeightsResult& weights) {
  if (std::isnan(weights.check))
    return "Not checked against the kernel's output: the input is long, and these are few of its rows";
  const KernelInfo& info = kernel_info(weights.kernel);
  std::string text = fmt::format(
      "Checked over {} rows: {}\nagainst the kernel's output: {}", weights.rows.size(), checked_text(info),
      weights.check > 0 ? "the largest difference is " + number_text(weights.check) : "they are equal");
  if (info.implied_weights)
    text +=
        "\nNot checked: the map, the sum of these matrices over the features of each of\n"
        "the model's heads. The output is not made of it.";
  else if (weights.value_weighted)
    text += "\nThe map shows ‖α v W_o‖ of these weights α.";
  return text;
}

} // namespace

std::string WeightsColumn::kernels() const {
  if (!difference_ || kernel_ == other_) return kernel_.label();
  return kernel_.label() + " − " + other_.label();
}

std::string WeightsColumn::label() const {
  if (difference_) return untrained_ ? "untrained" : "";
  if (!signed_) return untrained_ ? "untrained" : "";
  const bool derived = kernel_info(kernel_).implied_weights;
  return std::string(derived ? "implied weights, signed" : "signed") + (untrained_ ? "; untrained" : "");
}

void WeightsColumn::clear() {
  view_.clear();
  tiles_ = {};
  error_.clear();
  measures_.clear();
}

void WeightsColumn::show(const Found<WeightsKey>& found, const WeightsResult* softmax,
                         const WeightsOptions& shown) {
  const auto own = weights_of_queries(*found.run, *found.result);
  const auto of_softmax =
      softmax == nullptr || softmax == found.result ? own : weights_of_queries(*found.run, *softmax);
  if (softmax != nullptr) softmax = of_softmax.get();
  const WeightsResult& weights = *own;
  WeightsOptions options = shown;
  first_key_ = queries_alone(found.run->model);
  if (first_key_ > 0) options.tokens = {}; // queries and keys are not words of one text
  tiled_ = false;
  difference_ = false;
  tiles_ = {};
  tokens_ = shown_tokens(*found.run, options.tokens);
  kernel_ = weights.kernel;
  causal_ = is_causal(found.run->model);
  value_weighted_ = weights.value_weighted;
  signed_ = weights.derived_signed && !weights.value_weighted;
  untrained_ = weights.untrained;
  error_.clear();
  measures_.clear();
  try {
    view_.set(weights_panel(*found.run, weights, softmax, options));
    if (softmax != nullptr && softmax != &weights) {
      const auto divergence = weights_divergence(*softmax, weights, options.head);
      if (divergence) measures_.push_back(fmt::format("KL {} nats", amount_text(*divergence)));
    }
    if (const auto entropy = weights_entropy(weights, options.head))
      measures_.push_back(fmt::format("entropy {} nats", amount_text(*entropy)));
    if (differs_from_output(weights))
      measures_.emplace_back(kernel_info(weights.kernel).implied_weights
                                 ? "its matrices × V differ from its output"
                                 : "weights × V differ from its output");
    // An adapter changes the queries and keys of its layer, for every kernel that is compared there.
    const KernelSpec& run_by = found.run->layers.at(static_cast<std::size_t>(weights.layer)).kernel;
    if (!weights.teacher_forced && run_by != weights.kernel)
      measures_.push_back(fmt::format("on {}'s queries and keys", run_by.label()));
    if (causal_) measures_.emplace_back("causal");
    measures_tooltip_ = check_tooltip(weights);
  } catch (const std::exception& error) { // the kernel lacks the head
    view_.clear();
    error_ = error_message(error);
  }
}

void WeightsColumn::subtract(const WeightsColumn& a, const WeightsColumn& b) {
  tiled_ = false;
  difference_ = true;
  kernel_ = a.kernel_;
  other_ = b.kernel_;
  measures_tooltip_.clear();
  signed_ = true;
  tiles_ = {};
  view_.clear();
  error_.clear();
  measures_.clear();
  untrained_ = a.untrained_ || b.untrained_;
  tokens_ = a.tokens_;
  first_key_ = a.first_key_;
  causal_ = a.causal_;
  value_weighted_ = a.value_weighted_;
  if (a.tiled_ || b.tiled_) {
    error_ = fmt::format("{} is shown for inputs of up to {} tokens.", side_name(Shown::difference),
                         most_tokens_whole);
    return;
  }
  if (a.panel() == nullptr || b.panel() == nullptr) {
    const Side side = a.error_.empty() ? Side::b : Side::a;
    error_ = fmt::format("{}: {}", side_name(side), side == Side::a ? a.error_ : b.error_);
    return;
  }
  if (same_values(a.panel()->values, b.panel()->values)) {
    error_ = same_note;
    return;
  }
  try {
    view_.set(weights_difference(*a.panel(), *b.panel(), value_weighted_));
    measures_ = {"red: A more", "blue: B more"};
  } catch (const std::exception& error) {
    error_ = error_message(error);
  }
}

ShownToken WeightsColumn::token(int index) const {
  if (!tiled_ && static_cast<std::size_t>(index) < tokens_.size())
    return tokens_[static_cast<std::size_t>(index)];
  return {.first = index, .count = 1, .text = {}};
}

std::optional<int> WeightsColumn::row_of(std::optional<std::int64_t> token) const {
  if (token && first_key_ > 0 && *token >= first_key_) return std::nullopt;
  if (!tiled_) return shown_index(tokens_, token);
  return token ? std::optional(static_cast<int>(*token)) : std::nullopt;
}

void WeightsColumn::show_tiles(const SideResults& results, const WeightsOptions& options, double now) {
  tiled_ = true;
  difference_ = false;
  measures_tooltip_.clear();
  view_.clear();
  error_.clear();
  measures_.clear();
  kernel_ = tiles_.source().kernel;
  first_key_ = tiles_.source().first_key;
  tiles_.take(results, now);
  if (tiles_.empty()) return;
  signed_ = tiles_.is_signed();
  untrained_ = tiles_.untrained();
  const WeightsTiles::Source& source = tiles_.source();
  const std::string extent = source.first_key > 0
                                 ? fmt::format("{} queries, {} keys", source.rows(), source.columns())
                                 : fmt::format("{} tokens", source.tokens);
  measures_ = {extent + ", the largest under each pixel"};
  Scale scale;
  if (signed_) {
    scale.map = ColourMap::blue_white_red;
    scale.high = tiles_.largest() > 0 ? tiles_.largest() : 1;
    scale.low = -scale.high;
    scale.label = "weight, signed";
  } else {
    scale = positive_weights_scale(options.percentile ? tiles_.percentile() : tiles_.largest(), options);
  }
  set_scale(scale);
}

void WeightsColumn::show_none(const KernelSpec& kernel, std::string why) {
  clear();
  tiled_ = false;
  difference_ = false;
  measures_tooltip_.clear();
  kernel_ = kernel;
  error_ = std::move(why);
}

void WeightsColumn::show_no_tiles(const KernelSpec& kernel, int heads, const HeadChoice& head) {
  show_none(kernel, no_such_head(head, heads, kernel.label()).what());
  tiled_ = true;
}

void WeightsColumn::set_scale(const Scale& scale) {
  if (tiled_) {
    scale_ = scale;
    tiles_.set_scale(scale);
    return;
  }
  HeatMapPanel panel = view_.panel();
  panel.scale = scale;
  view_.set(std::move(panel));
}

void WeightsColumn::draw_caption(const Graphics& graphics, float width) const {
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  const std::string warning = empty() ? "" : label();
  if (!warning.empty()) {
    ellipsis_text(warning, width, theme::amber);
    if (signed_ && ImGui::IsItemHovered()) {
      text_tooltip(
          kernel_info(kernel_).implied_weights
              ? "This kernel has a matrix φ(Q)_f φ(K)_fᵀ for each of its D features and forms none of them.\n"
                "Shown is their sum over the features of each of the model's heads: it has signs, its rows\n"
                "do not sum to 1, and times V it is not the kernel's output."
              : "This kernel's weights have signs, and their rows do not sum to 1. Times V they are its "
                "output.");
    }
    width -= ImGui::GetItemRectSize().x + 8;
    if (width < ImGui::CalcTextSize(measures_.empty() ? "" : measures_.front().c_str()).x)
      return ImGui::PopFont(); // the warning comes first
    ImGui::SameLine(0, 8);
  }
  const std::string shown = fitting_parts(measures_, width);
  ellipsis_text(shown.empty() ? " " : shown, width, theme::quiet);
  if (!measures_tooltip_.empty() && ImGui::IsItemHovered())
    text_tooltip(fmt::format("{}\n{}", fmt::join(measures_, "   "), measures_tooltip_));
  ImGui::PopFont();
}

MatrixInput WeightsColumn::draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size,
                                const MatrixMarks& marks, float opacity, MapZoom& zoom) {
  if (!tiled_) return view_.draw(id, graphics, from, size, marks, opacity, &zoom);
  const auto rows = static_cast<int>(tiles_.source().rows());
  const auto columns = static_cast<int>(tiles_.source().columns());
  return draw_matrix(
      id, graphics, {rows, columns, nullptr, nullptr, "query", "key"}, from, size, marks, opacity, &zoom,
      [&](ImDrawList* list, ImVec2 at, ImVec2 to) { tiles_.paint(graphics, list, at, to, opacity); });
}

std::string WeightsColumn::cell_text(Cell cell) const {
  if (tiled_) {
    const auto value = tiles_.value(cell.row, cell.column);
    if (!value) return "—";
    if (std::isnan(value->weight)) return "comes after the query: no weight";
    const std::string weight = number_text(static_cast<double>(value->weight));
    return value->cells == 1 ? weight
                             : fmt::format("{}, the largest of {} weights here", weight, value->cells);
  }
  const auto columns = static_cast<int>(view_.panel().values.shape[1]);
  const float weight = view_.value(cell.row, cell.column);
  if (std::isnan(weight)) return causal_ ? "comes after the query: no weight" : "masked: no weight";
  int rank = 1, keys = 0;
  double sum = 0;
  for (int column = 0; column < columns; ++column) {
    const float other = view_.value(cell.row, column);
    if (std::isnan(other)) continue;
    sum += static_cast<double>(other);
    ++keys;
    if (other > weight) ++rank;
  }
  return fmt::format("weight {}, rank {} of {}, row sum {}", number_text(static_cast<double>(weight)), rank,
                     keys, number_text(sum));
}

void share_scale(std::span<WeightsColumn> columns) {
  double high = 0;
  int alike = 0;
  for (const WeightsColumn& column : columns) {
    if (column.empty() || column.is_signed()) continue;
    high = std::max(high, column.scale().high);
    ++alike;
  }
  for (WeightsColumn& column : columns) {
    if (column.empty() || column.is_signed()) continue;
    Scale scale = column.scale();
    scale.high = high;
    scale.low = scale.logarithmic ? high * 1e-4 : 0;
    scale.shared = alike > 1;
    column.set_scale(scale);
  }
}

} // namespace hydrascope::app
