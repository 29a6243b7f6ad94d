#include "tests/cuda_emulation/cases.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/attention/hydra/cuda/hydra.h"
#include "engine/attention/linear/cuda/linear.h"
#include "tests/cuda_emulation/definition.h"
#include "tests/cuda_emulation/device_tensor.h"

namespace hydrascope::testing_inputs {
namespace {

using cpu::PointMap;
using Projection = LinearKernel::Projection;

constexpr LinearKernel all_linear_kernels[] = {
    {.name = "hedgehog", .map = PointMap::plus_minus_exponential, .projection = Projection::near_identity},
    {.name = "hedgehog-softmax",
     .map = PointMap::plus_minus_softmax,
     .projection = Projection::near_identity},
    {.name = "hedgehog-softmax:form=eq5",
     .map = PointMap::softmax,
     .projection = Projection::near_identity,
     .in_parity = false},
    {.name = "hedgehog-softmax:form=joint",
     .map = PointMap::joint_softmax,
     .projection = Projection::near_identity,
     .in_parity = false},
    {.name = "t2r", .map = PointMap::relu, .projection = Projection::random},
    {.name = "elu", .map = PointMap::one_plus_elu},
    {.name = "relu", .map = PointMap::relu},
    {.name = "exp-t2", .map = PointMap::exponential, .scale = 2},
    {.name = "cosformer", .map = PointMap::relu_token_weighted},
    {.name = "performer:features=64",
     .map = PointMap::exponential,
     .projection = Projection::shared,
     .outputs = 64,
     .half_square = true},
    {.name = "linear-cosine", .map = PointMap::unit, .normalised = false},
};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> part_of(const std::vector<double>& all, const std::int64_t index,
                            const std::int64_t count) {
  if (all.empty()) return {};
  return {all.begin() + index * count, all.begin() + (index + 1) * count};
}

// A projection for all heads, in float32.
struct Side {
  Side(const LinearKernel& kernel, const CudaShape& shape, const std::int64_t outputs, const unsigned seed)
      : width(shape.width), m(outputs) {
    const double root = std::sqrt(static_cast<double>(width));
    const bool shared = kernel.projection == Projection::shared;
    scale = kernel.half_square ? 1 / std::sqrt(root) : kernel.scale;
    half_square = kernel.half_square ? 1 / (2 * root) : 0;
    if (kernel.projection == Projection::none) return;
    weight = normal_numbers((shared ? 1 : shape.heads) * width * m, seed, shared ? 1 : 1 / (2 * root));
    stride = shared ? 0 : width * m;
    if (shared) return;
    bias = normal_numbers(shape.heads * m, seed + 1, 0.1);
    if (kernel.projection == Projection::near_identity)
      for (std::int64_t i = 0; i < shape.heads * width; ++i)
        weight[static_cast<std::size_t>(i * m + i % width)] += 1;
    round_to<float>(bias);
  }
  cuda::SideArguments arguments(const std::vector<float>& token_weights,
                                const std::int64_t token_weights_stride) {
    weight_floats = as_floats(weight);
    bias_floats = as_floats(bias);
    return {.weight = weight.empty() ? nullptr : weight_floats.data(),
            .bias = bias.empty() ? nullptr : bias_floats.data(),
            .token_weights = token_weights.data(),
            .weight_stride = stride,
            .token_weights_stride = token_weights_stride,
            .scale = static_cast<float>(scale),
            .half_square = static_cast<float>(half_square)};
  }
  DefinedProjection of_head(const std::int64_t h) const {
    return {.weight = part_of(weight, stride == 0 ? 0 : h, width * m),
            .bias = part_of(bias, h, m),
            .scale = scale,
            .half_square = half_square};
  }

