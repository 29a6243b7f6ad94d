#include "engine/attention/attend.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/kernel.h"
#include "engine/attention/tokens.h"
#include "engine/plain/error.h"
#include "engine/plain/safetensors.h"

namespace hydrascope {
namespace {

constexpr double largest_weights = 4.0 * 1024 * 1024 * 1024; // bytes

// A copy of the file's tensor: the mapping ends with this function, and files need not be aligned.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, const TensorView& view) {
  at::ScalarType type = at::kFloat;
  if (view.type == ElementType::u8)
    type = at::kByte;
  else if (view.type == ElementType::boolean)
    type = at::kBool;
  else if (view.type != ElementType::f32)
    throw Error(file.path().string(), fmt::format("\"{}\" is {}", name, element_name(view.type)),
                "store it as F32");
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions().dtype(type));
  std::ranges::copy(view.bytes, static_cast<std::byte*>(tensor.data_ptr()));
  return tensor;
}

at::Tensor required(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end())
    throw Error(file.path().string(), fmt::format("it has no tensor \"{}\"", name),
                "attend needs q, k and v, float32 (B,H,N,d)");
  at::Tensor tensor = read_tensor(file, name, found->second);
  if (!tensor.is_floating_point())
    throw Error(file.path().string(), fmt::format("\"{}\" is {}", name, element_name(found->second.type)),
                "store it as F32");
  return tensor;
}

AttentionInput read_input(const SafetensorsFile& file, const AttendRequest& request) {
  AttentionInput input;
  input.q = required(file, "q");
  input.k = required(file, "k");
  input.v = required(file, "v");
  const auto& tensors = file.tensors();
  if (const auto mask = tensors.find("mask"); mask != tensors.end()) {
    if (mask->second.type != ElementType::u8 && mask->second.type != ElementType::boolean)
      throw Error(file.path().string(), fmt::format("\"mask\" is {}", element_name(mask->second.type)),
                  "store it as U8, 1 = real token");
    input.mask = read_tensor(file, "mask", mask->second).to(at::kBool);
  }
  if (const auto x = tensors.find("x"); x != tensors.end() && x->second.type == ElementType::f32)
    input.layer_input = read_tensor(file, "x", x->second);
  input.causal = request.causal;
  return input;
}

// Everything that could be a parameter: the kernel takes what it knows by name.
KernelParameters read_parameters(const SafetensorsFile& file) {
  static const std::vector<std::string> names = {
      "query_map.weight", "query_map.bias", "key_map.weight", "key_map.bias",
      "norm.weight",      "norm.bias",      "omega"};
  KernelParameters parameters;
  for (const std::string& name : names)
    if (const auto found = file.tensors().find(name);
        found != file.tensors().end() && found->second.type == ElementType::f32)
      parameters[name] = read_tensor(file, name, found->second);
  return parameters;
}

void set_layout(AttentionInput& input, const AttendRequest& request) {
  if (request.grid_rows == 0) return;
  const std::int64_t tokens = input.q.size(2);
  if (request.grid_columns > tokens / std::max<std::int64_t>(1, request.grid_rows))
    throw UsageError("--grid",
                     fmt::format("{}x{} patches are more than the {} tokens", request.grid_rows,
                                 request.grid_columns, tokens),
                     "give rows x columns of the patches");
  input.layout = {.prefix = tokens - request.grid_rows * request.grid_columns,
                  .rows = request.grid_rows,
                  .columns = request.grid_columns};
}

void check_rows(const AttendRequest& request, std::int64_t tokens) {
  for (const std::int64_t row : request.rows)
    if (row < 0 || row >= tokens)
      throw UsageError("--rows", fmt::format("there is no query row {}", row),
                       fmt::format("the input has {} tokens, 0 to {}", tokens, tokens - 1));
}

void check_weights_size(const Kernel& kernel, const AttentionShape& shape, const AttendRequest& request) {
  const auto rows =
      request.rows.empty() ? static_cast<double>(shape.tokens) : static_cast<double>(request.rows.size());
  const double bytes = static_cast<double>(shape.batch) * static_cast<double>(kernel.weight_heads(shape)) *
                       rows * static_cast<double>(shape.tokens) * sizeof(float);
  if (bytes > largest_weights)
    throw Error("--weights",
                fmt::format("the weights would take {:.1f} GiB, more than 4 GiB", bytes / (1 << 30)),
                "choose query rows with --rows");
}

TensorView view_of(const at::Tensor& tensor) {
  return {
      .type = ElementType::f32,
      .shape = tensor.sizes().vec(),
      .bytes = std::as_bytes(std::span(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())))};
}

void attend(const AttendRequest& request) {
  const at::NoGradGuard no_gradients;
  const std::unique_ptr<Kernel> kernel = make_kernel(request.kernel);
  const SafetensorsFile file = SafetensorsFile::open(request.input);
  AttentionInput input = read_input(file, request);
  check_input(input);
  set_layout(input, request);
  const AttentionShape shape = shape_of(input);
  if (const Support support = kernel->supports(shape); !support.ok)
    throw UsageError(request.kernel.text(), support.reason, "choose another kernel or other parameters");
  check_rows(request, shape.tokens);
  if (request.weights) check_weights_size(*kernel, shape, request);

  const KernelParameters parameters = read_parameters(file);
  const at::Tensor output = kernel->run(input, parameters).out.contiguous();
  std::map<std::string, TensorView> results{{"output", view_of(output)}};
  at::Tensor weights;
  if (request.weights) {
    const at::Tensor rows = request.rows.empty() ? at::Tensor() : at::tensor(request.rows);
    weights = kernel->weights(input, parameters, rows).contiguous();
    results.emplace("weights", view_of(weights));
  }
  write_safetensors(request.output, results, {{"kernel", request.kernel.text()}});
}

} // namespace

void attend_file(const AttendRequest& request) {
  try {
    attend(request);
  } catch (const c10::Error& error) {
    // Shapes are checked above; what is left is memory and LibTorch's own limits.
    throw Error(request.input.string(),
                fmt::format("{} failed: {}", request.kernel.text(), error.what_without_backtrace()),
                "choose a smaller input");
  }
}

} // namespace hydrascope
