#include "engine/models/transformer/row_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include "engine/base/lockstep.h"
#include "engine/base/thread_team.h"
#include "engine/models/transformer/cpu/row.h"

namespace hydrascope {
namespace {

bool holds(const at::ScalarType type, const at::Tensor& weights) {
  return weights.to(type).to(at::kFloat).equal(weights);
}

cpu::RowNumber number_of(const at::ScalarType type) {
  if (type == at::kBFloat16) return cpu::RowNumber::bfloat16;
  return type == at::kHalf ? cpu::RowNumber::float16 : cpu::RowNumber::float32;
}

} // namespace

at::ScalarType row_type(const at::Tensor& weights) {
  if (weights.scalar_type() != at::kFloat || !weights.is_cpu() || weights.dim() < 2)
    return weights.scalar_type();
  const at::NoGradGuard no_gradients;
  const at::Tensor first = weights.select(0, 0); // most weights are told apart by one row
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const bool fast = type == at::kBFloat16 || cpu::best_processor(false) != cpu::Processor::plain;
    if (fast && holds(type, first) && holds(type, weights)) return type;
  }
  return at::kFloat;
}

RowWeights::RowWeights(const std::vector<at::Tensor>& weights) : inputs_(weights.front().size(1)) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& weight : weights) {
    weights_.push_back(weight.detach().to(row_type(weight)));
    outputs_ += weight.size(0);
    row_bytes_ = std::max(row_bytes_, inputs_ * static_cast<std::int64_t>(weights_.back().element_size()));
  }
}

std::shared_ptr<const RowWeights> RowWeights::of(const std::vector<at::Tensor>& weights) {
  // By the addresses of the numbers, which are not given to others while a layer has its weights.
  static std::mutex mutex;
  static std::map<std::vector<const void*>, std::weak_ptr<const RowWeights>> known;
  std::vector<const void*> key;
  for (const at::Tensor& weight : weights) key.push_back(weight.const_data_ptr());
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<const RowWeights>& one = known[key];
  std::shared_ptr<const RowWeights> found = one.lock();
  if (!found) one = found = std::shared_ptr<const RowWeights>(new RowWeights(weights));
  return found;
}

void RowWeights::multiply_rows(const float* const* const x, float* const* const out, const int columns,
                               const std::int64_t begin, const std::int64_t end) const {
  const cpu::RowLoops& loops = cpu::row_loops(cpu::best_processor(false));
  std::int64_t first = 0;
  for (const at::Tensor& weight : weights_) {
    const std::int64_t last = first + weight.size(0);
    const std::int64_t from = std::max(begin, first), to = std::min(end, last);
    if (from < to) {
      const auto* const rows =
          static_cast<const char*>(weight.const_data_ptr()) +
          (from - first) * weight.stride(0) * static_cast<std::int64_t>(weight.element_size());
      std::array<float*, 2> results{};
      for (std::size_t column = 0; column < static_cast<std::size_t>(columns); ++column)
        results.at(column) = out[column] + from;
      loops.product(x, rows, number_of(weight.scalar_type()), columns, inputs_, to - from, results.data());
    }
    first = last;
  }
}

void RowWeights::multiply(const float* const x, float* const out) const {
  constexpr std::int64_t least_bytes = std::int64_t{128} << 10; // from about here on a thread pays
  const std::int64_t grain = std::max<std::int64_t>(1, least_bytes / row_bytes_);
  const LockstepMember* const member = LockstepMember::current();
  const Lockstep::Offer* const other =
      member == nullptr ? nullptr : member->lockstep().meet(member->side(), {this, x, out});
  const std::array<const float*, 2> inputs{x, other == nullptr ? nullptr : other->x};
  const std::array<float*, 2> results{out, other == nullptr ? nullptr : other->out};
  const std::int64_t half = outputs_ / 2;
  const std::int64_t first = other != nullptr && member->side() == 1 ? half : 0;
  const std::int64_t last = other != nullptr && member->side() == 0 ? half : outputs_;
  run_on_team(
      at::get_num_threads(), last - first, grain, [&](const std::int64_t begin, const std::int64_t end) {
        multiply_rows(inputs.data(), results.data(), other == nullptr ? 1 : 2, first + begin, first + end);
      });
  if (member != nullptr) member->lockstep().finish(member->side());
}

} // namespace hydrascope
