#include "engine/attention/cuda/plugin.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "engine/attention/cuda/hydra.h"

namespace hydrascope {
namespace {

// The grid's last dimension counts sequences, its limit is CUDA's.
constexpr std::int64_t most_sequences = 65535;

cuda::Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return cuda::Element::float32;
    case at::kHalf: return cuda::Element::float16;
    case at::kBFloat16: return cuda::Element::bfloat16;
    default: TORCH_CHECK(false, "hydra_cosine: float32, float16 or bfloat16 expected");
  }
}

// (B,H,N,d) → (B,N,D) with dense features; a view where the heads were cut out of such rows.
at::Tensor dense_rows(const at::Tensor& x) {
  const at::Tensor rows = x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
  return rows.size(2) == 1 || rows.stride(2) == 1 ? rows : rows.contiguous();
}

cuda::RowsOnDevice on_device(const at::Tensor& rows) {
  return {rows.data_ptr(), rows.stride(0), rows.stride(1)};
}

at::Tensor hydra_cosine(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& mask) {
  TORCH_CHECK(q.is_cuda() && q.dim() == 4 && q.numel() > 0,
              "hydra_cosine: q (B,H,N,d) on a CUDA device expected");
  for (const at::Tensor* x : {&k, &v})
    TORCH_CHECK(x->sizes() == q.sizes() && x->device() == q.device() && x->scalar_type() == q.scalar_type(),
                "hydra_cosine: q, k and v differ in shape, device or type");
  const std::int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2), width = heads * q.size(3);
  TORCH_CHECK(batch <= most_sequences, "hydra_cosine: more than ", most_sequences, " sequences");
  at::Tensor bytes;
  if (mask.defined()) {
    TORCH_CHECK(mask.scalar_type() == at::kBool && mask.device() == q.device() && mask.dim() == 2 &&
                    mask.size(0) == batch && mask.size(1) == tokens,
                "hydra_cosine: mask (B,N) bool on q's device expected");
    bytes = mask.contiguous();
  }
  const c10::cuda::CUDAGuard guard(q.device());
  const at::Tensor q_rows = dense_rows(q), k_rows = dense_rows(k), v_rows = dense_rows(v);
  const at::Tensor out = at::empty({batch, tokens, width}, q.options());
  const at::Tensor workspace =
      at::empty({cuda::hydra_workspace_floats(batch, tokens, width)}, q.options().dtype(at::kFloat));
  const cuda::HydraArguments arguments{
      .element = element_of(q.scalar_type()),
      .q = on_device(q_rows),
      .k = on_device(k_rows),
      .v = on_device(v_rows),
      .mask = bytes.defined() ? reinterpret_cast<const unsigned char*>(bytes.data_ptr<bool>()) : nullptr,
      .out = out.data_ptr(),
      .workspace = workspace.data_ptr<float>(),
      .batch = batch,
      .tokens = tokens,
      .width = width};
  const char* const failure = cuda::hydra_cosine(arguments, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "hydra_cosine: ", failure);
  return out.view({batch, tokens, heads, width / heads}).transpose(1, 2);
}

} // namespace
} // namespace hydrascope

extern "C" __attribute__((visibility("default"))) const hydrascope::HydrascopeCudaPlugin*
hydrascope_cuda_plugin_entry() {
  static const hydrascope::HydrascopeCudaPlugin plugin{hydrascope::hydrascope_cuda_plugin_version,
                                                       &hydrascope::hydra_cosine};
  return &plugin;
}
