#include "engine/measure/kernel_support.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "engine/attention/interface/cross_attention.h"
#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"
#include "engine/run/run.h"

namespace hydrascope {
namespace {

AttentionShape attention_shape(const LayerShape& shape) {
  AttentionShape made{.heads = shape.heads,
                      .tokens = shape.tokens,
                      .head_width = shape.head_width,
                      .has_layer_input = shape.has_layer_input,
                      .has_mask = shape.has_mask,
                      .causal = shape.causal,
                      .layout = {shape.prefix_tokens, shape.rows, shape.columns}};
  if (shape.dtype == "bfloat16") made.dtype = at::kBFloat16;
  if (shape.dtype == "float16") made.dtype = at::kHalf;
  return made;
}

} // namespace

std::string why_unsupported(const KernelSpec& kernel, const LayerShape& shape) {
  try {
    const c10::Device device = device_of(shape.device);
    dtype_on(device, shape.dtype);
    AttentionShape made = attention_shape(shape);
    made.device = device.type();
    made.device_index = device.index();
    std::shared_ptr<const Kernel> run = make_kernel(kernel);
    if (shape.cross) run = for_cross_attention(std::move(run));
    const Support support = run->supports(made);
    return support.ok ? "" : support.reason;
  } catch (const Error& error) {
    return error.what();
  }
}

double attention_products(const KernelSpec& kernel, const LayerShape& shape) {
  try {
    const auto made = make_kernel(kernel);
    const AttentionShape layer = attention_shape(shape);
    return made->supports(layer).ok ? made->cost(layer).multiply_accumulates : 0;
  } catch (const Error&) {
    return 0;
  }
}

std::vector<std::int64_t> divisors_of(std::int64_t width) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t candidate = 1; candidate <= width; ++candidate)
    if (width % candidate == 0) divisors.push_back(candidate);
  return divisors;
}

} // namespace hydrascope
