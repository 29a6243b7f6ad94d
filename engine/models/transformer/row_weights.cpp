#include "engine/models/transformer/row_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

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
  // Keyed by address: a layer keeps its weights alive, so an address is not reused while its entry lives.
  using Key = std::vector<std::pair<const void*, std::vector<std::int64_t>>>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const RowWeights>> known;
  Key key;
  for (const at::Tensor& weight : weights) {
    std::vector<std::int64_t> kind = weight.sizes().vec();
    kind.push_back(static_cast<std::int64_t>(weight.scalar_type()));
    kind.push_back(weight.is_inference() ? 0 : weight._version());
    key.emplace_back(weight.const_data_ptr(), std::move(kind));
  }
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
  const int threads = at::get_num_threads();
  const LockstepMember* const member = LockstepMember::current();
  // Whatever may throw comes before meet().
  std::array<const float*, 2> inputs{x, nullptr};
  std::array<float*, 2> results{out, nullptr};
  std::int64_t first = 0, last = outputs_;
  const ThreadTeam::Work work = [&](const std::int64_t begin, const std::int64_t end) {
    multiply_rows(inputs.data(), results.data(), inputs[1] == nullptr ? 1 : 2, first + begin, first + end);
  };
  if (member != nullptr) {
    start_team(threads);
    if (const Lockstep::Offer* const other = member->lockstep().meet(member->side(), {this, x, out})) {
      inputs[1] = other->x;
      results[1] = other->out;
      (member->side() == 0 ? last : first) = outputs_ / 2;
    }
  }
  run_on_team(threads, last - first, grain, work);
  if (member != nullptr) member->lockstep().finish(member->side());
}

} // namespace hydrascope
