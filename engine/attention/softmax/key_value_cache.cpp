#include "engine/attention/softmax/key_value_cache.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/cpu/cache.h"
#include "engine/base/thread_team.h"

namespace hydrascope {
namespace {

constexpr std::int64_t slots_at_first = 256;

// Partial results of one key/value head.
struct CachePart {
  float *largest, *totals, *sums;
};

// Adds `other` to `own`: relative to the larger of both references.
void add_part(const CachePart& own, const CachePart& other, const std::int64_t group,
              const std::int64_t padded) {
  for (std::int64_t g = 0; g < group; ++g) {
    const float top = std::max(own.largest[g], other.largest[g]);
    const float keep = std::exp(own.largest[g] - top), gain = std::exp(other.largest[g] - top);
    own.largest[g] = top;
    own.totals[g] = own.totals[g] * keep + other.totals[g] * gain;
    for (std::int64_t f = g * padded; f < (g + 1) * padded; ++f)
      own.sums[f] = own.sums[f] * keep + other.sums[f] * gain;
  }
}

} // namespace

KeyValueCache::KeyValueCache(const AttentionShape& shape, const std::int64_t key_heads,
                             const std::int64_t head_width, const std::int64_t expected)
    : batch_(shape.batch),
      heads_(key_heads),
      width_(head_width),
      options_(at::TensorOptions(at::Device(shape.device, shape.device_index)).dtype(shape.dtype)),
      packed_(loops_take(shape)) {
  reserve(expected);
}

KeyValueCache KeyValueCache::clone() const {
  KeyValueCache copy = *this;
  copy.keys_ = keys_.clone();
  copy.values_ = values_.clone();
  return copy;
}

void KeyValueCache::reserve(const std::int64_t slots) {
  if (slots <= capacity_) return;
  const std::int64_t tiles =
      (std::max(slots, 2 * capacity_) + cpu::tokens_of_block - 1) / cpu::tokens_of_block;
  const std::int64_t capacity = tiles * cpu::tokens_of_block;
  const at::Tensor old_keys = keys_, old_values = values_;
  if (packed_) { // what is past the last token is read, though not used
    keys_ = at::zeros({batch_, heads_, tiles, width_, cpu::tokens_of_block}, options_);
    values_ = at::zeros({batch_, heads_, capacity, cpu::padded_to_lanes(width_)}, options_);
  } else {
    keys_ = at::empty({batch_, heads_, capacity, width_}, options_);
    values_ = at::empty({batch_, heads_, capacity, width_}, options_);
  }
  if (old_keys.defined()) {
    keys_.slice(2, 0, old_keys.size(2)).copy_(old_keys);
    values_.slice(2, 0, old_values.size(2)).copy_(old_values);
  }
  capacity_ = capacity;
}

// LibTorch's operators on views would cost more than the copy.
template <typename Number>
void KeyValueCache::write_token(const at::Tensor& k, const at::Tensor& v, const std::int64_t slot) {
  constexpr std::int64_t size = cpu::tokens_of_block;
  const std::int64_t padded = values_.size(3), tiles = keys_.size(2);
  for (std::int64_t batch = 0; batch < batch_; ++batch)
    for (std::int64_t head = 0; head < heads_; ++head) {
      const auto numbers_of = [&](const at::Tensor& x) {
        return static_cast<const Number*>(x.const_data_ptr()) + batch * x.stride(0) + head * x.stride(1);
      };
      const Number *const key = numbers_of(k), *const value = numbers_of(v);
      const std::int64_t of_head = batch * heads_ + head;
      std::copy_n(value, width_,
                  static_cast<Number*>(values_.data_ptr()) + (of_head * capacity_ + slot) * padded);
      Number* column = static_cast<Number*>(keys_.data_ptr()) +
                       (of_head * tiles + slot / size) * width_ * size + slot % size;
      for (std::int64_t i = 0; i < width_; ++i, column += size) *column = key[i];
    }
}

void KeyValueCache::write(const at::Tensor& k, const at::Tensor& v, const std::int64_t first) {
  const std::int64_t count = k.size(2), last = first + count;
  reserve(last);
  if (packed_ && count == 1 && k.stride(3) == 1 && v.stride(3) == 1 && k.scalar_type() == options_.dtype() &&
      v.scalar_type() == options_.dtype()) {
    if (options_.dtype() == at::kFloat)
      write_token<float>(k, v, first);
    else
      write_token<std::uint16_t>(k, v, first); // the bits of bfloat16
    return;
  }
  values_.slice(2, first, last).slice(3, 0, width_).copy_(v);
  if (!packed_) {
    keys_.slice(2, first, last).copy_(k);
    return;
  }
  constexpr std::int64_t size = cpu::tokens_of_block;
  for (std::int64_t slot = first; slot < last;) {
    const std::int64_t end = std::min(last, (slot / size + 1) * size);
    keys_.select(2, slot / size)
        .slice(3, slot % size, slot % size + end - slot)
        .copy_(k.slice(2, slot - first, end - first).transpose(2, 3));
    slot = end;
  }
}

at::Tensor KeyValueCache::keys(const std::int64_t first, const std::int64_t last) const {
  if (!packed_) return keys_.slice(2, first, last);
  constexpr std::int64_t size = cpu::tokens_of_block;
  const std::int64_t tile = first / size, end = (last + size - 1) / size;
  return keys_.slice(2, tile, end)
      .transpose(3, 4)
      .flatten(2, 3)
      .slice(2, first - tile * size, last - tile * size);
}

at::Tensor KeyValueCache::values(const std::int64_t first, const std::int64_t last) const {
  return values_.slice(2, first, last).slice(3, 0, width_);
}

std::int64_t KeyValueCache::bytes(const std::int64_t count) const {
  return 2 * batch_ * heads_ * count * width_ * static_cast<std::int64_t>(options_.dtype().itemsize());
}

SoftmaxSums KeyValueCache::sums_in_loops(const at::Tensor& q, const std::int64_t count) const {
  const std::int64_t group = q.size(1) / heads_, padded = cpu::padded_to_lanes(width_);
  const std::int64_t ranges = (count + cpu::cached_tokens_at_once - 1) / cpu::cached_tokens_at_once;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width_)));
  at::Tensor queries = row_to(q, at::kFloat).contiguous(); // (B,H,1,d)
  if (queries.is_same(q)) queries = queries.clone();
  std::for_each_n(queries.data_ptr<float>(), queries.numel(), [&](float& number) { number *= scale; });
  const std::int64_t units = batch_ * heads_ * ranges;
  // Of each range of each key/value head.
  const at::Tensor largest = at::empty({units, group, 1, 1}, queries.options()),
                   totals = at::empty({units, group, 1, 1}, queries.options()),
                   sums = at::empty({units, group, 1, padded}, queries.options());
  const auto part_of = [&](const std::int64_t unit) {
    return CachePart{largest.data_ptr<float>() + unit * group, totals.data_ptr<float>() + unit * group,
                     sums.data_ptr<float>() + unit * group * padded};
  };
  const auto head_of = [&](const std::int64_t head) {
    const auto at = [&](const at::Tensor& x) {
      return static_cast<const char*>(x.const_data_ptr()) +
             head * x.stride(1) * static_cast<std::int64_t>(x.element_size());
    };
    const bool half = options_.dtype() == at::kBFloat16;
    return cpu::CachedHead{at(keys_), at(values_), half ? cpu::Element::bfloat16 : cpu::Element::float32,
                           width_};
  };
  const cpu::CacheLoops& loops = cpu::cache_loops(cpu::best_processor(false));
  // Starting a thread pays from about 256 KiB on.
  const std::int64_t bytes_of_unit = std::max<std::int64_t>(1, bytes(count) / units);
  const std::int64_t grain = std::max<std::int64_t>(1, (std::int64_t{256} << 10) / bytes_of_unit);
  run_on_team(at::get_num_threads(), units, grain, [&](const std::int64_t begin, const std::int64_t end) {
    std::vector<float> buffers(static_cast<std::size_t>(group * cpu::cached_tokens_at_once));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t head = i / ranges, first = i % ranges * cpu::cached_tokens_at_once;
      const auto [top, total, sum] = part_of(i);
      loops.part(queries.const_data_ptr<float>() + head * group * width_, group, head_of(head),
                 {first, std::min(count, first + cpu::cached_tokens_at_once)}, buffers.data(), top, total,
                 sum);
    }
  });
  if (ranges > 1)
    for (std::int64_t i = 0; i < units; ++i)
      if (i % ranges > 0) add_part(part_of(i - i % ranges), part_of(i), group, padded);
  const auto of_heads = [&](const at::Tensor& x) { // the first range holds all
    return x.unflatten(0, {batch_ * heads_, ranges}).select(1, 0);
  };
  return {of_heads(sums), of_heads(totals), of_heads(largest)};
}

