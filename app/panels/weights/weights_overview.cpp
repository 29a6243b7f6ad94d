#include "app/panels/weights/weights_overview.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/map_views.h"
#include "app/ui/widgets.h"
#include "app/views/weights_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weight_tile.h"

namespace hydrascope::app {

namespace {

constexpr std::int64_t side_cells = 48;

// The kernel chosen for the first map, or the layer's.
TileKey thumbnail_key(const Document& document, int layer) {
  const Scene& scene = document.scene();
  TileKey key;
  key.layer = layer;
  key.kernel =
      scene.comparison.front().value_or(edited_schedule(document).layers.at(static_cast<std::size_t>(layer)));
  key.teacher_forced = document.view.teacher_forced;
  key.rows = key.columns = side_cells;
  if (const std::int64_t queries = queries_alone(*scene.model); queries > 0) {
    key.row_count = key.first_column = queries;
  }
  key.value_weighted = document.view.value_weighted;
  return key;
}

} // namespace

void WeightsOverview::add_keys(const Document& document, QuantityKeys& keys) {
  const auto layers = static_cast<int>(edited_schedule(document).layers.size());
  for (int layer = 0; layer < layers; ++layer) keys.add(thumbnail_key(document, layer));
}

const char* WeightsOverview::empty_reason() const {
  if (same_) return same_note;
  return difference_ ? "A's kernels and B's have different numbers of heads."
                     : "The weights of every head of every layer, once the model has run.";
}

void WeightsOverview::prepare(const Snapshot& snapshot) {
  if (snapshot.shown().any() == nullptr) {
    *this = {};
    return;
  }
  const Document& document = *snapshot.document;
  const auto layers = static_cast<int>(edited_schedule(document).layers.size());
  std::vector<const TileResult*> found;
  for (int layer = 0; layer < layers; ++layer) {
    found.push_back(find(snapshot.shown(), thumbnail_key(document, layer)).result);
    if (found.back() == nullptr) return;
  }
  side_ = snapshot.one_of_two ? side_name(document.view.shown) : "";
  difference_ = same_ = false;
  value_weighted_ = document.view.value_weighted;
  causal_ = is_causal(*document.scene().model);
  rows_.clear();
  std::size_t position = 0;
  for (const TileResult* tile : found) {
    const auto heads = static_cast<std::size_t>(tile->values.extent(0));
    rows_.push_back({tile->key.kernel.label(), tile->derived_signed && !tile->key.value_weighted,
                     tile->untrained, position, heads});
    thumbnails_.resize(std::max(thumbnails_.size(), position + heads));
    for (std::size_t head = 0; head < heads; ++head, ++position) {
      const auto values = tile->values.slice(static_cast<std::int64_t>(head));
      thumbnails_[position].values = {{tile->values.extent(1), tile->values.extent(2)},
                                      {values.begin(), values.end()}};
      if (causal_) blank_later_keys(thumbnails_[position].values, {0, tile->tokens, 0, tile->tokens});
    }
  }
  thumbnails_.resize(position);
  set_scales(document.view);
}

void WeightsOverview::subtract(const WeightsOverview& a, const WeightsOverview& b, const Snapshot& snapshot) {
  const bool alike = std::ranges::equal(a.rows_, b.rows_, {}, &Row::count, &Row::count) && !a.empty();
  difference_ = !a.empty() && !b.empty();
  side_ = side_name(Shown::difference);
  value_weighted_ = a.value_weighted_;
  causal_ = a.causal_;
  rows_.clear();
  same_ = alike && std::ranges::equal(a.thumbnails_, b.thumbnails_, same_values, &Thumbnail::values,
                                      &Thumbnail::values);
  if (!alike || same_) return thumbnails_.clear();
  thumbnails_.resize(a.thumbnails_.size());
  for (std::size_t layer = 0; layer < a.rows_.size(); ++layer) {
    Row row = a.rows_[layer];
    row.untrained = row.untrained || b.rows_[layer].untrained;
    row.kernel += " − " + b.rows_[layer].kernel;
    row.derived_signed = true;
    rows_.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < thumbnails_.size(); ++i) {
    Array values = a.thumbnails_[i].values;
    const Array& other = b.thumbnails_[i].values;
    if (other.shape != values.shape) return thumbnails_.clear();
    for (std::size_t cell = 0; cell < values.values.size(); ++cell) values.values[cell] -= other.values[cell];
    thumbnails_[i].values = std::move(values);
  }
  set_scales(snapshot.document->view);
}

void WeightsOverview::set_scales(const ViewOptions& view, const double least) {
  shared_ = view.shared_scale;
  shared_high_ = least;
  for (const Row& row : rows_) {
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      Thumbnail& thumbnail = thumbnails_[i];
      double high = 0;
      for (const float value : thumbnail.values.values)
        high = std::max(high, std::abs(static_cast<double>(value)));
      thumbnail.scale = {};
      thumbnail.scale.high = high > 0 ? high : 1;
      thumbnail.scale.label =
          std::string(weights_quantity(value_weighted_)) + ", the largest under each pixel";
      if (difference_) thumbnail.scale.label = difference_label(thumbnail.scale.label);
      if (view.cividis) thumbnail.scale.map = ColourMap::cividis;
      if (row.derived_signed) thumbnail.scale.map = ColourMap::blue_white_red;
      if (!row.derived_signed || difference_) shared_high_ = std::max(shared_high_, high);
    }
  }
  for (Thumbnail& thumbnail : thumbnails_) {
    Scale& scale = thumbnail.scale;
    const bool with_sign = scale.map == ColourMap::blue_white_red;
    scale.shared = shared_ && (!with_sign || difference_);
    if (scale.shared && shared_high_ > 0) scale.high = shared_high_;
    scale.logarithmic = view.logarithmic && !with_sign;
    scale.low = with_sign ? -scale.high : scale.logarithmic ? scale.high * 1e-4 : 0;
    thumbnail.map.set(thumbnail.values, scale, {.blank_missing = causal_});
  }
}

