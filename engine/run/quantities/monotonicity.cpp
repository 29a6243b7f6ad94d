// Spearman's ρ of each head's weights and q·k/√d within rows (Hedgehog paper, section 3.2).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fmax.h>
#include <ATen/ops/fmin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "engine/attention/interface/tokens.h"
#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {
namespace {

// A weight or score and the key it belongs to.
template <typename Number>
struct Entry {
  Number value;
  std::int32_t key;
};

// From about this length radix sort is faster than std::sort: rows of 1000 take a fifth of the time.
constexpr std::size_t kRadixSortFrom = 128;
constexpr int kDigitBits = 11, kDigits = 3;
constexpr std::uint32_t kDigitValues = 1U << kDigitBits;

// Bits whose order is that of the numbers: inverted for negative numbers, above them for positive ones.
std::uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F); // −0 becomes +0
  return (bits >> 31U) != 0 ? ~bits : bits | 0x80000000U;
}

std::uint32_t digit(float value, int number) {
  return (ordered_bits(value) >> static_cast<unsigned>(kDigitBits * number)) & (kDigitValues - 1);
}

void sort_by_digits(std::vector<Entry<float>>& entries, std::vector<Entry<float>>& spare) {
  std::array<std::array<std::uint32_t, kDigitValues>, kDigits> starts{};
  for (const Entry<float>& entry : entries)
    for (int number = 0; number < kDigits; ++number)
      ++starts[static_cast<std::size_t>(number)][digit(entry.value, number)];
  spare.resize(entries.size());
  for (int number = 0; number < kDigits; ++number) {
    auto& start = starts[static_cast<std::size_t>(number)];
    std::uint32_t before = 0;
    for (std::uint32_t& count : start) before += std::exchange(count, before);
    for (const Entry<float>& entry : entries) spare[start[digit(entry.value, number)]++] = entry;
    entries.swap(spare);
  }
}

template <typename Number>
void sort_by_comparing(std::vector<Entry<Number>>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry<Number>& a, const Entry<Number>& b) { return a.value < b.value; });
}

// Ascending by value; −0 and +0 are equal. No value may be NaN. `spare` is scratch space, reused between
// calls.
void sort_ascending(std::vector<Entry<float>>& entries, std::vector<Entry<float>>& spare) {
  if (entries.size() < kRadixSortFrom)
    sort_by_comparing(entries);
  else
    sort_by_digits(entries, spare);
}

void sort_ascending(std::vector<Entry<double>>& entries, std::vector<Entry<double>>&) {
  sort_by_comparing(entries);
}

constexpr std::int64_t kLeastKeys = 3;
constexpr std::int64_t kRowsPerThread = 64; // at least
constexpr std::int64_t kScoresAtOnce = std::int64_t{8} << 20;

// A row's visible entries, and scratch space for sorting them.
template <typename Number>
struct SortedRow {
  std::vector<Entry<Number>> entries, spare;
};

// The rows of a tensor and their visible entries, in plain memory.
template <typename Number>
class Rows {
public:
  Rows(const at::Tensor& values, const at::Tensor& visible)
      : values_(values.contiguous()), keys_(values.size(-1)), heads_(values.size(1)), rows_(values.size(2)) {
    if (visible.defined()) visible_ = visible.expand({values.size(0), 1, rows_, keys_}).contiguous();
  }

  std::int64_t count() const { return values_.numel() / std::max<std::int64_t>(keys_, 1); }

  // Puts the visible entries of a row into ascending order. Returns false if one is NaN.
  bool sort(std::int64_t row, SortedRow<Number>& sorted) const {
    std::vector<Entry<Number>>& entries = sorted.entries;
    const Number* const values = values_.template const_data_ptr<Number>() + row * keys_;
    const bool* const seen = visible_.defined() ? visible_.template const_data_ptr<bool>() +
                                                      (row / (heads_ * rows_) * rows_ + row % rows_) * keys_
                                                : nullptr;
    entries.clear();
    for (std::int64_t key = 0; key < keys_; ++key) {
      if (seen != nullptr && !seen[key]) continue;
      if (std::isnan(values[key])) return false;
      entries.push_back({values[key], static_cast<std::int32_t>(key)});
    }
    sort_ascending(entries, sorted.spare);
    return true;
  }

private:
  at::Tensor values_, visible_;
  std::int64_t keys_, heads_, rows_;
};

