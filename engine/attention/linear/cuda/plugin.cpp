#include "engine/attention/interface/cuda_plugin.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "engine/attention/hydra/cuda/hydra.h"
#include "engine/attention/linear/cuda/linear.h"

namespace hydrascope {
namespace {

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

// (B,N,D) → (B,H,N,d), of the shape of `heads`.
at::Tensor rows_as_heads(const at::Tensor& rows, const at::Tensor& heads) {
  return rows.view({heads.size(0), heads.size(2), heads.size(1), heads.size(3)}).transpose(1, 2);
}

cuda::RowsOnDevice on_device(const at::Tensor& rows) {
  return {rows.data_ptr(), rows.stride(0), rows.stride(1)};
}

// Checks that q and k are (B,H,N,d) of one shape and type, v (B,H,N,any), all on one CUDA device, with the
// mask, if any.
void check(const char* kernel, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
           const at::Tensor& mask) {
  TORCH_CHECK(q.is_cuda() && q.dim() == 4 && q.numel() > 0, kernel,
              ": q (B,H,N,d) on a CUDA device expected");
  TORCH_CHECK(k.sizes() == q.sizes() && v.dim() == 4 && v.sizes().slice(0, 3) == q.sizes().slice(0, 3),
              kernel, ": q, k and v differ in shape");
  TORCH_CHECK(k.device() == q.device() && v.device() == q.device(), kernel, ": q, k and v differ in device");
  TORCH_CHECK(k.scalar_type() == q.scalar_type(), kernel, ": q and k differ in type");
  TORCH_CHECK(q.size(0) <= max_cuda_sequences, kernel, ": more than ", max_cuda_sequences, " sequences");
  if (mask.defined())
    TORCH_CHECK(mask.scalar_type() == at::kBool && mask.device() == q.device() && mask.dim() == 2 &&
                    mask.size(0) == q.size(0) && mask.size(1) == q.size(2),
                kernel, ": mask (B,N) bool on q's device expected");
}

const unsigned char* bytes_of(const at::Tensor& mask) {
  return mask.defined() ? static_cast<const unsigned char*>(mask.const_data_ptr()) : nullptr;
}

// The arguments of a launch and the tensors that they point to.
struct HydraCall {
  HydraCall(const at::Tensor& q_, const at::Tensor& k_, const at::Tensor& v_, const at::Tensor& mask_,
            const bool causal, const at::Tensor& out)
      : q(dense_rows(q_)),
        k(dense_rows(k_)),
        v(dense_rows(v_)),
        mask(mask_.defined() ? mask_.contiguous() : mask_) {
    const std::int64_t batch = q.size(0), tokens = q.size(1), width = q.size(2);
    workspace = at::empty({cuda::hydra_workspace_floats(batch, tokens, width, causal)},
                          q.options().dtype(at::kFloat));
    arguments = {.element = element_of(q.scalar_type()),
                 .causal = causal,
                 .q = on_device(q),
                 .k = on_device(k),
                 .v = on_device(v),
                 .mask = bytes_of(mask),
                 .out = out.defined() ? out.data_ptr() : nullptr,
                 .workspace = workspace.data_ptr<float>(),
                 .batch = batch,
                 .tokens = tokens,
                 .width = width};
  }
  at::Tensor q, k, v, mask, workspace;
  cuda::HydraArguments arguments{};
};

bool runs_on(const at::DeviceIndex device) {
  const auto* const properties =
      device < 0 ? at::cuda::getCurrentDeviceProperties() : at::cuda::getDeviceProperties(device);
  return properties->major >= 8;
}

at::Tensor hydra_cosine(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                        const bool causal) {
  check("hydra_cosine", q, k, v, mask);
  TORCH_CHECK(v.sizes() == q.sizes() && v.scalar_type() == q.scalar_type(),
              "hydra_cosine: v differs from q in shape or type");
  const c10::cuda::CUDAGuard guard(q.device());
  const at::Tensor out = at::empty({q.size(0), q.size(2), q.size(1) * q.size(3)}, q.options());
  const HydraCall call(q, k, v, mask, causal, out);
  const char* const failure = cuda::hydra_cosine(call.arguments, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "hydra_cosine: ", failure);
  return rows_as_heads(out, q);
}

InputGradients hydra_cosine_gradients(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& mask, const bool causal, const at::Tensor& grad_out) {
  check("hydra_cosine_gradients", q, k, v, mask);
  for (const at::Tensor* x : {&v, &grad_out})
    TORCH_CHECK(x->sizes() == q.sizes() && x->device() == q.device() && x->scalar_type() == q.scalar_type(),
                "hydra_cosine_gradients: v or the output's gradient differs from q in shape, device or type");
  const c10::cuda::CUDAGuard guard(q.device());
  const HydraCall call(q, k, v, mask, causal, {});
  const at::Tensor g = dense_rows(grad_out);
  const auto options = q.options();
  const at::Tensor grad_q = at::empty(call.q.sizes(), options), grad_k = at::empty(call.q.sizes(), options),
                   grad_v = at::empty(call.q.sizes(), options);
  const char* const failure = cuda::hydra_cosine_gradients(
      call.arguments, {on_device(g), grad_q.data_ptr(), grad_k.data_ptr(), grad_v.data_ptr()},
      c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "hydra_cosine_gradients: ", failure);
  return {rows_as_heads(grad_q, q), rows_as_heads(grad_k, q), rows_as_heads(grad_v, q)};
}

// Heads are a dimension of the grid here; Hydra's kernels read whole rows. q and k may be float32 beside
// bfloat16 values: y before an exponential needs more than 8 bits.
void check_linear(const char* kernel, const AttentionInput& input, const at::Tensor& mask) {
  check(kernel, input.q, input.k, input.v, mask);
  TORCH_CHECK(input.q.size(1) <= max_cuda_sequences, kernel, ": more than ", max_cuda_sequences, " heads");
  const at::ScalarType inputs = input.q.scalar_type(), values = input.v.scalar_type();
  TORCH_CHECK(inputs == values || (inputs == at::kFloat && values == at::kBFloat16), kernel,
              ": q and k are of another type than v");
}

bool linear_takes(cpu::PointMap map, bool normalised, at::ScalarType type, std::int64_t head_width,
                  std::int64_t outputs, bool causal, at::DeviceIndex device) {
  c10::cuda::OptionalCUDAGuard guard; // the shared memory of a block is asked of the current device
  if (device >= 0) guard.set_index(device);
  const bool known = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  return known && cuda::linear_takes(map, normalised, element_of(type), head_width, outputs, causal);
}

// SideArguments and the tensors that they point to.
struct SideTensors {
  SideTensors(const LoopProjection& from, const at::Device device) {
    const auto own = [&](const at::Tensor& x) {
      if (!x.defined()) return x;
      TORCH_CHECK(x.device() == device, "a parameter of the feature map lies on ", x.device(), " and not on ",
                  device);
      return x.to(at::kFloat).contiguous();
    };
    weight = own(from.weight);
    bias = own(from.bias);
    token_weights = own(from.token_weights);
    const auto data = [](const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
    const auto stride = [](const at::Tensor& x) {
      return x.defined() && x.size(0) > 1 ? x.stride(0) : std::int64_t{0};
    };
    arguments = {.weight = data(weight),
                 .bias = data(bias),
                 .token_weights = data(token_weights),
                 .weight_stride = stride(weight),
                 .token_weights_stride = stride(token_weights),
                 .scale = static_cast<float>(from.scale),
                 .half_square = static_cast<float>(from.half_square)};
  }
  at::Tensor weight, bias, token_weights;
  cuda::SideArguments arguments{};
};

cuda::HeadsOnDevice heads_on_device(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), x.stride(1), x.stride(2)};
}

// x (B,H,N,d) with the features of each head contiguous.
at::Tensor dense_features(const at::Tensor& x) {
  return x.size(3) == 1 || x.stride(3) == 1 ? x : x.contiguous();
}

// An output of the linear kernels, (B,N,H,width).
at::Tensor new_rows(const at::Tensor& like, const std::int64_t width) {
  return at::empty({like.size(0), like.size(2), like.size(1), width}, like.options());
}

// m, entries of y.
std::int64_t outputs_of(const AttentionInput& input, const LoopProjection& key) {
  return key.weight.defined() ? key.weight.size(2) : input.k.size(3);
}

// The arguments of a launch and the tensors that they point to.
struct LinearCall {
  LinearCall(const AttentionInput& input, const at::Tensor& mask_, const cpu::PointMap map,
             const LoopProjection& query_, const LoopProjection& key_, const bool normalised,
             const at::Tensor& out)
      : q(dense_features(input.q)),
        k(dense_features(input.k)),
        v(dense_features(input.v)),
        mask(mask_.defined() ? mask_.contiguous() : mask_),
        query(query_, q.device()),
        key(key_, q.device()) {
    const std::int64_t inputs = q.size(3), outputs = outputs_of(input, key_);
    for (const LoopProjection* side : {&query_, &key_}) { // the kernels read the map of every head
      TORCH_CHECK(!side->weight.defined() || side->weight.size(0) == 1 || side->weight.size(0) == q.size(1),
                  "linear: one W expected, or one for each of ", q.size(1), " heads");
      TORCH_CHECK(!side->bias.defined() || side->bias.size(0) == q.size(1), "linear: b expected for each of ",
                  q.size(1), " heads");
    }
    arguments = {.element = element_of(v.scalar_type()),
                 .input_element = element_of(q.scalar_type()),
                 .map = map,
                 .normalised = normalised,
                 .causal = input.causal,
                 .q = heads_on_device(q),
                 .k = heads_on_device(k),
                 .v = heads_on_device(v),
                 .query = query.arguments,
                 .key = key.arguments,
                 .mask = bytes_of(mask),
                 .out = out.defined() ? out.data_ptr() : nullptr,
                 .workspace = nullptr,
                 .batch = q.size(0),
                 .heads = q.size(1),
                 .tokens = q.size(2),
                 .head_width = static_cast<int>(v.size(3)),
                 .inputs = static_cast<int>(inputs),
                 .outputs = static_cast<int>(outputs),
                 .features = cuda::features_of(map, static_cast<int>(outputs))};
    workspace = at::empty({cuda::linear_workspace_floats(arguments)}, q.options().dtype(at::kFloat));
    arguments.workspace = workspace.data_ptr<float>();
  }
  at::Tensor q, k, v, mask;
  SideTensors query, key;
  at::Tensor workspace;
  cuda::LinearArguments arguments{};
};

AttentionOutput linear(const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
                       const LoopProjection& query, const LoopProjection& key, const bool normalised) {
  check_linear("linear", input, mask);
  const c10::cuda::CUDAGuard guard(input.q.device());
  TORCH_CHECK(linear_takes(map, normalised, input.v.scalar_type(), input.v.size(3), outputs_of(input, key),
                           input.causal, -1),
              "linear: not supported for this map, type or width on ", input.q.device());
  const at::Tensor out = new_rows(input.v, input.v.size(3));
  const LinearCall call(input, mask, map, query, key, normalised, out);
  const char* const failure =
      cuda::linear_attention(call.arguments, c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "linear: ", failure);
  return {
      .out = out.transpose(1, 2),
      .zero_denominators = RowCount(call.workspace.slice(0, 0, 1).view(at::kInt).to(at::kLong).squeeze(0))};
}

bool linear_gradients_take(cpu::PointMap map, bool normalised, at::ScalarType type, std::int64_t head_width,
                           std::int64_t outputs, bool causal, at::DeviceIndex device) {
  c10::cuda::OptionalCUDAGuard guard; // the shared memory of a block is asked of the current device
  if (device >= 0) guard.set_index(device);
  const bool known = type == at::kFloat || type == at::kBFloat16;
  return known && cuda::linear_gradients_take(map, normalised, element_of(type), head_width, outputs, causal);
}

InputGradients linear_gradients(const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
                                const LoopProjection& query, const LoopProjection& key, const bool normalised,
                                const at::Tensor& grad_out) {
  check_linear("linear_gradients", input, mask);
  TORCH_CHECK(grad_out.sizes() == input.v.sizes() && grad_out.device() == input.v.device() &&
                  grad_out.scalar_type() == input.v.scalar_type(),
              "linear_gradients: the output's gradient differs from v in shape, device or type");
  TORCH_CHECK(!query.weight.defined() && !key.weight.defined(), "linear_gradients: takes no projection");
  const c10::cuda::CUDAGuard guard(input.q.device());
  TORCH_CHECK(linear_gradients_take(map, normalised, input.v.scalar_type(), input.v.size(3), input.q.size(3),
                                    input.causal, -1),
              "linear_gradients: not supported for this map, type or width on ", input.q.device());
  const LinearCall call(input, mask, map, query, key, normalised, {});
  const at::Tensor g = dense_features(grad_out);
  const at::Tensor grad_q = new_rows(input.q, input.q.size(3)), grad_k = new_rows(input.k, input.k.size(3)),
                   grad_v = new_rows(input.v, input.v.size(3));
  const char* const failure = cuda::linear_gradients(
      call.arguments, {heads_on_device(g), grad_q.data_ptr(), grad_k.data_ptr(), grad_v.data_ptr()},
      c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(failure == nullptr, "linear_gradients: ", failure);
  return {grad_q.transpose(1, 2), grad_k.transpose(1, 2), grad_v.transpose(1, 2)};
}

} // namespace
} // namespace hydrascope

extern "C" __attribute__((visibility("default"))) const hydrascope::HydrascopeCudaPlugin*
hydrascope_cuda_plugin_entry() {
  static const hydrascope::HydrascopeCudaPlugin plugin{
      .version = hydrascope::hydrascope_cuda_plugin_version,
      .runs_on = &hydrascope::runs_on,
      .hydra_cosine = &hydrascope::hydra_cosine,
      .hydra_cosine_gradients = &hydrascope::hydra_cosine_gradients,
      .linear_takes = &hydrascope::linear_takes,
      .linear = &hydrascope::linear,
      .linear_gradients_take = &hydrascope::linear_gradients_take,
      .linear_gradients = &hydrascope::linear_gradients};
  return &plugin;
}