  std::int64_t width, m, stride = 0;
  std::vector<double> weight, bias;
  double scale = 1, half_square = 0;
  std::vector<float> weight_floats, bias_floats;
};

// q, k, v and g of all heads, on the device and as numbers (B,H,N,width).
template <typename Input, typename T>
struct Inputs {
  Inputs(const CudaShape& shape_, const std::int64_t inputs_, const Variation& variation)
      : shape(shape_),
        inputs(inputs_),
        real(mask_of(shape)),
        q_numbers(normal_numbers(shape.batch * shape.heads * shape.tokens * inputs, 1)),
        k_numbers(normal_numbers(shape.batch * shape.heads * shape.tokens * inputs, 2)),
        v_numbers(normal_numbers(shape.batch * shape.heads * shape.tokens * shape.width, 3)),
        g_numbers(normal_numbers(shape.batch * shape.heads * shape.tokens * shape.width, 4)),
        q(shape, inputs, gap(variation, inputs, 1, 3), variation.shifted),
        k(shape, inputs, gap(variation, inputs, 2, 5), variation.shifted),
        v(shape, shape.width, gap(variation, shape.width, 3, 7), variation.shifted),
        g(shape, shape.width, gap(variation, shape.width, 1, 1), variation.shifted) {
    for (std::vector<double>* const numbers : {&q_numbers, &k_numbers}) round_to<Input>(*numbers);
    for (std::vector<double>* const numbers : {&v_numbers, &g_numbers}) round_to<T>(*numbers);
    if (variation.nan_in_key)
      k_numbers[static_cast<std::size_t>(inputs)] = std::numeric_limits<double>::quiet_NaN();
    q.set(q_numbers, shape, real);
    k.set(k_numbers, shape, real);
    v.set(v_numbers, shape, real);
    g.set(g_numbers, shape, real);
  }
  const unsigned char* mask() const { return shape.masked ? real.data() : nullptr; }
  // What lies between the rows of two tokens: `odd` entries, or up to a multiple of 8 and as many times 8
  // more.
  std::int64_t gap(const Variation& variation, const std::int64_t width, const std::int64_t more,
                   const std::int64_t odd) const {
    return variation.aligned ? (8 - shape.heads * width % 8) % 8 + 8 * more : odd;
  }

  CudaShape shape;
  std::int64_t inputs;
  std::vector<unsigned char> real;
  std::vector<double> q_numbers, k_numbers, v_numbers, g_numbers;
  DeviceTensor<Input> q, k;
  DeviceTensor<T> v, g;
};

void append(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// (B,H,N,…), as the definition gives it head by head.
struct Expected {
  void add(const DefinedResult& result) {
    append(out, result.out);
    append(grad_q, result.grad_q);
    append(grad_k, result.grad_k);
    append(grad_v, result.grad_v);
    zero_denominators += result.zero_denominators;
  }
  std::vector<double> out, grad_q, grad_k, grad_v;
  std::int64_t zero_denominators = 0;
};

template <typename T>
void compare(Comparison& all, DeviceTensor<T>& found, const std::vector<double>& expected,
             const CudaShape& shape) {
  all.error = std::max(all.error, relative_error(found, expected, shape));
  ++all.tensors;
}

template <typename T>
cuda::HeadsOnDevice heads_of(const DeviceTensor<T>& x) {
  return {x.data(), x.batch_stride, x.width_, x.token_stride};
}

// A call of the launches of linear.h, and what is expected of it.
template <typename Input, typename T>
struct LinearCall {
  LinearCall(const LinearKernel& kernel_, const CudaShape& shape, const std::int64_t inputs_of,
             const std::int64_t m, const Variation& variation, const bool gradients_)
      : kernel(kernel_),
        inputs(shape, inputs_of, variation),
        gradients(gradients_),
        causal(variation.causal),
        outputs(m),
        query(kernel, shape, m, 11),
        key(kernel, shape, m, 13),
        token_weights(normal_numbers(shape.batch * shape.tokens * 2, 6)) {
    for (double& weight : token_weights) weight = std::abs(weight);
    round_to<float>(token_weights);
    token_weight_floats = as_floats(token_weights);
  }

  cuda::LinearArguments arguments(void* const out) {
    const CudaShape& shape = inputs.shape;
    cuda::LinearArguments result{.element = element_of<T>(),
                                 .input_element = element_of<Input>(),
                                 .map = kernel.map,
                                 .normalised = kernel.normalised,
                                 .causal = causal,
                                 .q = heads_of(inputs.q),
                                 .k = heads_of(inputs.k),
                                 .v = heads_of(inputs.v),
                                 .query = query.arguments(token_weight_floats, 2 * shape.tokens),
                                 .key = key.arguments(token_weight_floats, 2 * shape.tokens),
                                 .mask = inputs.mask(),
                                 .out = out,
                                 .workspace = nullptr,
                                 .batch = shape.batch,
                                 .heads = shape.heads,
                                 .tokens = shape.tokens,
                                 .head_width = static_cast<int>(shape.width),
                                 .inputs = static_cast<int>(inputs.inputs),
                                 .outputs = static_cast<int>(outputs),
                                 .features = cuda::features_of(kernel.map, static_cast<int>(outputs))};
    const auto floats = static_cast<std::size_t>(cuda::linear_workspace_floats(result));
    // As the allocator of LibTorch aligns it.
    workspace.assign(floats + workspace_alignment, nan);
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data()) / sizeof(float);
    const std::size_t skipped = (workspace_alignment - address % workspace_alignment) % workspace_alignment;
    workspace.resize(floats + skipped);
    result.workspace = workspace.data() + skipped;
    return result;
  }

  Expected expected() const {
    const CudaShape& shape = inputs.shape;
    Expected result;
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const std::int64_t index = b * shape.heads + h;
        result.add(defined_linear(
            {.map = kernel.map,
             .normalised = kernel.normalised,
             .causal = causal,
             .tokens = shape.tokens,
             .width = shape.width,
             .inputs = inputs.inputs,
             .outputs = outputs,
             .q = part_of(inputs.q_numbers, index, shape.tokens * inputs.inputs),
             .k = part_of(inputs.k_numbers, index, shape.tokens * inputs.inputs),
             .v = part_of(inputs.v_numbers, index, shape.tokens * shape.width),
             .g = gradients ? part_of(inputs.g_numbers, index, shape.tokens * shape.width)
                            : std::vector<double>(),
             .token_weights = part_of(token_weights, b, 2 * shape.tokens),
             .real = {inputs.real.begin() + b * shape.tokens, inputs.real.begin() + (b + 1) * shape.tokens},
             .query = query.of_head(h),
             .key = key.of_head(h)}));
      }
    return result;
  }