// Calls `each(key, rank)` with the rank relative to the row's mean rank. Returns the sum of squared ranks.
template <typename Number, typename Each>
double visit_ranks(const std::vector<Entry<Number>>& entries, const Each& each) {
  const double middle = (static_cast<double>(entries.size()) - 1) / 2;
  double spread = 0;
  for (std::size_t first = 0; first < entries.size();) {
    std::size_t end = first + 1;
    while (end < entries.size() && entries[end].value == entries[first].value) ++end;
    const double rank = static_cast<double>(first + end - 1) / 2 - middle;
    spread += rank * rank * static_cast<double>(end - first);
    for (; first < end; ++first) each(entries[first].key, rank);
  }
  return spread;
}

template <typename Number>
void rank_rows(const at::Tensor& values, RankedRows& ranked) {
  const Rows<Number> rows(values, ranked.visible);
  const std::int64_t keys = values.size(-1);
  auto* const ranks = ranked.ranks.mutable_data_ptr<float>();
  auto* const spreads = ranked.spread.mutable_data_ptr<double>();
  at::parallel_for(0, rows.count(), kRowsPerThread, [&](std::int64_t begin, std::int64_t end) {
    SortedRow<Number> sorted;
    for (std::int64_t row = begin; row < end; ++row) {
      float* const target = ranks + row * keys;
      spreads[row] =
          rows.sort(row, sorted)
              ? visit_ranks(sorted.entries,
                            [&](std::int32_t key, double rank) { target[key] = static_cast<float>(rank); })
              : std::numeric_limits<double>::quiet_NaN();
    }
  });
}

template <typename Number>
void correlate_rows(const at::Tensor& weights, const RankedRows& scores, at::Tensor& correlation) {
  const Rows<Number> rows(weights, scores.visible);
  const std::int64_t keys = weights.size(-1);
  const auto* const ranks = scores.ranks.const_data_ptr<float>();
  const auto* const spreads = scores.spread.const_data_ptr<double>();
  auto* const results = correlation.mutable_data_ptr<double>();
  at::parallel_for(0, rows.count(), kRowsPerThread, [&](std::int64_t begin, std::int64_t end) {
    SortedRow<Number> sorted;
    for (std::int64_t row = begin; row < end; ++row) {
      const float* const other = ranks + row * keys;
      results[row] = std::numeric_limits<double>::quiet_NaN();
      if (std::isnan(spreads[row]) || !rows.sort(row, sorted)) continue;
      results[row] = 0;
      if (static_cast<std::int64_t>(sorted.entries.size()) < kLeastKeys) continue;
      double products = 0;
      const double spread = visit_ranks(sorted.entries, [&](std::int32_t key, double rank) {
        products += rank * static_cast<double>(other[key]);
      });
      const double both = std::sqrt(spread * spreads[row]);
      if (both > 0) results[row] = products / both;
    }
  });
}

at::Tensor comparable(const at::Tensor& values) {
  const at::Tensor plain = values.detach().to(at::kCPU);
  return plain.scalar_type() == at::kDouble ? plain : plain.to(at::kFloat);
}

struct ScoreSums {
  at::Tensor smallest, largest; // (B,H), NaN if nothing is visible
  at::Tensor below, count;      // (B,H) and (B,1): scores below −1, all scores
};

ScoreSums score_sums(const at::Tensor& scores, const at::Tensor& visible) {
  const at::Tensor below = scores < -1;
  if (!visible.defined()) {
    const auto count = static_cast<double>(scores.size(2) * scores.size(3));
    return {scores.amin({2, 3}).to(at::kDouble), scores.amax({2, 3}).to(at::kDouble),
            below.sum({2, 3}).to(at::kDouble),
            at::full({scores.size(0), 1}, count, scores.options().dtype(at::kDouble))};
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor count = visible.sum({2, 3});
  const at::Tensor none = count == 0;
  const auto outermost = [&](const at::Tensor& values) {
    return values.to(at::kDouble).masked_fill(none, nan);
  };
  return {outermost(at::where(visible, scores, infinity).amin({2, 3})),
          outermost(at::where(visible, scores, -infinity).amax({2, 3})),
          below.logical_and(visible).sum({2, 3}).to(at::kDouble), count.to(at::kDouble)};
}

} // namespace

at::Tensor attention_scores(const AttentionInput& input, const at::Tensor& rows, std::int64_t heads) {
  check_input(input);
  const RealTokens real = real_tokens(input);
  const std::int64_t count = heads > 0 ? heads : input.q.size(1);
  const at::Tensor q = resplit(take_tokens(real.q, rows), count);
  const at::Tensor k = resplit(real.k, count);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  return at::matmul(q * scale, k.transpose(2, 3));
}