void WeightsOverview::share_scale(WeightsOverview& a, WeightsOverview& b, const ViewOptions& view) {
  const double least = std::max(a.shared_high_, b.shared_high_);
  a.set_scales(view, least);
  b.set_scales(view, least);
}

// Where the thumbnails lie: layers from top to bottom, in blocks side by side where that makes them larger.
struct WeightsOverview::Places {
  static constexpr float left = 30, top = 15; // of the numbers of layers and of heads
  static constexpr float block_gap = 12, group_gap = 3, least = 8;
  ImVec2 from;
  std::size_t heads = 1, group = 1; // group: the heads that share keys and values
  std::size_t rows = 1;             // of each block
  float step = least;

  float head_x(std::size_t head) const {
    const std::size_t groups = head / group; // before it
    return static_cast<float>(head) * step + static_cast<float>(groups) * group_gap;
  }
  float block_width() const { return left + head_x(heads - 1) + step; }
  float block_x(std::size_t block) const {
    return from.x + static_cast<float>(block) * (block_width() + block_gap);
  }
  ImVec2 at(std::size_t layer, std::size_t head) const {
    return {block_x(layer / rows) + left + head_x(head),
            from.y + top + static_cast<float>(layer % rows) * step};
  }
  void fit(ImVec2 room, std::size_t layers) {
    step = 0;
    const std::size_t gap_count = (heads - 1) / group;
    const float gaps = static_cast<float>(gap_count) * group_gap;
    for (std::size_t blocks = 1; blocks <= layers; ++blocks) {
      const auto count = static_cast<float>(blocks);
      const std::size_t each = (layers + blocks - 1) / blocks;
      const float width = (room.x - block_gap * (count - 1)) / count - left - gaps;
      const float side =
          std::floor(std::min(width / static_cast<float>(heads), (room.y - top) / static_cast<float>(each)));
      if (side <= step) continue;
      step = side;
      rows = each;
    }
    if (step >= least) return;
    step = least; // smaller ones would say nothing: the panel scrolls instead
    rows = layers;
  }
};

std::optional<HeadIndex> WeightsOverview::draw(Editor& editor, Graphics& graphics, float brightness) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const Scene& scene = editor.document().scene();
  Places places{.from = ImGui::GetCursorScreenPos()};
  for (const Row& row : rows_) places.heads = std::max(places.heads, row.count);
  const auto key_heads = static_cast<std::size_t>(std::max(scene.model ? scene.model->key_heads : 0, 0));
  places.group = key_heads > 0 && key_heads < places.heads ? places.heads / key_heads : places.heads;
  constexpr float narrow = 240;
  const float bar = room.x < narrow ? narrow_colour_bar_width : colour_bar_width;
  const std::vector<const Scale*> scales = shown_scales(scene);
  places.fit({room.x - bar * static_cast<float>(scales.size()), room.y}, rows_.size());

  ImGui::PushFont(graphics.fonts().mono, 11.0f);
  draw_numbers(scene, places);
  std::optional<HeadIndex> hovered;
  for (std::size_t layer = 0; layer < rows_.size(); ++layer) {
    for (std::size_t head = 0; head < rows_[layer].count; ++head) {
      const ImVec2 at = places.at(layer, head);
      if (draw_thumbnail(editor, graphics, layer, head, at, places.step, brightness))
        hovered = HeadIndex{static_cast<int>(layer), static_cast<int>(head)};
    }
  }
  ImGui::PopFont();
  const std::size_t blocks = (rows_.size() + places.rows - 1) / places.rows;
  ImVec2 at{places.block_x(blocks) - Places::block_gap + 8, places.from.y + Places::top};
  const float height = std::max(60.0f, places.step * static_cast<float>(places.rows));
  for (const Scale* scale : scales) {
    colour_bar(graphics, *scale, at, height, Backdrop::matrix, bar);
    at.x += bar;
  }
  if (hovered) editor.hover_head(*hovered);
  return hovered;
}

