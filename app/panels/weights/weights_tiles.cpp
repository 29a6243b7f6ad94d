#include "app/panels/weights/weights_tiles.h"

#include <algorithm>
#include <cmath>

#include "app/views/weights_view.h"

namespace hydrascope::app {

namespace {

constexpr std::int64_t tile_cells = 512; // per side
constexpr std::size_t most_tiles = 48;   // 1 MB each
constexpr double refine_delay = 0.12;    // seconds without movement

// The tiles along a side of a matrix with `count` rows or columns: 2^level, but none is empty.
std::int64_t sides(int level, std::int64_t count) { return std::min(std::int64_t{1} << level, count); }

} // namespace

void WeightsTiles::set_source(const Source& source) {
  if (source == source_) return;
  source_ = source;
  if (!tiles_.empty()) old_ = std::move(tiles_);
  tiles_.clear();
}

void WeightsTiles::set_view(const MapZoom& zoom, float pixels, double now) {
  if (zoom == zoom_ && pixels == pixels_) return;
  zoom_ = zoom;
  pixels_ = pixels;
  changed_at_ = now;
}

// A cell of the deepest level is one weight.
int WeightsTiles::deepest_level() const {
  int level = 0;
  while (std::max(source_.rows(), source_.columns()) > (tile_cells << level)) ++level;
  return level;
}

TileKey WeightsTiles::tile(int level, std::int64_t row, std::int64_t column) const {
  const auto edge = [&](std::int64_t index, std::int64_t count) {
    return index * count / sides(level, count);
  };
  TileKey key;
  key.layer = source_.layer;
  key.kernel = source_.kernel;
  key.teacher_forced = source_.teacher_forced;
  key.heads = source_.heads;
  key.fusion = source_.fusion;
  key.first_row = edge(row, source_.rows());
  key.row_count = edge(row + 1, source_.rows()) - key.first_row;
  key.first_column = source_.first_key + edge(column, source_.columns());
  key.column_count = source_.first_key + edge(column + 1, source_.columns()) - key.first_column;
  key.rows = std::min(tile_cells, key.row_count);
  key.columns = std::min(tile_cells, key.column_count);
  key.value_weighted = source_.value_weighted;
  return key;
}

std::vector<TileKey> WeightsTiles::visible_tiles(int level) const {
  struct Range {
    std::int64_t first, last;
  };
  const auto visible = [&](double from, std::int64_t count) -> Range {
    const std::int64_t all = sides(level, count);
    const auto at = [&](double share) {
      return std::clamp(static_cast<std::int64_t>(share * static_cast<double>(all)), std::int64_t{0},
                        all - 1);
    };
    return {at(from), at(from + zoom_.size - 1e-9)};
  };
  const Range rows = visible(zoom_.y, source_.rows()), columns = visible(zoom_.x, source_.columns());
  std::vector<TileKey> keys;
  for (std::int64_t row = rows.first; row <= rows.last; ++row)
    for (std::int64_t column = columns.first; column <= columns.last; ++column)
      keys.push_back(tile(level, row, column));
  return keys;
}

bool WeightsTiles::holds(const TileKey& key) const { return std::ranges::count(tiles_, key, &Tile::key) > 0; }

void WeightsTiles::add_keys(QuantityKeys& keys, double now) const {
  if (source_.rows() <= 0 || source_.columns() <= 0) return;
  const TileKey whole = tile(0, 0, 0);
  if (!holds(whole)) keys.add(whole);
  if (tiles_.empty() || now - changed_at_ < refine_delay) return;
  // As many cells as pixels, up to the deepest level.
  const double texels = static_cast<double>(pixels_) / zoom_.size / static_cast<double>(tile_cells);
  const int level =
      std::clamp(static_cast<int>(std::ceil(std::log2(std::max(texels, 1e-6)))), 0, deepest_level());
  for (const TileKey& each : visible_tiles(level)) {
    if (!holds(each)) keys.add(each);
  }
}

bool WeightsTiles::will_refine(double now) const {
  return !tiles_.empty() && now - changed_at_ < refine_delay;
}

void WeightsTiles::take(const SideResults& results, double now) {
  if (results.stale) return; // of another document
  for (const auto& part : results.parts) {
    for (const auto& [key, result] : part->quantities.all<TileKey>()) {
      const TileResult& each = *result;
      const bool matches = key.layer == source_.layer && key.kernel == source_.kernel &&
                           key.fusion == source_.fusion && key.teacher_forced == source_.teacher_forced &&
                           key.heads == source_.heads && key.value_weighted == source_.value_weighted &&
                           each.tokens == source_.tokens;
      if (!matches || holds(key)) continue;
      Tile taken;
      taken.key = key;
      const double parts =
          std::max(static_cast<double>(source_.rows()) / static_cast<double>(key.row_count),
                   static_cast<double>(source_.columns()) / static_cast<double>(key.column_count));
      taken.level = static_cast<int>(std::lround(std::log2(parts)));
      taken.used = now;
      taken.values = {{key.rows, key.columns}, each.values.values};
      if (source_.causal)
        blank_later_keys(taken.values, {key.first_row, key.row_count, key.first_column, key.column_count});
      signed_ = each.derived_signed && !key.value_weighted;
      untrained_ = each.untrained;
      if (taken.level == 0) {
        std::vector<float> sizes;
        for (const float value : taken.values.values)
          if (!std::isnan(value)) sizes.push_back(std::abs(value));
        const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(sizes.size() - 1) * 0.99);
        std::ranges::nth_element(sizes, sizes.begin() + at);
        percentile_ = static_cast<double>(sizes[static_cast<std::size_t>(at)]);
        largest_ = static_cast<double>(*std::max_element(sizes.begin() + at, sizes.end()));
        old_.clear();
      }
      tiles_.push_back(std::move(taken));
    }
  }
  std::ranges::stable_sort(tiles_, {}, &Tile::level); // the order of painting
  while (tiles_.size() > most_tiles) {                // the coarse tile is kept
    const auto oldest = std::ranges::min_element(tiles_.begin() + 1, tiles_.end(), {}, &Tile::used);
    tiles_.erase(oldest);
  }
}

