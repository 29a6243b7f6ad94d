#include "engine/run/quantities/head_tables.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::size_t kMostRows = 60000;

HeadRow row_of(const HeadValues& read, const HeadQuantityInfo& info, std::int64_t heads) {
  HeadRow row;
  row.clamped_share = read.clamped_share;
  if (read.values.defined() && read.values.size(1) == heads)
    row.values = to_array(read.values.select(0, 0)).values;
  else
    row.values.assign(static_cast<std::size_t>(heads) * info.parts.size(),
                      std::numeric_limits<float>::quiet_NaN());
  if (info.of_layers) {
    const double sum = std::accumulate(row.values.begin(), row.values.end(), 0.0);
    row.values = {static_cast<float>(sum / static_cast<double>(heads))};
  }
  return row;
}

std::string row_key(const std::string& key, const HeadQuantity& quantity) {
  return key + '|' + quantity.info.name;
}

} // namespace

std::vector<const HeadQuantity*> quantities_asked(std::span<const HeadTableAsk> asks,
                                                  const std::optional<KernelSpec>& kernel) {
  std::vector<const HeadQuantity*> quantities;
  for (const HeadTableAsk& ask : asks) {
    const HeadQuantity* quantity = &head_quantity(ask.quantity);
    if (ask.kernel == kernel && std::ranges::find(quantities, quantity) == quantities.end())
      quantities.push_back(quantity);
  }
  return quantities;
}

std::vector<KernelSpec> kernels_asked(std::span<const HeadTableAsk> asks) {
  std::vector<KernelSpec> kernels;
  for (const HeadTableAsk& ask : asks)
    if (ask.kernel && std::ranges::find(kernels, *ask.kernel) == kernels.end())
      kernels.push_back(*ask.kernel);
  return kernels;
}

const HeadRow* HeadRowCache::find(const std::string& key, const HeadQuantity& quantity) const {
  const auto found = rows_.find(row_key(key, quantity));
  return found == rows_.end() ? nullptr : &found->second;
}

void HeadRowCache::insert(const std::string& key, const HeadQuantity& quantity, HeadRow row) {
  if (rows_.size() >= kMostRows) rows_.clear();
  rows_[row_key(key, quantity)] = std::move(row);
}

bool HeadTableReading::known(std::size_t layer, const HeadRowCache& cache) const {
  return std::ranges::all_of(
      quantities, [&](const HeadQuantity* quantity) { return cache.find(keys[layer], *quantity); });
}

void HeadTableReading::take_known(const HeadRowCache& cache) {
  rows.assign(quantities.size(), std::vector<HeadRow>(keys.size()));
  for (std::size_t i = 0; i < quantities.size(); ++i)
    for (std::size_t layer = 0; layer < keys.size(); ++layer)
      if (const HeadRow* row = cache.find(keys[layer], *quantities[i])) rows[i][layer] = *row;
}

void HeadTableReading::read(std::size_t layer, const AttentionInput& input, HeadRowCache& cache) {
  std::vector<const HeadQuantity*> missing;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (rows[i][layer].values.empty()) missing.push_back(quantities[i]);
  if (missing.empty()) return;
  const KernelHeadValues read = read_heads(missing, input, {&kernels[layer], 1}).front();
  for (std::size_t i = 0, position = 0; i < quantities.size(); ++i) {
    if (!rows[i][layer].values.empty()) continue;
    rows[i][layer] = row_of(read.values[position++], quantities[i]->info, input.q.size(1));
    cache.insert(keys[layer], *quantities[i], rows[i][layer]);
  }
}

HeadTable HeadTableReading::table(const HeadTableAsk& ask) const {
  const auto found = std::ranges::find(quantities, &head_quantity(ask.quantity));
  const std::vector<HeadRow>& read = rows.at(static_cast<std::size_t>(found - quantities.begin()));
  const auto layers = static_cast<std::int64_t>(read.size());
  const auto parts = static_cast<std::int64_t>((*found)->info.parts.size());
  HeadTable table;
  table.ask = ask;
  for (const HeadRow& row : read) {
    table.values.values.insert(table.values.values.end(), row.values.begin(), row.values.end());
    table.clamped_share += row.clamped_share / static_cast<double>(layers);
  }
  const auto heads = static_cast<std::int64_t>(read.front().values.size()) / parts;
  table.values.shape = {layers, heads};
  if (parts > 1) table.values.shape.push_back(parts);
  if (!ask.kernel) return table;
  table.kernel = kernels.front().kernel->spec();
  table.untrained = std::ranges::any_of(kernels, [](const LayerKernel& kernel) {
    return kernel.kernel->info().trainable && !kernel.own_parameters;
  });
  return table;
}

} // namespace hydrascope