// Of the heads, above each block, and of the layers, with their kernels. Where they would touch, every other
// one is left out.
void WeightsOverview::draw_numbers(const Scene& scene, const Places& places) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float widest = ImGui::CalcTextSize(fmt::format("{}", places.heads - 1).c_str()).x;
  const auto stride = static_cast<std::size_t>(std::ceil((widest + 1) / places.step));
  for (std::size_t first = 0; first < rows_.size(); first += places.rows) {
    for (std::size_t head = 0; head < places.heads; head += stride) {
      const std::string text = fmt::format("{}", head);
      const float middle = places.at(first, head).x + (places.step - 2) / 2;
      list->AddText({middle - ImGui::CalcTextSize(text.c_str()).x / 2, places.from.y},
                    theme::packed(theme::quiet), text.c_str());
    }
  }
  constexpr float least_line = 10;
  for (std::size_t layer = 0; layer < rows_.size(); ++layer) {
    const ImVec2 at = places.at(layer, 0);
    const float left = at.x - Places::left, middle = at.y + (places.step - 2) / 2;
    kernel_square(list, {left + 5, middle}, std::min(7.0f, places.step - 2), rows_[layer].kernel);
    const int from_selected = std::abs(static_cast<int>(layer) - scene.layer);
    if (places.step < least_line && from_selected % 2 != 0) continue;
    list->AddText({left + 13, middle - ImGui::GetTextLineHeight() / 2},
                  theme::packed(from_selected == 0 ? theme::text : theme::quiet),
                  fmt::format("{:>2}", layer).c_str());
  }
}

// Returns whether the pointer is on it.
bool WeightsOverview::draw_thumbnail(Editor& editor, Graphics& graphics, std::size_t layer, std::size_t head,
                                     ImVec2 at, float step, float brightness) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Scene& scene = editor.document().scene();
  const Row& row = rows_[layer];
  Thumbnail& thumbnail = thumbnails_[row.first + head];
  const ImVec2 to{at.x + step - 2, at.y + step - 2};
  if (causal_) list->AddRectFilled(at, to, theme::packed(theme::raised));
  thumbnail.map.draw(graphics, list, at, to, brightness);
  const HeadIndex index{static_cast<int>(layer), static_cast<int>(head)};
  const bool muted = is_muted(editor.document(), index);
  if (muted) muted_cross(list, at, to);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(static_cast<int>(layer * 1000 + head));
  if (ImGui::InvisibleButton("thumbnail", {step - 1, step - 1})) {
    select_cell(editor, index.layer, index.head);
    change_view(editor, "One head large", [](ViewOptions& view) { view.all_heads = false; });
  }
  ImGui::PopID();
  const bool selected = scene.layer == index.layer && scene.head.head == index.head;
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) {
    const char* const note = row.untrained        ? ", untrained"
                             : difference_        ? ""
                             : row.derived_signed ? ", implied weights, signed"
                                                  : "";
    const std::string shares = shares_keys_text(*scene.model, index.head);
    text_tooltip(fmt::format("layer {}, head {}: {}{}{}\n{}{}largest weight {}\nclick: open it", layer, head,
                             row.kernel, note, muted ? ", muted" : "", shares, shares.empty() ? "" : "\n",
                             number_text(thumbnail.scale.high)));
  }
  if (selected || hovered)
    list->AddRect({at.x - 1, at.y - 1}, {to.x + 1, to.y + 1},
                  theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
  return hovered;
}

// That of the selected map; beside it, where maps of another kind have one scale in common, theirs.
std::vector<const Scale*> WeightsOverview::shown_scales(const Scene& scene) const {
  if (thumbnails_.empty()) return {};
  const Thumbnail* shown = &thumbnails_.front();
  const auto layer = static_cast<std::size_t>(scene.layer);
  const auto head = static_cast<std::size_t>(scene.head.head.value_or(0));
  if (layer < rows_.size() && head < rows_[layer].count) shown = &thumbnails_[rows_[layer].first + head];
  std::vector<const Scale*> scales = {&shown->scale};
  const auto other = std::ranges::find_if(thumbnails_, [&](const Thumbnail& thumbnail) {
    return thumbnail.scale.map != shown->scale.map && (thumbnail.scale.shared || !shown->scale.shared);
  });
  if (other != thumbnails_.end()) scales.push_back(&other->scale);
  return scales;
}

Figure WeightsOverview::figure(const Document& document) const {
  Figure figure;
  figure.title = "Attention weights, layers × heads";
  figure.subtitle = "each pixel is the largest weight under it";
  if (causal_) figure.subtitle += std::string("; ") + causal_note;
  if (document.scene().model) figure.title = document.scene().model->name + " · " + figure.title;
  if (!side_.empty()) figure.title += " · " + side_;
  for (std::size_t layer = 0; layer < rows_.size(); ++layer) {
    for (std::size_t head = 0; head < rows_[layer].count; ++head) {
      const Thumbnail& thumbnail = thumbnails_[rows_[layer].first + head];
      HeatMapPanel panel;
      panel.title = fmt::format("layer {}, head {}", layer, head);
      panel.values = thumbnail.values;
      if (causal_) panel.missing = MissingCells::grey;
      panel.scale = thumbnail.scale;
      figure.panels.emplace_back(std::move(panel));
      figure.columns = std::max(figure.columns, static_cast<int>(head) + 1);
    }
  }
  return figure;
}

} // namespace hydrascope::app
