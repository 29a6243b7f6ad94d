#include "engine/attention/interface/attend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/any.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/remedies.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/safetensors.h"

namespace hydrascope {
namespace {

constexpr double largest_weights = 4.0 * 1024 * 1024 * 1024; // bytes

// A view of the file's tensor, valid as long as `file`; a copy where the file does not align it.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, const TensorView& view) {
  at::ScalarType type = at::kFloat;
  if (view.type == ElementType::u8)
    type = at::kByte;
  else if (view.type == ElementType::boolean)
    type = at::kBool;
  else if (view.type != ElementType::f32)
    throw Error(file.path().string(), fmt::format("\"{}\" is {}", name, element_name(view.type)),
                "store it as F32");
  const auto options = at::TensorOptions().dtype(type);
  const auto address = reinterpret_cast<std::uintptr_t>(view.bytes.data());
  if (address % alignof(float) == 0) // nothing writes to an input
    return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.shape, options);
  at::Tensor tensor = at::empty(view.shape, options);
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

// Keys and values of fewer heads than the queries' belong to groups of these.
void group_heads(AttentionInput& input) {
  const auto heads = [](const at::Tensor& x) { return x.dim() == 4 ? x.size(1) : 0; };
  const std::int64_t own = heads(input.q), shared = heads(input.k);
  if (shared == 0 || shared >= own || own % shared != 0 || heads(input.v) != shared) return;
  input.key_heads = shared;
  for (at::Tensor* x : {&input.k, &input.v}) *x = for_each_head(*x, own);
}

AttentionInput read_input(const SafetensorsFile& file, const AttendRequest& request,
                          const KernelInfo& kernel) {
  AttentionInput input;
  input.q = required(file, "q");
  input.k = required(file, "k");
  input.v = required(file, "v");
  group_heads(input);
  const auto& tensors = file.tensors();
  if (const auto mask = tensors.find("mask"); mask != tensors.end()) {
    if (mask->second.type != ElementType::u8 && mask->second.type != ElementType::boolean)
      throw Error(file.path().string(), fmt::format("\"mask\" is {}", element_name(mask->second.type)),
                  "store it as U8, 1 = real token");
    input.mask = read_tensor(file, "mask", mask->second).to(at::kBool);
  }
  if (!kernel.uses_query_projection && tensors.contains("x")) input.layer_input = required(file, "x");
  input.causal = request.causal;
  return input;
}

// The kernel's parameters, by the names of those it starts with, as far as the file has them.
KernelParameters read_parameters(const SafetensorsFile& file, const KernelParameters& starting) {
  KernelParameters parameters;
  for (const auto& [name, start] : starting)
    if (file.tensors().contains(name)) parameters[name] = required(file, name);
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

// NaN would spread over the whole output unnoticed. mask: of the tokens of x (B,H,N,d) or (B,N,D); undefined:
// all numbers count.
void check_finite(const SafetensorsFile& file, const std::string& name, const at::Tensor& x,
                  const at::Tensor& mask) {
  at::Tensor real;
  if (mask.defined()) real = x.dim() == 4 ? mask.unsqueeze(1).unsqueeze(-1) : mask.unsqueeze(-1);
  // In blocks: the Boolean result must not take as much memory as the tensor.
  for (const TokenBlock& block : token_blocks(x.size(0), x.numel() / std::max<std::int64_t>(1, x.size(0)))) {
    at::Tensor bad = x.slice(0, block.first, block.last).isnan();
    if (real.defined()) bad = bad.logical_and(real.slice(0, block.first, block.last));
    if (bad.any().item<bool>())
      throw Error(file.path().string(), fmt::format("\"{}\" holds NaN", name),
                  "mask the token, or check where its numbers come from");
  }
}

// Throws Error for results with infinities or NaN, to which large values lead.
template <typename Number>
void require_finite(const KernelSpec& kernel, const char* what, const std::span<const Number> numbers) {
  if (std::ranges::all_of(numbers, [](const Number number) { return std::isfinite(number); })) return;
  throw Error(kernel.text(), fmt::format("{} that are not finite", what),
              "use smaller values of q, k and v, or another kernel");
}

// x: float32, on the CPU.
std::span<const float> numbers_of(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())};
}

