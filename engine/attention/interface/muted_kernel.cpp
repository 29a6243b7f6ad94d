#include "engine/attention/interface/muted_kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

namespace hydrascope {

at::Tensor without_muted(const at::Tensor& finished, const std::span<const int> muted) {
  if (muted.empty()) return finished;
  at::Tensor heard = at::ones({1, finished.size(1), 1, 1}, finished.options().dtype(at::kBool));
  for (const int head : muted) heard.select(1, head).fill_(false);
  return at::where(heard, finished, 0.0); // a select: 0 also where the head's output is not a number
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
