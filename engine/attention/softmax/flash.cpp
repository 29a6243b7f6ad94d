// softmax without storing its weights: on the CPU by the fused loops, elsewhere by LibTorch's.
#include <algorithm>
#include <cmath>
#include <memory>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/cpu/softmax.h"
#include "engine/attention/softmax/softmax_family.h"

namespace hydrascope {
namespace {

// q, k, v (B,H,N,d) → (B,H,N,d).
at::Tensor run_in_loops(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const LoopMask& masks,
                        const bool causal) {
  const std::int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2), width = q.size(3);
  const at::Tensor query = dense_features(q), key = dense_features(k), value = dense_features(v);
  at::Tensor out = to_heads(at::empty({batch, tokens, heads * width}, q.options()), heads);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  const cpu::SoftmaxLoops& loops = cpu::softmax_loops(cpu::best_processor(q.scalar_type() == at::kBFloat16));
  // As few ranges of queries as possible, of equal size: each packs the keys again.
  const std::int64_t parts =
      std::max<std::int64_t>(1, (tokens + cpu::queries_at_once - 1) / cpu::queries_at_once);
  const std::int64_t part_size = (tokens + parts - 1) / parts;
  const auto buffer_size = static_cast<std::size_t>(cpu::softmax_buffer_floats(width, width));
  at::parallel_for(0, batch * heads * parts, 1, [&](const std::int64_t begin, const std::int64_t end) {
    const auto buffers = std::make_unique_for_overwrite<float[]>(buffer_size);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % parts * part_size, head = i / parts % heads,
                         sequence = i / parts / heads;
      loops.output(rows_of(query, sequence, head), rows_of(key, sequence, head),
                   rows_of(value, sequence, head), masks.of(sequence),
                   {std::min(first, tokens), std::min(tokens, first + part_size)}, tokens, causal, scale,
                   buffers.get(), rows_of(out, sequence, head));
    }
  });
  return out;
}

class Flash final : public SoftmaxFamily {
public:
  explicit Flash(KernelSpec kernel_spec) : SoftmaxFamily(std::move(kernel_spec)) {}

  Plan plan(const AttentionShape& shape) const override {
    return {SoftmaxFamily::plan(shape).support, loops_take(shape) ? Path::fused_cpu : Path::sdpa};
  }

protected:
  AttentionOutput compute(Path, const AttentionInput& input, const KernelParameters&) const override {
    return run_through_flash(input, weight_heads(shape_of(input)));
  }
};

} // namespace

AttentionOutput run_through_flash(const AttentionInput& input, const std::int64_t heads) {
  if (!loops_take(shape_of(input))) return run_through_sdpa(input, heads);
  const at::Tensor out = run_in_loops(resplit(input.q, heads), resplit(input.k, heads),
                                      resplit(input.v, heads), LoopMask(real_mask(input)), input.causal);
  return {.out = resplit(out, input.q.size(1))};
}

RegistryEntry flash_kernel() {
  KernelInfo info = softmax_info("flash", "softmax in blocks of queries and keys, its weights never stored");
  info.source = "Dao et al., FlashAttention (2022), Algorithm 1";
  info.exact_softmax = true;
  info.parameters = {heads_info()};
  return {info, {}, [](const KernelSpec& spec) { return std::make_unique<Flash>(spec); }};
}

} // namespace hydrascope
