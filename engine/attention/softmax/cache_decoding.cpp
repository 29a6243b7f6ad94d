#include "engine/attention/softmax/cache_decoding.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/key_value_cache.h"
#include "engine/attention/softmax/softmax_family.h"

namespace hydrascope {
namespace {

class CacheState final : public DecodingState {
public:
  CacheState(const Kernel& kernel, const std::int64_t heads, const CacheWindow& window,
             const AttentionShape& shape)
      : DecodingState(shape),
        kernel_(kernel),
        heads_(heads),
        window_(window),
        cache_(shape, heads == shape.heads ? key_heads() : heads, shape.heads * shape.head_width / heads,
               window.size) {}

  std::int64_t bytes() const override { return cache_.slots().bytes(kept_tokens(tokens())); }
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
      cache_.write(k, v, tokens());
      return out;
    }
    cache_.write(k, v, tokens());
    if (rows > 1) return resplit(attend_all(q), shape().heads);
    return resplit(cache_.slots().attend(q, kept_tokens(tokens() + 1)), shape().heads);
  }
  DecodingTensors kept() const override {
    const std::int64_t first = tokens() - kept_tokens(tokens());
    return {{"keys", cache_.keys(first, tokens()).contiguous()},
            {"values", cache_.values(first, tokens()).contiguous()}};
  }
  void restore(const DecodingTensors& saved) override {
    const std::int64_t count = kept_tokens(tokens());
    const auto options =
        at::TensorOptions(at::Device(shape().device, shape().device_index)).dtype(shape().dtype);
    const at::Tensor any = cache_.keys(0, 0); // of the right heads and width
    const std::vector<std::int64_t> sizes{shape().batch, any.size(1), count, any.size(3)};
    cache_.write(saved_tensor(saved, "keys", sizes, options), saved_tensor(saved, "values", sizes, options),
                 tokens() - count);
  }

private:
  // The tokens that are kept when there have been `count`.
  std::int64_t kept_tokens(const std::int64_t count) const {
    if (window_.size == 0) return count;
    if (window_.blocks) return count == 0 ? 0 : (count - 1) % window_.size + 1;
    return std::min(count, window_.size);
  }
  // k or v (B,key_heads,R,d) as the heads of the cache.
  at::Tensor split(const at::Tensor& x) const {
    return heads_ == shape().heads ? x : resplit(for_each_head(x, shape().heads), heads_);
  }

  // Attention of the next tokens over them and those before them that they attend to.
  at::Tensor run(const AttentionInput& next) const {
    const std::int64_t earlier = window_.size == 0 ? 0
                                 : window_.blocks  ? tokens() % window_.size
                                                   : std::min(tokens(), window_.size - 1);
    AttentionInput all = next;
    if (earlier > 0) {
      all.q = at::constant_pad_nd(next.q, {0, 0, earlier, 0});
      all.k = at::cat({cache_.keys(tokens() - earlier, tokens()), next.k}, 2);
      all.v = at::cat({cache_.values(tokens() - earlier, tokens()), next.v}, 2);
    }
    all.k = for_each_head(all.k, shape().heads);
    all.v = for_each_head(all.v, shape().heads);
    // Without a window all kernels of the family are one function, of which this is the fastest.
    if (window_.size == 0) return run_through_flash(all, heads_).out;
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
  RecentTokens cache_;
};

} // namespace

std::unique_ptr<DecodingState> make_cache_decoding(const Kernel& kernel, const std::int64_t heads,
                                                   const CacheWindow& window, const AttentionShape& shape) {
  return std::make_unique<CacheState>(kernel, heads, window, shape);
}

} // namespace hydrascope
