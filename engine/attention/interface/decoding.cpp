#include "engine/attention/interface/decoding.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr const char* count_name = "tokens";

void check_next(const AttentionInput& next, const AttentionShape& shape, const std::int64_t key_heads) {
  const auto text = [](const at::Tensor& x) {
    return x.defined() ? fmt::format("({})", fmt::join(x.sizes().vec(), ",")) : "missing";
  };
  // `reason` makes the text: this runs for every token and layer.
  const auto check = [](const bool ok, const char* const subject, const auto& reason) {
    if (!ok)
      throw UsageError(
          subject, reason(),
          "extend a decoding state by tokens of the shape, type and device that it was made for");
  };
  const std::int64_t rows = next.q.defined() && next.q.dim() == 4 ? next.q.size(2) : 0;
  check(rows > 0 && next.q.sizes() == at::IntArrayRef({shape.batch, shape.heads, rows, shape.head_width}),
        "q", [&] {
          return fmt::format("its shape is {} where ({},{},R,{}) is decoded", text(next.q), shape.batch,
                             shape.heads, shape.head_width);
        });
  for (const auto& [name, x] : {std::pair{"q", &next.q}, std::pair{"k", &next.k}, std::pair{"v", &next.v}}) {
    const bool fits = x->defined() && x->dim() == 4 && x->size(0) == shape.batch && x->size(2) == rows &&
                      x->size(3) == shape.head_width &&
                      (x->size(1) == shape.heads || x->size(1) == key_heads);
    check(fits, name,
          [&, x = x] { return fmt::format("its shape is {} where q has {}", text(*x), text(next.q)); });
    check(x->scalar_type() == shape.dtype && x->device().type() == shape.device, name,
          [] { return "its type or device is not the state's"; });
  }
  check(!real_mask(next).defined(), "mask",
        [] { return "it leaves out tokens, and where sequences grow there is no padding"; });
  if (!shape.has_layer_input) return;
  check(next.layer_input.defined() &&
            next.layer_input.sizes() == at::IntArrayRef({shape.batch, rows, shape.heads * shape.head_width}),
        "x",
        [&] { return fmt::format("its shape is {} where q has {}", text(next.layer_input), text(next.q)); });
}

} // namespace

at::Tensor DecodingState::extend(const AttentionInput& next) {
  const at::NoGradGuard no_gradients;
  check_next(next, shape_, key_heads());
  AttentionInput own = next;
  own.causal = true;
  own.key_heads = shape_.key_heads;
  own.mask = at::Tensor();
  own.k = one_of_each_group(next.k, key_heads());
  own.v = one_of_each_group(next.v, key_heads());
  at::Tensor out = outputs(own);
  tokens_ += next.q.size(2);
  return out;
}

DecodingTensors DecodingState::tensors() const {
  DecodingTensors all = kept();
  all[count_name] = at::scalar_tensor(tokens_, at::kLong);
  return all;
}

at::Tensor saved_tensor(const DecodingTensors& saved, const std::string& name, const at::IntArrayRef sizes,
                        const at::TensorOptions& options) {
  const auto found = saved.find(name);
  if (found == saved.end() || !found->second.defined() || found->second.sizes() != sizes ||
      found->second.scalar_type() != c10::typeMetaToScalarType(options.dtype()))
    throw UsageError(
        name,
        found == saved.end() || !found->second.defined()
            ? "it is missing in the saved state"
            : fmt::format("the saved one is ({}) of {} where the state is ({}) of {}",
                          fmt::join(found->second.sizes().vec(), ","), toString(found->second.scalar_type()),
                          fmt::join(sizes.vec(), ","), toString(c10::typeMetaToScalarType(options.dtype()))),
        "continue a state with the kernel, parameters and shape that it was saved with");
  return found->second.to(options.device()).clone();
}

Support Kernel::decodes(const AttentionShape& shape) const {
  AttentionShape causal = shape;
  causal.causal = true;
  causal.gradients = causal.has_mask = false;
  Support support = supports(causal);
  if (!support.ok) return support;
  if (shape.layout.rows > 0) return {.ok = false, .reason = "an image does not grow token by token"};
  std::string reason = growth_refusal(causal);
  if (!reason.empty()) return {.ok = false, .reason = std::move(reason)};
  return {};
}

std::unique_ptr<DecodingState> Kernel::decoding(const AttentionShape& shape,
                                                const KernelParameters& parameters,
                                                const DecodingTensors& saved) const {
  if (Support support = decodes(shape); !support.ok)
    throw UsageError(spec().text(), support.reason, "choose another kernel or other parameters");
  const at::NoGradGuard no_gradients;
  AttentionShape own = shape;
  own.causal = true;
  own.gradients = own.has_mask = false;
  own.has_layer_input = false;
  own.has_layer_input = !supports(own).ok; // whether the kernel needs it
  std::unique_ptr<DecodingState> state = make_decoding(own, parameters);
  if (saved.empty()) return state;
  const at::Tensor count = saved_tensor(saved, count_name, {}, at::TensorOptions(at::kLong));
  state->tokens_ = count.item<std::int64_t>();
  state->restore(saved);
  return state;
}

std::string Kernel::growth_refusal(const AttentionShape&) const {
  return "it keeps no state from which a sequence could be continued";
}

std::unique_ptr<DecodingState> Kernel::make_decoding(const AttentionShape&, const KernelParameters&) const {
  throw UsageError(spec().text(), "it keeps no state from which a sequence could be continued",
                   "choose another kernel");
}

} // namespace hydrascope
