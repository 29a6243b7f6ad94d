#include "engine/attention/linear/hybrid/hybrid_decoding.h"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>

#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/hybrid/far_sums.h"
#include "engine/attention/linear/hybrid/window_sums.h"
#include "engine/attention/softmax/key_value_cache.h"

namespace hydrascope {
namespace {

const std::string far_prefix = "far.";

class HybridState final : public DecodingState {
public:
  HybridState(const FeatureMap& map, const std::int64_t window, const AttentionShape& shape,
              const KernelParameters& parameters)
      : DecodingState(shape),
        window_(window),
        near_(shape, key_heads(), shape.head_width, window),
        far_(make_far_sums(map, shape, parameters)) {}

  std::int64_t bytes() const override {
    return near_.slots().bytes(std::min(tokens(), window_)) + (tokens() > window_ ? far_->bytes() : 0);
  }
  std::unique_ptr<DecodingState> clone() const override {
    return std::unique_ptr<DecodingState>(new HybridState(*this));
  }

protected:
  at::Tensor outputs(const AttentionInput& next) override {
    constexpr std::int64_t tokens_at_once = 1024; // the features of so many are stored
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < next.q.size(2); first += tokens_at_once) {
      const std::int64_t last = std::min(next.q.size(2), first + tokens_at_once);
      const auto cut = [&](const at::Tensor& x) { return x.slice(2, first, last); };
      parts.push_back(outputs_from(cut(next.q), cut(next.k), cut(next.v), tokens() + first));
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts, 2);
  }
  DecodingTensors kept() const override {
    const std::int64_t first = tokens() - std::min(tokens(), window_);
    DecodingTensors all{{"keys", near_.keys(first, tokens()).contiguous()},
                        {"values", near_.values(first, tokens()).contiguous()}};
    if (tokens() > window_)
      for (auto& [name, x] : far_->kept()) all[far_prefix + name] = x;
    return all;
  }
  void restore(const DecodingTensors& saved) override {
    const std::int64_t count = std::min(tokens(), window_), width = shape().head_width;
    const auto options = at::TensorOptions(at::Device(shape().device, shape().device_index));
    const std::vector<std::int64_t> sizes{shape().batch, key_heads(), count, width};
    near_.write(saved_tensor(saved, "keys", sizes, options.dtype(shape().dtype)),
                saved_tensor(saved, "values", sizes, options.dtype(shape().dtype)), tokens() - count);
    if (tokens() <= window_) return;
    DecodingTensors far;
    for (const auto& [name, x] : saved)
      if (name.starts_with(far_prefix)) far[name.substr(far_prefix.size())] = x;
    far_->restore(far);
  }

private:
  HybridState(const HybridState& other)
      : DecodingState(other), window_(other.window_), near_(other.near_.clone()), far_(other.far_->clone()) {}

  // The outputs of tokens from `first` on, which are added: q (B,H,R,d), k, v (B,H_k,R,d).
  at::Tensor outputs_from(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const std::int64_t first) {
    const std::int64_t rows = q.size(2), kept = std::min(first, window_);
    const at::ScalarType type = compute_type(q.scalar_type());
    const at::Tensor query = q.to(type);
    // Query i meets the key i − w, which has just left its window; the first of all tokens meet none. A
    // single query needs no other key here: its window is read where it lies.
    const std::int64_t without = std::clamp<std::int64_t>(window_ - first, 0, rows);
    const std::int64_t last = rows > 1 ? first : first - kept + (1 - without);
    at::Tensor keys = near_.keys(first - kept, last).to(type),
               values = near_.values(first - kept, last).to(type);
    if (rows > 1) {
      keys = at::cat({keys, k.to(type)}, 2);
      values = at::cat({values, v.to(type)}, 2);
    } else {
      keys = keys.clone(); // the token's own key takes its slot
      values = values.clone();
    }
    near_.write(k, v, first);
    WindowSums sums = near_sums(query, keys, values, first);
    if (without < rows) {
      const auto leaving = [&](const at::Tensor& x) {
        return at::constant_pad_nd(x.slice(2, 0, rows - without), {0, 0, without, 0});
      };
      at::Tensor ranges;
      if (without > 0) {
        const auto place = [&](const std::int64_t i) {
          return at::full({1, 1}, i, query.options().dtype(at::kLong));
        };
        ranges = at::cat({place(without), place(rows), place(rows)}, 1);
      }
      sums = added(sums, far_->extend(query, leaving(keys), leaving(values), ranges));
    }
    return quotient_of(sums).to(q.scalar_type());
  }

  // `keys` and `values` end with the queries' own.
  WindowSums near_sums(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                       const std::int64_t first) const {
    if (query.size(2) == 1) {
      const SoftmaxSums one = near_.slots().sums(query, std::min(first + 1, window_));
      return {one.numerator, one.denominator, one.reference};
    }
    const std::int64_t count = std::min(keys.size(2), window_ - 1 + query.size(2));
    const auto last = [&](const at::Tensor& x) { return x.slice(2, x.size(2) - count); };
    const at::Tensor length = at::full({1, 1}, count, query.options().dtype(at::kLong));
    return softmax_sums(query, last(keys), last(values), windows_of(count, window_, true, length), window_,
                        true);
  }

  std::int64_t window_;
  RecentTokens near_;            // the last w tokens
  std::unique_ptr<FarSums> far_; // of those before
};

} // namespace

std::unique_ptr<DecodingState> make_hybrid_decoding(const FeatureMap& map, const std::int64_t window,
                                                    const AttentionShape& shape,
                                                    const KernelParameters& parameters) {
  return std::make_unique<HybridState>(map, window, shape, parameters);
}

} // namespace hydrascope