SoftmaxSums KeyValueCache::sums(const at::Tensor& q, const std::int64_t count) const {
  if (packed_) {
    const SoftmaxSums all = sums_in_loops(q, count);
    const auto of_batch = [&](const at::Tensor& x) { return x.unflatten(0, {batch_, heads_}).flatten(1, 2); };
    return {of_batch(all.numerator).slice(3, 0, width_), of_batch(all.denominator), of_batch(all.reference)};
  }
  const at::ScalarType type = compute_type(q.scalar_type());
  const double scale = 1 / std::sqrt(static_cast<double>(width_));
  // The queries of a group are the rows of one product.
  const at::Tensor rows = (q.to(type) * scale).squeeze(2).unflatten(1, {heads_, q.size(1) / heads_});
  const at::Tensor scores = at::matmul(rows, keys(0, count).to(type).transpose(2, 3)); // (B,H_k,G,count)
  const at::Tensor largest = scores.amax(-1, true), shares = (scores - largest).exp();
  const auto of_heads = [](const at::Tensor& x) { return x.flatten(1, 2).unsqueeze(2); };
  return {of_heads(at::matmul(shares, values(0, count).to(type))), of_heads(shares.sum(-1, true)),
          of_heads(largest)};
}

at::Tensor KeyValueCache::attend(const at::Tensor& q, const std::int64_t count) const {
  if (packed_) {
    const SoftmaxSums all = sums_in_loops(q, count);
    const at::Tensor out = at::empty(q.sizes(), all.numerator.options());
    const std::int64_t group = q.size(1) / heads_, padded = all.numerator.size(3);
    auto* to = out.mutable_data_ptr<float>();
    for (std::int64_t head = 0; head < batch_ * heads_; ++head) {
      const float* const sums = all.numerator.const_data_ptr<float>() + head * all.numerator.stride(0);
      const float* const totals = all.denominator.const_data_ptr<float>() + head * all.denominator.stride(0);
      for (std::int64_t g = 0; g < group; ++g)
        for (std::int64_t i = 0; i < width_; ++i) *to++ = sums[g * padded + i] / totals[g];
    }
    return row_to(out, q.scalar_type());
  }
  const SoftmaxSums all = sums(q, count);
  return (all.numerator / all.denominator).to(q.scalar_type());
}

