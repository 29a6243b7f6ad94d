#include "engine/attention/muted_kernel.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

namespace hydrascope {
namespace {

class MutedKernel final : public Kernel {
public:
  MutedKernel(std::shared_ptr<const Kernel> kernel, std::vector<int> heads)
      : Kernel(kernel->spec()), kernel_(std::move(kernel)), heads_(std::move(heads)) {}

  at::Tensor finish(const at::Tensor& out, const at::Tensor& mask,
                    const KernelParameters& parameters) const override {
    const at::Tensor finished = kernel_->finish(out, mask, parameters);
    at::Tensor heard = at::ones({1, finished.size(1), 1, 1}, finished.options().dtype(at::kBool));
    for (const int head : heads_) heard.select(1, head).fill_(false);
    return at::where(heard, finished, 0.0); // a select: 0 also where the head's output is not a number
  }

  Plan plan(const AttentionShape& shape) const override { return kernel_->plan(shape); }
  std::int64_t weight_heads(const AttentionShape& shape) const override {
    return kernel_->weight_heads(shape);
  }
  KernelParameters initial_parameters(std::int64_t heads, std::int64_t head_width, int layer) const override {
    return kernel_->initial_parameters(heads, head_width, layer);
  }
  std::vector<std::string> fixed_parameters() const override { return kernel_->fixed_parameters(); }
  AttentionOutput run(const AttentionInput& input, const KernelParameters& parameters) const override {
    return kernel_->run(input, parameters);
  }
  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    return kernel_->weights(input, parameters, rows);
  }
  at::Tensor contributions(const AttentionInput& input, const KernelParameters& parameters,
                           std::optional<std::int64_t> query, const at::Tensor& g) const override {
    return kernel_->contributions(input, parameters, query, g);
  }
  double weights_check(const AttentionInput& input, const KernelParameters& parameters,
                       const at::Tensor& rows) const override {
    return kernel_->weights_check(input, parameters, rows);
  }
  std::optional<GlobalVector> global_vector(const AttentionInput& input, const KernelParameters& parameters,
                                            const at::Tensor& rows) const override {
    return kernel_->global_vector(input, parameters, rows);
  }
  Cost cost(const AttentionShape& shape) const override { return kernel_->cost(shape); }

private:
  std::shared_ptr<const Kernel> kernel_;
  std::vector<int> heads_;
};

} // namespace

std::shared_ptr<const Kernel> mute_heads(std::shared_ptr<const Kernel> kernel, std::vector<int> heads) {
  if (heads.empty()) return kernel;
  return std::make_shared<const MutedKernel>(std::move(kernel), std::move(heads));
}

std::vector<bool> heard_heads(std::span<const int> muted, std::int64_t heads, std::int64_t kernel_heads) {
  // In units of 1/(heads·kernel_heads) of the features, model head i is [i·kernel_heads, (i+1)·kernel_heads)
  // and kernel head j is [j·heads, (j+1)·heads).
  std::vector<bool> silent(static_cast<std::size_t>(heads));
  for (const int head : muted) silent.at(static_cast<std::size_t>(head)) = true;
  std::vector<bool> heard(static_cast<std::size_t>(kernel_heads));
  for (std::int64_t own = 0; own < kernel_heads; ++own) {
    const std::int64_t first = own * heads / kernel_heads;
    const std::int64_t last = ((own + 1) * heads - 1) / kernel_heads;
    for (std::int64_t head = first; head <= last; ++head)
      if (!silent[static_cast<std::size_t>(head)]) heard[static_cast<std::size_t>(own)] = true;
  }
  return heard;
}

} // namespace hydrascope