at::Tensor visible_keys(const AttentionInput& input, const at::Tensor& rows) {
  const at::Tensor keys = key_mask(input);
  at::Tensor visible;
  if (keys.defined())
    visible = take_mask(query_mask(input), rows).unsqueeze(-1).logical_and(keys.unsqueeze(1)).unsqueeze(1);
  if (!input.causal) return visible;
  const std::int64_t tokens = input.q.size(2);
  const at::Tensor queries = rows_or_all(rows, tokens, input.q);
  const at::Tensor earlier = (at::arange(tokens, queries.options()) <= queries.unsqueeze(1));
  if (visible.defined()) return visible.logical_and(earlier);
  return earlier.expand({input.q.size(0), 1, queries.size(0), tokens});
}

RankedRows rank_rows(const at::Tensor& values, const at::Tensor& visible) {
  const at::Tensor plain = comparable(values);
  const at::Tensor seen = visible.defined() ? visible.to(at::kCPU) : visible;
  const std::int64_t batch = plain.size(0), rows = plain.size(2);
  RankedRows ranked{at::zeros(plain.sizes(), at::kFloat),
                    at::empty({batch, plain.size(1), rows}, at::kDouble), seen,
                    seen.defined() ? seen.sum(-1) >= kLeastKeys
                                   : at::full({batch, 1, rows}, plain.size(3) >= kLeastKeys, at::kBool)};
  if (plain.scalar_type() == at::kDouble)
    rank_rows<double>(plain, ranked);
  else
    rank_rows<float>(plain, ranked);
  return ranked;
}

at::Tensor rank_correlation(const at::Tensor& weights, const RankedRows& scores) {
  const at::Tensor plain = comparable(weights);
  at::Tensor correlation = at::empty(scores.spread.sizes(), at::kDouble);
  if (plain.scalar_type() == at::kDouble)
    correlate_rows<double>(plain, scores, correlation);
  else
    correlate_rows<float>(plain, scores, correlation);
  return correlation;
}

at::Tensor monotonicity(const at::Tensor& weights, const at::Tensor& scores, const at::Tensor& visible) {
  const RankedRows ranked = rank_rows(scores, visible);
  return rank_correlation(weights, ranked).sum(-1) / ranked.counted.sum(-1);
}

ScoreRange score_range(const at::Tensor& scores, const at::Tensor& visible) {
  const ScoreSums sums = score_sums(scores.detach(), visible);
  return {sums.smallest, sums.largest, sums.below / sums.count};
}

ScoreRange score_range(const AttentionInput& input) {
  const std::int64_t tokens = input.q.size(2);
  const std::int64_t step =
      std::clamp<std::int64_t>(kScoresAtOnce / (input.q.size(0) * input.q.size(1) * tokens), 1, tokens);
  ScoreSums all;
  for (std::int64_t first = 0; first < tokens; first += step) {
    const at::Tensor rows =
        at::arange(first, std::min(tokens, first + step), input.q.options().dtype(at::kLong));
    const ScoreSums sums = score_sums(attention_scores(input, rows), visible_keys(input, rows));
    const bool begun = all.count.defined();
    all.smallest = begun ? at::fmin(all.smallest, sums.smallest) : sums.smallest;
    all.largest = begun ? at::fmax(all.largest, sums.largest) : sums.largest;
    all.below = begun ? all.below + sums.below : sums.below;
    all.count = begun ? all.count + sums.count : sums.count;
  }
  return {all.smallest, all.largest, all.below / all.count};
}

namespace {

class MonotonicityReader final : public HeadReader {
public:
  void add(RowTile& tile, const at::Tensor& weights) override {
    const RankedRows& ranked = tile.scores(weights.size(1));
    mean_.add_sum(rank_correlation(weights, ranked).sum(-1), ranked.counted.sum(-1).to(at::kDouble));
  }
  HeadValues finish(LayerOutputs& /*outputs*/) override { return {mean_.value()}; }

private:
  RowMean mean_;
};

} // namespace

HeadQuantity monotonicity_quantity() {
  return {{.name = "monotonicity",
           .title = "Monotonicity",
           .heading = "Spearman's ρ of weight and q·k/√d",
           .meaning = "1: a larger q·k/√d always has a larger weight",
           .undefined = "undefined: this kernel has another number of heads",
           .summary = "Spearman's ρ of weight and q·k/√d by layer and head (Hedgehog paper, section 3.2)",
           .parts = {{"monotonicity", "Spearman's ρ of weight and q·k/√d",
                      HeadQuantityInfo::Colours::signed_unit}}},
          [](const KernelInfo& /*kernel*/) -> std::unique_ptr<HeadReader> {
            return std::make_unique<MonotonicityReader>();
          }};
}

} // namespace hydrascope
