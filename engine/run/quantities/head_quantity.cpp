#include "engine/run/quantities/head_quantity.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/run/quantities/head_reader.h"
#include "engine/run/reading.h"

// The quantities of heads in the order in which they are shown: one line each, defined in the file of the
// same name.
#define HYDRASCOPE_HEAD_QUANTITIES(QUANTITY) \
  QUANTITY(entropy_quantity)                 \
  QUANTITY(kl_quantity)                      \
  QUANTITY(monotonicity_quantity)            \
  QUANTITY(output_change_quantity)           \
  QUANTITY(attention_distance_quantity)      \
  QUANTITY(first_token_share_quantity)

namespace hydrascope {

#define HYDRASCOPE_DECLARE(function) HeadQuantity function();
HYDRASCOPE_HEAD_QUANTITIES(HYDRASCOPE_DECLARE)
#undef HYDRASCOPE_DECLARE

const std::vector<HeadQuantity>& head_quantities() {
#define HYDRASCOPE_ENTRY(function) function(),
  static const std::vector<HeadQuantity> quantities = {HYDRASCOPE_HEAD_QUANTITIES(HYDRASCOPE_ENTRY)};
#undef HYDRASCOPE_ENTRY
  return quantities;
}

const HeadQuantity& head_quantity(std::string_view name) {
  const auto found = std::ranges::find_if(
      head_quantities(), [&](const HeadQuantity& quantity) { return quantity.info.name == name; });
  if (found != head_quantities().end()) return *found;
  std::vector<std::string> known;
  for (const HeadQuantity& quantity : head_quantities()) known.push_back(quantity.info.name);
  throw UsageError(std::string(name), "there is no such quantity of heads",
                   fmt::format("known are {}", fmt::join(known, ", ")));
}

const std::vector<HeadQuantityInfo>& head_quantity_infos() {
  static const std::vector<HeadQuantityInfo> infos = [] {
    std::vector<HeadQuantityInfo> all;
    std::ranges::transform(head_quantities(), std::back_inserter(all), &HeadQuantity::info);
    return all;
  }();
  return infos;
}

const HeadQuantityInfo& head_quantity_info(std::string_view name) { return head_quantity(name).info; }

namespace {

constexpr std::size_t kMostRows = 60000;

// One layer of a table: a number for each head and part, in this order. NaN if the quantity is undefined, or
// the kernel has a different number of heads than the layer.
struct HeadRow {
  std::vector<float> values;
  double clamped_share = 0; // as in HeadValues
};

// Rows by the key of what they depend on: a row is small but takes a whole weight matrix to compute. Cleared
// when full.
class HeadRowCache {
public:
  const HeadRow* find(const std::string& key, const HeadQuantity& quantity) const; // null: not cached
  void insert(const std::string& key, const HeadQuantity& quantity, HeadRow row);

private:
  std::unordered_map<std::string, HeadRow> rows_;
};

// `numbers` of each head and part.
std::vector<float> of_layer_or_heads(std::vector<float> numbers, const HeadQuantityInfo& info,
                                     std::int64_t heads) {
  if (!info.of_layers) return numbers;
  const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  return {static_cast<float>(sum / static_cast<double>(heads))};
}

std::string row_key(const std::string& key, const HeadQuantity& quantity) {
  return key + '|' + quantity.info.name;
}

const HeadRow* HeadRowCache::find(const std::string& key, const HeadQuantity& quantity) const {
  const auto found = rows_.find(row_key(key, quantity));
  return found == rows_.end() ? nullptr : &found->second;
}

void HeadRowCache::insert(const std::string& key, const HeadQuantity& quantity, HeadRow row) {
  if (rows_.size() >= kMostRows) rows_.clear();
  rows_[row_key(key, quantity)] = std::move(row);
}

// All requested quantities of one kernel per layer, so that each layer's weights are computed once.
class HeadTableReading final : public Reading {
public:
  // `keys` have the same kernel; `kernels` by layer, empty: the pass's own.
  HeadTableReading(std::vector<HeadTableKey> keys, std::vector<LayerKernel> kernels, HeadRowCache& cache)
      : keys_(std::move(keys)), kernels_(std::move(kernels)), forced_(!kernels_.empty()), cache_(cache) {
    for (const HeadTableKey& key : keys_) quantities_.push_back(&head_quantity(key.quantity));
  }

  bool teacher_forced() const override { return forced_; }
  void add_kernels(std::vector<const LayerKernel*>& kernels) const override {
    for (const LayerKernel& kernel : kernels_) kernels.push_back(&kernel);
  }

  void begin(const Pass& pass) override {
    if (!forced_) kernels_ = pass.layers;
    const std::vector<std::string> keys = pass.keys();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const std::string of =
          forced_ ? "|teacher|" + pass.model.layer_key(static_cast<int>(i), kernels_[i].kernel->spec())
                  : std::string("|own");
      depends_on_.push_back(keys[i + 1] + of);
    }
    rows_.assign(quantities_.size(), std::vector<HeadRow>(kernels_.size()));
    for (std::size_t i = 0; i < quantities_.size(); ++i)
      for (std::size_t layer = 0; layer < kernels_.size(); ++layer)
        if (const HeadRow* row = cache_.find(depends_on_[layer], *quantities_[i])) rows_[i][layer] = *row;
  }

