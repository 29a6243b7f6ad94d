#include "engine/run/reading.h"

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {

void check_below(const char* subject, std::int64_t value, std::int64_t limit, const char* what) {
  if (value >= 0 && value < limit) return;
  throw UsageError(fmt::format("{} {}", subject, value), fmt::format("there are {} {}", limit, what),
                   fmt::format("use 0 to {}", limit - 1));
}

LayerKernel PlanContext::kernel(bool teacher_forced, int layer, const std::optional<KernelSpec>& spec) const {
  const Pass& of = pass(teacher_forced);
  if (!spec) return of.layers[static_cast<std::size_t>(layer)];
  return layer_kernel(*of.model.model, layer, seeded(*spec, request.execution.seed));
}

bool is_another_kernel(const Schedule& schedule, int layer, const std::optional<KernelSpec>& spec) {
  return spec && *spec != schedule.layers.at(static_cast<std::size_t>(layer));
}

QuantityKeys comparisons_in(const QuantityKeys& keys, const Schedule& schedule) {
  QuantityKeys compared;
  for (const QuantityKey& key : keys)
    if (key.quantity().compares(key, schedule)) compared.add(key);
  return compared;
}

QuantityKeys keys_of_model(const QuantityKeys& keys, const ModelInfo& model, std::string* const reason) {
  if (!model.capture) return keys;
  QuantityKeys there;
  for (const QuantityKey& key : keys) {
    const std::string why = key.quantity().missing_in(key, *model.capture);
    if (why.empty())
      there.add(key);
    else if (reason != nullptr)
      *reason = why;
  }
  return there;
}

double estimated_bytes(const QuantityKeys& quantities, const ModelInfo& model, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  // Scores, weights and a temporary of one layer; those of a capture are read in tiles of rows.
  double bytes = model.capture ? 0 : 3.0 * model.heads * n * n * sizeof(float);
  for (const QuantityKey& key : quantities) bytes += key.quantity().bytes(key, model, tokens);
  return bytes;
}

namespace {

// Numbers (n) of a device. Only a copy to pinned memory is one that the device does by itself.
at::Tensor copy_to_host(const at::Tensor& numbers) {
  if (!numbers.is_cuda()) return numbers.cpu();
  at::Tensor host = at::empty(numbers.sizes(), numbers.options().device(at::kCPU).pinned_memory(true));
  host.copy_(numbers, /*non_blocking=*/true);
  c10::Event copied(numbers.device().type());
  copied.record(c10::impl::VirtualGuardImpl(numbers.device().type()).getStream(numbers.device()));
  copied.synchronize();
  return host;
}

} // namespace

void HostCopies::add(const at::Tensor& tensor, std::function<void(Array)> take) {
  if (tensor.is_cpu()) return take(to_array(tensor));
  waiting_.push_back({tensor.detach().to(at::kFloat).contiguous(), std::move(take)});
}

void HostCopies::then(std::function<void()> work) {
  if (waiting_.empty()) return work();
  waiting_.push_back({at::Tensor(), [work = std::move(work)](const Array&) { work(); }});
}

void HostCopies::finish() {
  const std::vector<Waiting> all = std::exchange(waiting_, {});
  std::vector<at::Tensor> flat;
  for (const Waiting& one : all)
    if (one.tensor.defined()) flat.push_back(one.tensor.flatten());
  if (flat.empty()) return; // then() has waited for nothing
  const at::Tensor host = copy_to_host(flat.size() == 1 ? flat.front() : at::cat(flat));
  const float* next = host.const_data_ptr<float>();
  for (const Waiting& one : all) {
    Array numbers;
    if (one.tensor.defined()) {
      const float* const first = std::exchange(next, next + one.tensor.numel());
      numbers = {one.tensor.sizes().vec(), std::vector<float>(first, next)};
    }
    one.take(std::move(numbers));
  }
}

Array to_array(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* first = values.const_data_ptr<float>();
  return Array{values.sizes().vec(), std::vector<float>(first, first + values.numel())};
}

} // namespace hydrascope
