#include "engine/attention/softmax/cache_decoding.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/key_value_cache.h"

namespace hydrascope {
namespace {

constexpr std::int64_t slots_at_first = 256;

class CacheState final : public DecodingState {
public:
  CacheState(const Kernel& kernel, const std::int64_t heads, const CacheWindow& window,
             const AttentionShape& shape)
      : DecodingState(shape),
        kernel_(kernel),
        heads_(heads),
        window_(window),
        cache_(shape, heads == shape.heads ? key_heads() : heads, shape.heads * shape.head_width / heads,
               window.size > 0 ? window.size : std::max(slots_at_first, shape.tokens)) {}

  std::int64_t bytes() const override { return cache_.bytes(kept_tokens(tokens())); }
  std::unique_ptr<DecodingState> clone() const override {
    auto copy = std::make_unique<CacheState>(*this);
    copy->cache_ = cache_.clone();
    return copy;
  }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    const std::int64_t rows = next.q.size(2);
    const at::Tensor q = resplit(next.q, heads_), k = split(next.k), v = split(next.v);
    if (rows > 1 && (window_.size > 0 || tokens() == 0)) {
      const at::Tensor out = run(next);
      write(k, v);
      return out;
    }
    write(k, v);
    if (rows > 1) return resplit(attend_all(q), shape().heads);
    return resplit(cache_.attend(q, kept_tokens(tokens() + 1)), shape().heads);
  }
  DecodingTensors kept() const override {
    const std::int64_t count = kept_tokens(tokens());
    return {{"keys", last(count, true).contiguous()}, {"values", last(count, false).contiguous()}};
  }
  void restore(const DecodingTensors& saved) override {
    const std::int64_t count = kept_tokens(tokens());
    const auto options =
        at::TensorOptions(at::Device(shape().device, shape().device_index)).dtype(shape().dtype);
    const auto read = [&](const char* name) {
      const at::Tensor any = last(0, true); // of the right heads and width
      return saved_tensor(saved, name, {shape().batch, any.size(1), count, any.size(3)}, options);
    };
    const at::Tensor k = read("keys"), v = read("values");
    put(k, v, tokens() - count);
  }

private:
  // The tokens that are kept when there have been `count`.
  std::int64_t kept_tokens(const std::int64_t count) const {
    if (window_.size == 0) return count;
    if (window_.blocks) return count == 0 ? 0 : (count - 1) % window_.size + 1;
    return std::min(count, window_.size);
  }
  std::int64_t slot(const std::int64_t token) const {
    return window_.size == 0 ? token : token % window_.size;
  }

  // k or v (B,key_heads,R,d) as the heads of the cache.
  at::Tensor split(const at::Tensor& x) const {
    return heads_ == shape().heads ? x : resplit(for_each_head(x, shape().heads), heads_);
  }

  void write(const at::Tensor& k, const at::Tensor& v) {
    const std::int64_t count = kept_tokens(tokens() + k.size(2));
    const std::int64_t skipped = std::max<std::int64_t>(0, k.size(2) - count);
    put(k.slice(2, skipped), v.slice(2, skipped), tokens() + skipped);
  }
  // Tokens from `first` on to their slots, which may go round.
  void put(const at::Tensor& k, const at::Tensor& v, const std::int64_t first) {
    for (std::int64_t done = 0; done < k.size(2);) {
      const std::int64_t at = slot(first + done), left = k.size(2) - done;
      const std::int64_t count = window_.size == 0 ? left : std::min(left, window_.size - at);
      cache_.write(k.slice(2, done, done + count), v.slice(2, done, done + count), at);
      done += count;
    }
  }

  // Keys or values of the last `count` of the tokens so far, in their order.
  at::Tensor last(const std::int64_t count, const bool keys) const {
    const auto read = [&](const std::int64_t first, const std::int64_t end) {
      return keys ? cache_.keys(first, end) : cache_.values(first, end);
    };
    if (count == 0) return read(0, 0);
    const std::int64_t first = slot(tokens() - count), end = slot(tokens() - 1) + 1;
    return first < end ? read(first, end) : at::cat({read(first, window_.size), read(0, end)}, 2);
  }

  // The kernel itself on the next tokens and those before them that they attend to.
  at::Tensor run(const AttentionInput& next) const {
    const std::int64_t earlier = window_.size == 0 ? 0
                                 : window_.blocks  ? tokens() % window_.size
                                                   : std::min(tokens(), window_.size - 1);
    AttentionInput all = next;
    if (earlier > 0) {
      all.q = at::constant_pad_nd(next.q, {0, 0, earlier, 0});
      all.k = at::cat({last(earlier, true), next.k}, 2);
      all.v = at::cat({last(earlier, false), next.v}, 2);
    }
    all.k = for_each_head(all.k, shape().heads);
    all.v = for_each_head(all.v, shape().heads);
    return kernel_.run(all, {}).out.slice(2, earlier);
  }

  // Several queries (B,H,R,d), the last of all tokens in the cache.
  at::Tensor attend_all(const at::Tensor& q) const {
    const std::int64_t count = tokens() + q.size(2);
    const at::Tensor keys = at::arange(count, q.options().dtype(at::kLong));
    const at::Tensor allowed = keys <= keys.slice(0, tokens()).unsqueeze(1);
    return at::scaled_dot_product_attention(q, for_each_head(cache_.keys(0, count), q.size(1)),
                                            for_each_head(cache_.values(0, count), q.size(1)), allowed);
  }

  const Kernel& kernel_;
  std::int64_t heads_;
  CacheWindow window_;
  KeyValueCache cache_;
};

} // namespace

std::unique_ptr<DecodingState> make_cache_decoding(const Kernel& kernel, const std::int64_t heads,
                                                   const CacheWindow& window, const AttentionShape& shape) {
  return std::make_unique<CacheState>(kernel, heads, window, shape);
}

} // namespace hydrascope