  bool taps(int layer) const override {
    return std::ranges::any_of(
        rows_, [&](const auto& rows) { return rows[static_cast<std::size_t>(layer)].values.empty(); });
  }

  void read(const LayerTap& tap) override {
    const auto layer = static_cast<std::size_t>(tap.layer);
    std::vector<const HeadQuantity*> missing;
    for (std::size_t i = 0; i < quantities_.size(); ++i)
      if (rows_[i][layer].values.empty()) missing.push_back(quantities_[i]);
    if (missing.empty()) return;
    const KernelHeadValues read = read_heads(missing, tap.input, {&kernels_[layer], 1}).front();
    std::size_t position = 0;
    for (const HeadQuantity* const quantity : missing) take(read.values[position++], *quantity, tap);
  }

  void finish(const FinishedPass& /*pass*/, QuantityResults& results) override {
    copies_.finish();
    for (std::size_t i = 0; i < keys_.size(); ++i) results.add(keys_[i], table(i));
  }

private:
  // Also keeps the row for later runs: at once on the CPU, so that a run that is stopped loses none.
  void take(const HeadValues& read, const HeadQuantity& quantity, const LayerTap& tap) {
    const auto found = std::ranges::find(quantities_, &quantity);
    const auto layer = static_cast<std::size_t>(tap.layer);
    HeadRow& row = rows_[static_cast<std::size_t>(found - quantities_.begin())][layer];
    row.clamped_share = read.clamped_share;
    const std::int64_t heads = tap.input.q.size(1);
    const auto keep = [this, &row, &quantity, layer, heads](std::vector<float> numbers) {
      row.values = of_layer_or_heads(std::move(numbers), quantity.info, heads);
      cache_.insert(depends_on_[layer], quantity, row);
    };
    if (read.values.defined() && read.values.size(1) == heads)
      copies_.add(read.values.select(0, 0), [keep](Array numbers) { keep(std::move(numbers.values)); });
    else
      keep(std::vector<float>(static_cast<std::size_t>(heads) * quantity.info.parts.size(),
                              std::numeric_limits<float>::quiet_NaN()));
  }

  HeadTable table(std::size_t position) const {
    const std::vector<HeadRow>& read = rows_[position];
    const auto layers = static_cast<std::int64_t>(read.size());
    const auto parts = static_cast<std::int64_t>(quantities_[position]->info.parts.size());
    HeadTable table;
    table.key = keys_[position];
    for (const HeadRow& row : read) {
      table.values.values.insert(table.values.values.end(), row.values.begin(), row.values.end());
      table.clamped_share += row.clamped_share / static_cast<double>(layers);
    }
    const auto heads = static_cast<std::int64_t>(read.front().values.size()) / parts;
    table.values.shape = {layers, heads};
    if (parts > 1) table.values.shape.push_back(parts);
    if (!forced_) return table;
    table.kernel = kernels_.front().kernel->spec();
    table.untrained = std::ranges::any_of(kernels_, [](const LayerKernel& kernel) {
      return kernel.kernel->info().trainable && !kernel.own_parameters;
    });
    return table;
  }

  std::vector<HeadTableKey> keys_;
  std::vector<const HeadQuantity*> quantities_; // of keys_
  std::vector<LayerKernel> kernels_;            // by layer
  bool forced_;
  HeadRowCache& cache_;
  std::vector<std::string> depends_on_;    // by layer: key of what its numbers depend on
  std::vector<std::vector<HeadRow>> rows_; // by quantity, by layer; no values: not read yet
  HostCopies copies_;
};

class HeadTableQuantity final : public QuantityOf<HeadTableKey> {
  void check_key(const HeadTableKey& key, const RunShape& /*shape*/) const override {
    head_quantity(key.quantity);
  }
  bool key_compares(const HeadTableKey& key, const Schedule& /*schedule*/) const override {
    return key.kernel.has_value();
  }
  void plan_all(const std::vector<HeadTableKey>& keys, const PlanContext& context,
                Readings& readings) const override {
    std::vector<std::optional<KernelSpec>> kernels;
    for (const HeadTableKey& key : keys)
      if (std::ranges::find(kernels, key.kernel) == kernels.end()) kernels.push_back(key.kernel);
    for (const std::optional<KernelSpec>& kernel : kernels) {
      std::vector<HeadTableKey> together;
      for (const HeadTableKey& key : keys)
        if (key.kernel == kernel) together.push_back(key);
      std::vector<LayerKernel> forced;
      for (std::size_t layer = 0; kernel && layer < context.own.layers.size(); ++layer)
        forced.push_back(context.kernel(true, static_cast<int>(layer), kernel));
      readings.push_back(std::make_unique<HeadTableReading>(std::move(together), std::move(forced),
                                                            context.caches.get<HeadRowCache>()));
    }
  }
};

} // namespace

const Quantity& quantity_of(const HeadTableKey& /*key*/) {
  static const HeadTableQuantity quantity;
  return quantity;
}

} // namespace hydrascope