  static constexpr std::size_t workspace_alignment = 512 / sizeof(float);
  LinearKernel kernel;
  Inputs<Input, T> inputs;
  bool gradients, causal;
  std::int64_t outputs;
  Side query, key;
  std::vector<double> token_weights;
  std::vector<float> token_weight_floats, workspace;
};

template <typename Input, typename T>
Comparison output_of(const LinearKernel& kernel, const CudaShape& shape, const Variation& variation) {
  LinearCall<Input, T> call(kernel, shape, shape.width, kernel.outputs == 0 ? shape.width : kernel.outputs,
                            variation, false);
  DeviceTensor<T> out(shape, shape.width, 0);
  const cuda::LinearArguments arguments = call.arguments(out.data());
  const char* const message = cuda::linear_attention(arguments, nullptr);
  if (message != nullptr) return {.message = message};
  const Expected expected = call.expected();
  Comparison result;
  compare(result, out, expected.out, shape);
  int zeros = 0;
  std::memcpy(&zeros, arguments.workspace, sizeof zeros);
  if (zeros != expected.zero_denominators)
    result.message = "counts " + std::to_string(zeros) + " denominators of 0";
  return result;
}

template <typename Input, typename T>
Comparison gradients_of(LinearKernel kernel, const CudaShape& shape, const Variation& variation) {
  const std::int64_t m = kernel.outputs == 0 ? shape.width : kernel.outputs;
  kernel.projection = Projection::none;
  kernel.scale = 1;
  kernel.half_square = false;
  LinearCall<Input, T> call(kernel, shape, m, m, variation, true);
  DeviceTensor<Input> grad_q(shape, m, 0), grad_k(shape, m, 0);
  DeviceTensor<T> grad_v(shape, shape.width, 0);
  const cuda::LinearArguments arguments = call.arguments(nullptr);
  const char* const message = cuda::linear_gradients(
      arguments, {heads_of(call.inputs.g), grad_q.data(), grad_k.data(), grad_v.data()}, nullptr);
  if (message != nullptr) return {.message = message};
  const Expected expected = call.expected();
  Comparison result;
  compare(result, grad_q, expected.grad_q, shape);
  compare(result, grad_k, expected.grad_k, shape);
  compare(result, grad_v, expected.grad_v, shape);
  return result;
}

template <typename T>
cuda::RowsOnDevice rows_of(const DeviceTensor<T>& x) {
  return {x.data(), x.batch_stride, x.token_stride};
}

template <typename T>
Comparison hydra_of(const CudaShape& shape, const Variation& variation) {
  // Rows of one wide head: the layout of the heads side by side.
  const CudaShape rows{shape.batch, 1, shape.tokens, shape.heads * shape.width, shape.masked};
  Inputs<T, T> inputs(rows, rows.width, variation);
  DeviceTensor<T> out(rows, rows.width, 0), grad_q = out, grad_k = out, grad_v = out;
  std::vector<float> workspace(static_cast<std::size_t>(cuda::hydra_workspace_floats(
                                   rows.batch, rows.tokens, rows.width, variation.causal)),
                               nan);
  const cuda::HydraArguments arguments{.element = element_of<T>(),
                                       .causal = variation.causal,
                                       .q = rows_of(inputs.q),
                                       .k = rows_of(inputs.k),
                                       .v = rows_of(inputs.v),
                                       .mask = inputs.mask(),
                                       .out = out.data(),
                                       .workspace = workspace.data(),
                                       .batch = rows.batch,
                                       .tokens = rows.tokens,
                                       .width = rows.width};
  const char* message = cuda::hydra_cosine(arguments, nullptr);
  if (message == nullptr) {
    std::fill(workspace.begin(), workspace.end(), nan);
    message = cuda::hydra_cosine_gradients(
        arguments, {rows_of(inputs.g), grad_q.data(), grad_k.data(), grad_v.data()}, nullptr);
  }
  if (message != nullptr) return {.message = message};
  Expected expected;
  for (std::int64_t b = 0; b < rows.batch; ++b) {
    DefinedHead head{};
    head.causal = variation.causal;
    head.tokens = rows.tokens;
    head.width = rows.width;
    head.q = part_of(inputs.q_numbers, b, rows.tokens * rows.width);
    head.k = part_of(inputs.k_numbers, b, rows.tokens * rows.width);
    head.v = part_of(inputs.v_numbers, b, rows.tokens * rows.width);
    head.g = part_of(inputs.g_numbers, b, rows.tokens * rows.width);
    head.real = {inputs.real.begin() + b * rows.tokens, inputs.real.begin() + (b + 1) * rows.tokens};
    expected.add(defined_hydra(head));
  }
  Comparison result;
  compare(result, out, expected.out, rows);
  compare(result, grad_q, expected.grad_q, rows);
  compare(result, grad_k, expected.grad_k, rows);
  compare(result, grad_v, expected.grad_v, rows);
  return result;
}

// Calls run(Input(), T()) for the types of q and k and of v.
template <typename Run>
Comparison with_types(const cuda::Element element, const Variation& variation, const Run& run) {
  switch (element) {
    case cuda::Element::float32: return run(float(), float());
    case cuda::Element::float16: return run(__half(), __half());
    case cuda::Element::bfloat16:
      return variation.float_inputs ? run(float(), __nv_bfloat16()) : run(__nv_bfloat16(), __nv_bfloat16());
  }
  return {.message = "unknown element type"};
}

} // namespace

std::span<const LinearKernel> linear_kernels() { return all_linear_kernels; }

Comparison compare_linear(const LinearKernel& kernel, const CudaShape& shape, const cuda::Element element,
                          const Variation& variation) {
  return with_types(element, variation, [&]<typename Input, typename T>(Input, T) {
    return output_of<Input, T>(kernel, shape, variation);
  });
}

Comparison compare_linear_gradients(const LinearKernel& kernel, const CudaShape& shape,
                                    const cuda::Element element, const Variation& variation) {
  return with_types(element, variation, [&]<typename Input, typename T>(Input, T) {
    return gradients_of<Input, T>(kernel, shape, variation);
  });
}

Comparison compare_hydra(const CudaShape& shape, const cuda::Element element, const Variation& variation) {
  return with_types(element, variation,
                    [&]<typename Input, typename T>(Input, T) { return hydra_of<T>(shape, variation); });
}

} // namespace hydrascope::testing_inputs
