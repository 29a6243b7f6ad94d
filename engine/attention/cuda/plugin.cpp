#include "engine/attention/cuda/plugin.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "engine/attention/cuda/hydra.h"
#include "engine/attention/cuda/linear.h"

namespace hydrascope {
namespace {

// The grid's last dimension counts sequences, its limit is CUDA's.
constexpr std::int64_t most_sequences = 65535;

cuda::Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return cuda::Element::float32;
    case at::kHalf: return cuda::Element::float16;
    case at::kBFloat16: return cuda::Element::bfloat16;
    default: TORCH_CHECK(false, "fused CUDA kernels take float32, float16 or bfloat16");
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

// q, k, v (B,H,N,d) of one shape and type on one CUDA device, the mask, if any, there, too.
void check(const char* kernel, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
           const at::Tensor& mask) {
  TORCH_CHECK(q.is_cuda() && q.dim() == 4 && q.numel() > 0, kernel,
              ": q (B,H,N,d) on a CUDA device expected");
  for (const at::Tensor* x : {&k, &v})
    TORCH_CHECK(x->sizes() == q.sizes() && x->device() == q.device() && x->scalar_type() == q.scalar_type(),
                kernel, ": q, k and v differ in shape, device or type");
  TORCH_CHECK(q.size(0) <= most_sequences && q.size(1) <= most_sequences, kernel, ": more than ",
              most_sequences, " sequences or heads");
  if (mask.defined())
    TORCH_CHECK(mask.scalar_type() == at::kBool && mask.device() == q.device() && mask.dim() == 2 &&
                    mask.size(0) == q.size(0) && mask.size(1) == q.size(2),
                kernel, ": mask (B,N) bool on q's device expected");
}

const unsigned char* bytes_of(const at::Tensor& mask) {
  return mask.defined() ? static_cast<const unsigned char*>(mask.const_data_ptr()) : nullptr;
}

at::Tensor hydra_cosine(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& mask) {
  check("hydra_cosine", q, k, v, mask);
  const std::int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2), width = heads * q.size(3);
  const at::Tensor bytes = mask.defined() ? mask.contiguous() : mask;
  const c10::cuda::CUDAGuard guard(q.device());
  const at::Tensor q_rows = dense_rows(q), k_rows = dense_rows(k), v_rows = dense_rows(v);
  const at::Tensor out = at::empty({batch, tokens, width}, q.options());
  const at::Tensor workspace =
      at::empty({cuda::hydra_workspace_floats(batch, tokens, width)}, q.options().dtype(at::kFloat));
  const cuda::HydraArguments arguments{.element = element_of(q.scalar_type()),
                                       .q = on_device(q_rows),
                                       .k = on_device(k_rows),
                                       .v = on_device(v_rows),
                                       .mask = bytes_of(bytes),
                                       .out = out.data_ptr(),
                                       .workspace = workspace.data_ptr<float>(),
                                       .batch = batch,
                                       .tokens = tokens,
                                       .width = width};
  const char* const failure = cuda::hydra_cosine(arguments, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "hydra_cosine: ", failure);
  return out.view({batch, tokens, heads, width / heads}).transpose(1, 2);
}

bool linear_takes(cpu::PointMap map, bool normalised, at::ScalarType type, std::int64_t head_width,
                  std::int64_t outputs) {
  const bool known = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  return known && cuda::linear_takes(map, normalised, element_of(type), head_width, outputs);
}

// What LinearArguments points to.
struct SideTensors {
  SideTensors(const LoopProjection& from, const at::Device device) {
    const auto own = [&](const at::Tensor& x) {
      return x.defined() ? x.to(at::TensorOptions(device).dtype(at::kFloat)).contiguous() : x;
    };
    weight = own(from.weight);
    bias = own(from.bias);
    turns = own(from.turns);
    const auto data = [](const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
    const auto stride = [](const at::Tensor& x) {
      return x.defined() && x.size(0) > 1 ? x.stride(0) : std::int64_t{0};
    };
    arguments = {.weight = data(weight),
                 .bias = data(bias),
                 .turns = data(turns),
                 .weight_stride = stride(weight),
                 .turns_stride = stride(turns),
                 .scale = static_cast<float>(from.scale),
                 .half_square = static_cast<float>(from.half_square)};
  }
  at::Tensor weight, bias, turns;
  cuda::SideArguments arguments{};
};

AttentionOutput linear(const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
                       const LoopProjection& query, const LoopProjection& key, const bool normalised) {
  check("linear", input.q, input.k, input.v, mask);
  const c10::cuda::CUDAGuard guard(input.q.device());
  const auto dense = [](const at::Tensor& x) {
    return x.size(3) == 1 || x.stride(3) == 1 ? x : x.contiguous();
  };
  const at::Tensor q = dense(input.q), k = dense(input.k), v = dense(input.v);
  const at::Tensor bytes = mask.defined() ? mask.contiguous() : mask;
  const auto heads_on_device = [](const at::Tensor& x) {
    return cuda::HeadsOnDevice{x.const_data_ptr(), x.stride(0), x.stride(1), x.stride(2)};
  };
  const std::int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2), width = q.size(3);
  const SideTensors query_side(query, q.device()), key_side(key, q.device());
  const at::Tensor out = at::empty({batch, tokens, heads, width}, q.options());
  cuda::LinearArguments arguments{
      .element = element_of(q.scalar_type()),
      .map = map,
      .normalised = normalised,
      .q = heads_on_device(q),
      .k = heads_on_device(k),
      .v = heads_on_device(v),
      .query = query_side.arguments,
      .key = key_side.arguments,
      .mask = bytes_of(bytes),
      .out = out.data_ptr(),
      .workspace = nullptr,
      .batch = batch,
      .heads = heads,
      .tokens = tokens,
      .head_width = static_cast<int>(width),
      .outputs = static_cast<int>(key_side.weight.defined() ? key_side.weight.size(2) : width),
      .features = 0};
  arguments.features = cuda::features_of(map, arguments.outputs);
  const at::Tensor workspace =
      at::empty({cuda::linear_workspace_floats(arguments)}, q.options().dtype(at::kFloat));
  arguments.workspace = workspace.data_ptr<float>();
  const char* const failure = cuda::linear_attention(arguments, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "linear: ", failure);
  return {.out = out.transpose(1, 2),
          .path = "fused cuda",
          .zero_denominators = workspace.slice(0, 0, 1).view(at::kInt).item<std::int64_t>()};
}

} // namespace
} // namespace hydrascope

extern "C" __attribute__((visibility("default"))) const hydrascope::HydrascopeCudaPlugin*
hydrascope_cuda_plugin_entry() {
  static const hydrascope::HydrascopeCudaPlugin plugin{hydrascope::hydrascope_cuda_plugin_version,
                                                       &hydrascope::hydra_cosine, &hydrascope::linear_takes,
                                                       &hydrascope::linear};
  return &plugin;
}