at::ScalarType type_of(const std::string& text) {
  if (text == "bfloat16") return at::kBFloat16;
  return text == "float16" ? at::kHalf : at::kFloat;
}

// The result of the operation, before it is written.
struct Results {
  AttendReport report;
  std::map<std::string, at::Tensor> tensors;
};

Results attend(const AttendRequest& request, const SafetensorsFile& file) {
  const at::NoGradGuard no_gradients;
  const std::unique_ptr<Kernel> kernel = make_kernel(request.kernel);
  AttentionInput input = read_input(file, request, kernel->info());
  check_input(input);
  set_layout(input, request);
  const at::Device device = device_of(request.device);
  const at::ScalarType type = type_of(request.dtype);
  AttentionShape shape = shape_of(input);
  shape.dtype = type;
  shape.device = device.type();
  if (const Support support = kernel->supports(shape); !support.ok)
    throw UsageError(request.kernel.text(), support.reason, "choose another kernel or other parameters");
  check_rows(request, shape.tokens);
  if (request.weights) check_weights_size(*kernel, shape, request);

  const KernelParameters starting = kernel->initial_parameters(heads_of(shape));
  KernelParameters parameters = read_parameters(file, starting);
  for (const auto& [name, x] : {std::pair{"q", &input.q}, {"k", &input.k}, {"v", &input.v}})
    check_finite(file, name, *x, input.mask);
  if (const at::Tensor& x = input.layer_input; // the kernel refuses x of another shape
      x.defined() && x.dim() == 3 && x.size(0) == shape.batch && x.size(1) == shape.tokens)
    check_finite(file, "x", x, input.mask);
  for (const auto& [name, x] : parameters) check_finite(file, name, x, {});
  Results results;
  for (const std::string& name : kernel->fixed_parameters())
    if (parameters.try_emplace(name, starting.at(name)).second) results.tensors[name] = starting.at(name);
  for (at::Tensor* x : {&input.q, &input.k, &input.v, &input.layer_input})
    if (x->defined()) *x = x->to(device, type);
  if (input.mask.defined()) input.mask = input.mask.to(device);
  for (auto& [name, x] : parameters) x = x.to(device);

  const auto start = std::chrono::steady_clock::now();
  const AttentionOutput output = kernel->run(input, parameters);
  at::Tensor finished = kernel->finish(output.out, input.mask, parameters);
  finished = finished.to(at::kCPU, at::kFloat).contiguous();
  results.report.path = output.path;
  results.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  results.report.zero_denominators = output.zero_denominators.read();
  require_finite(request.kernel, "its output holds numbers", numbers_of(finished));
  results.tensors["output"] = finished;
  if (!request.weights) return results;
  const at::Tensor rows = request.rows.empty() ? at::Tensor() : at::tensor(request.rows).to(device);
  const at::Tensor weights = kernel->weights(input, parameters, rows).to(at::kCPU, at::kFloat).contiguous();
  require_finite(request.kernel, "its weights hold numbers", numbers_of(weights));
  const double check = kernel->weights_check(input, parameters, rows);
  require_finite(request.kernel, "weights × V holds numbers", std::span(&check, 1));
  results.tensors["weights"] = weights;
  results.report.check = check;
  results.report.checked_rows = weights.size(2);
  return results;
}

} // namespace

AttendReport attend_file(const AttendRequest& request) {
  // Shapes are checked above; what remains is out of memory and LibTorch's own limits.
  return with_remedies(
      {.subject = fmt::format("{}: {} failed", request.input.string(), request.kernel.text()),
       .memory = "choose a smaller input",
       .other = "choose a smaller input",
       .device = request.device},
      [&] {
        const SafetensorsFile file = SafetensorsFile::open(request.input);
        const Results results = attend(request, file);
        file.mapping()->require();
        std::map<std::string, TensorView> views;
        for (const auto& [name, tensor] : results.tensors) views.emplace(name, view_of(tensor));
        write_safetensors(request.output, views, {{"kernel", request.kernel.text()}});
        return results.report;
      });
}

} // namespace hydrascope