void WeightsTiles::set_scale(const Scale& scale) {
  scale_ = scale;
  for (Tile& tile : tiles_) tile.map.set(tile.values, scale_, {.blank_missing = source_.causal});
}

void WeightsTiles::paint(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity) {
  auto& tiles = tiles_.empty() ? old_ : tiles_;
  if (tiles.empty()) return;
  const TileKey& whole = tiles.front().key;
  if (source_.causal) list->AddRectFilled(from, to, theme::packed(theme::raised));
  const ImVec2 step{(to.x - from.x) / static_cast<float>(whole.column_count),
                    (to.y - from.y) / static_cast<float>(whole.row_count)};
  const ImVec2 low = list->GetClipRectMin(), high = list->GetClipRectMax();
  for (Tile& tile : tiles) {
    const auto at = [&](std::int64_t column, std::int64_t row) {
      return ImVec2{from.x + static_cast<float>(column - whole.first_column) * step.x,
                    from.y + static_cast<float>(row) * step.y};
    };
    const ImVec2 corner = at(tile.key.first_column, tile.key.first_row);
    const ImVec2 end =
        at(tile.key.first_column + tile.key.column_count, tile.key.first_row + tile.key.row_count);
    if (end.x < low.x || end.y < low.y || corner.x > high.x || corner.y > high.y) continue;
    tile.used = ImGui::GetTime();
    tile.map.draw(graphics, list, corner, end, opacity);
  }
}

std::optional<WeightsTiles::Value> WeightsTiles::value(int row, int column) const {
  std::optional<Value> found;
  for (const Tile& tile : shown()) { // the finest is last
    const std::int64_t y = row - tile.key.first_row;
    const std::int64_t x = shown().front().key.first_column + column - tile.key.first_column;
    if (y < 0 || x < 0 || y >= tile.key.row_count || x >= tile.key.column_count) continue;
    const std::int64_t cell = y * tile.key.rows / tile.key.row_count * tile.key.columns +
                              x * tile.key.columns / tile.key.column_count;
    found = Value{tile.values.values[static_cast<std::size_t>(cell)],
                  (tile.key.row_count + tile.key.rows - 1) / tile.key.rows *
                      ((tile.key.column_count + tile.key.columns - 1) / tile.key.columns)};
  }
  return found;
}

} // namespace hydrascope::app