// A slot keeps its token when the cache grows: none comes round before all have been written.
RecentTokens::RecentTokens(const AttentionShape& shape, const std::int64_t key_heads,
                           const std::int64_t head_width, const std::int64_t size)
    : cache_(shape, key_heads, head_width,
             size > 0 ? std::min(size, std::max(slots_at_first, shape.tokens))
                      : std::max(slots_at_first, shape.tokens)),
      size_(size) {}

void RecentTokens::write(const at::Tensor& k, const at::Tensor& v, const std::int64_t first) {
  const std::int64_t count = k.size(2);
  // Where they go round, in pieces.
  for (std::int64_t done = size_ == 0 ? 0 : std::max<std::int64_t>(0, count - size_); done < count;) {
    const std::int64_t at = slot(first + done), left = count - done;
    const std::int64_t piece = size_ == 0 ? left : std::min(left, size_ - at);
    cache_.write(k.slice(2, done, done + piece), v.slice(2, done, done + piece), at);
    done += piece;
  }
}

at::Tensor RecentTokens::read(const std::int64_t first, const std::int64_t last, const bool keys) const {
  const auto slots = [&](const std::int64_t from, const std::int64_t end) {
    return keys ? cache_.keys(from, end) : cache_.values(from, end);
  };
  if (first == last) return slots(0, 0);
  const std::int64_t from = slot(first), end = slot(last - 1) + 1;
  return from < end ? slots(from, end) : at::cat({slots(from, size_), slots(0, end)}, 2);
}

} // namespace hydrascope
