#include "engine/run/quantities/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
#include "engine/run/quantities/ascending.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kLeastKeys = 3;
constexpr std::int64_t kRowsAtOnce = 64; // rows that one thread takes at least
constexpr std::int64_t kScoresAtOnce = std::int64_t{8} << 20;

// A row's visible entries, and room to sort them.
template <typename Number>
struct SortedRow {
  std::vector<Entry<Number>> entries, spare;
};

// The rows of a tensor and which of their entries count, as plain memory.
template <typename Number>
class Rows {
public:
  Rows(const at::Tensor& values, const at::Tensor& visible)
      : values_(values.to(at::kCPU).contiguous()),
        keys_(values.size(-1)),
        heads_(values.size(1)),
        rows_(values.size(2)) {
    if (visible.defined())
      visible_ = visible.to(at::kCPU).expand({values.size(0), 1, rows_, keys_}).contiguous();
  }

  std::int64_t count() const { return values_.numel() / std::max<std::int64_t>(keys_, 1); }

  // The visible entries of a row in ascending order. False if one is not a number.
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

// Calls `each(key, rank)` with the rank counted from the row's mean rank; returns the sum of squared ranks.
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
  at::parallel_for(0, rows.count(), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
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
  at::parallel_for(0, rows.count(), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
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
  const at::Tensor plain = values.detach();
  return plain.scalar_type() == at::kDouble ? plain : plain.to(at::kFloat);
}

struct ScoreSums {
  at::Tensor smallest, largest; // (B,H), not a number where nothing is visible
  at::Tensor below, count;      // (B,H) and (B,1): scores below −1, all scores
};

ScoreSums score_sums(const at::Tensor& scores, const at::Tensor& visible) {
  const at::Tensor below = scores < -1;
  if (!visible.defined()) {
    const auto count = static_cast<double>(scores.size(2) * scores.size(3));
    return {scores.amin({2, 3}).to(at::kDouble), scores.amax({2, 3}).to(at::kDouble),
            below.sum({2, 3}).to(at::kDouble), at::full({scores.size(0), 1}, count, at::kDouble)};
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
  const at::Tensor mask = real_mask(input);
  at::Tensor visible;
  if (mask.defined()) {
    const at::Tensor queries = take_mask(mask, rows);
    visible = queries.unsqueeze(-1).logical_and(mask.unsqueeze(1)).unsqueeze(1);
  }
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

} // namespace hydrascope
