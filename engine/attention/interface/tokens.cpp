#include "engine/attention/interface/tokens.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/all.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

std::string shape_text(const at::Tensor& x) {
  return x.defined() ? fmt::format("({})", fmt::join(x.sizes().vec(), ",")) : "missing";
}

template <typename To, typename From>
void convert(const at::Tensor& from, const at::Tensor& to) {
  const From* const numbers = from.const_data_ptr<From>();
  std::transform(numbers, numbers + from.numel(), to.data_ptr<To>(),
                 [](const From& number) { return static_cast<To>(number); });
}

} // namespace

void check_input(const AttentionInput& input) {
  const auto check = [](bool ok, std::string_view subject, const std::string& reason) {
    if (!ok)
      throw UsageError(subject, reason, "q, k and v are (B,H,N,d) of one shape and type, the mask (B,N)");
  };
  check(input.q.defined() && input.q.dim() == 4, "q", fmt::format("its shape is {}", shape_text(input.q)));
  check(input.q.numel() > 0, "q", fmt::format("its shape {} holds nothing", shape_text(input.q)));
  check(input.q.is_floating_point(), "q", "its numbers are not floating-point");
  for (const auto& [name, x] : {std::pair{"k", &input.k}, std::pair{"v", &input.v}}) {
    check(x->defined() && x->sizes() == input.q.sizes(), name,
          fmt::format("its shape is {} where q has {}", shape_text(*x), shape_text(input.q)));
    check(x->scalar_type() == input.q.scalar_type() && x->device() == input.q.device(), name,
          "its type or device is not q's");
  }
  const std::int64_t heads = input.q.size(1);
  if (input.key_heads != 0 && (input.key_heads < 1 || heads % input.key_heads != 0))
    throw UsageError("k", fmt::format("{} key/value heads do not divide {} heads", input.key_heads, heads),
                     "give a number of key/value heads that divides that of the queries' heads");
  if (!input.mask.defined()) return;
  check(
      input.mask.dim() == 2 && input.mask.size(0) == input.q.size(0) && input.mask.size(1) == input.q.size(2),
      "mask", fmt::format("its shape is {} where q has {}", shape_text(input.mask), shape_text(input.q)));
}

at::ScalarType compute_type(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

bool needs_gradient(const AttentionInput& input, const KernelParameters& parameters) {
  if (!at::GradMode::is_enabled()) return false;
  return input.q.requires_grad() || input.k.requires_grad() || input.v.requires_grad() ||
         (input.layer_input.defined() && input.layer_input.requires_grad()) ||
         std::ranges::any_of(parameters, [](const auto& parameter) {
           return parameter.second.defined() && parameter.second.requires_grad();
         });
}

at::Tensor real_mask(const AttentionInput& input) {
  if (!input.mask.defined()) return {};
  const at::Tensor mask = input.mask.to(at::kBool);
  if (!mask.is_cpu()) return mask; // asking would wait for the device
  return mask.all().item<bool>() ? at::Tensor() : mask;
}

at::Tensor query_mask(const AttentionInput& input) {
  if (input.queries == 0) return real_mask(input);
  const at::Tensor index = at::arange(input.q.size(2), input.q.options().dtype(at::kLong));
  return (index < input.queries).unsqueeze(0).expand({input.q.size(0), -1});
}

at::Tensor key_mask(const AttentionInput& input) {
  return input.queries == 0 ? real_mask(input) : query_mask(input).logical_not();
}

at::Tensor row_to(const at::Tensor& row, const at::ScalarType type) {
  const at::ScalarType from = row.scalar_type();
  if (from == type || !row.is_cpu()) return row.to(type);
  const at::Tensor result = at::empty(row.sizes(), row.options().dtype(type));
  constexpr std::int64_t short_row = 4096;
  if (row.numel() <= short_row && row.is_contiguous()) {
    if (from == at::kFloat && type == at::kBFloat16) {
      convert<at::BFloat16, float>(row, result);
      return result;
    }
    if (from == at::kBFloat16 && type == at::kFloat) {
      convert<float, at::BFloat16>(row, result);
      return result;
    }
  }
  const at::Tensor flat = row.flatten(), to = result.flatten();
  constexpr std::int64_t at_once = 16384; // LibTorch takes one thread for up to twice as many
  for (std::int64_t first = 0; first < flat.numel(); first += at_once) {
    const std::int64_t last = std::min(flat.numel(), first + at_once);
    to.slice(0, first, last).copy_(flat.slice(0, first, last));
  }
  return result;
}

RealTokens real_tokens(const AttentionInput& input) {
  const at::ScalarType type = compute_type(input.q.scalar_type());
  const at::Tensor mask = real_mask(input);
  const auto prepared = [&](const at::Tensor& x) { return select_tokens(x.to(type), mask); };
  return {prepared(input.q), prepared(input.k), prepared(input.v), mask};
}

std::int64_t tile_rows(const std::int64_t batch_heads, const std::int64_t tokens) {
  constexpr std::int64_t entries = 8 << 20;
  return std::clamp<std::int64_t>(entries / std::max<std::int64_t>(1, batch_heads * tokens), 1, tokens);
}

std::vector<TokenBlock> token_blocks(std::int64_t tokens, std::int64_t entries) {
  constexpr std::int64_t block_entries = 4 << 20, smallest = 64;
  const std::int64_t step = std::max(smallest, block_entries / std::max<std::int64_t>(1, entries));
  std::vector<TokenBlock> blocks;
  for (std::int64_t first = 0; first < tokens; first += step)
    blocks.push_back({first, std::min(tokens, first + step)});
  return blocks;
}

Support heads_support(std::optional<std::int64_t> heads, const AttentionShape& shape) {
  const std::int64_t width = shape.heads * shape.head_width;
  if (!heads || width % *heads == 0) return {};
  return {.ok = false, .reason = fmt::format("heads={} does not divide the model width {}", *heads, width)};
}

at::Tensor select_tokens(const at::Tensor& x, const at::Tensor& mask) {
  return mask.defined() ? at::where(mask.unsqueeze(1).unsqueeze(-1), x, at::Scalar(0)) : x;
}

at::Tensor select_rows(const at::Tensor& x, const at::Tensor& mask) {
  return mask.defined() ? at::where(mask.unsqueeze(-1), x, at::Scalar(0)) : x;
}

at::Tensor take_tokens(const at::Tensor& x, const at::Tensor& rows) {
  return rows.defined() ? x.index_select(2, rows.to(x.device())) : x;
}

at::Tensor take_mask(const at::Tensor& mask, const at::Tensor& rows) {
  return mask.defined() && rows.defined() ? mask.index_select(1, rows.to(mask.device())) : mask;
}

at::Tensor rows_or_all(const at::Tensor& rows, std::int64_t tokens, const at::Tensor& like) {
  return rows.defined() ? rows.to(like.device()) : at::arange(tokens, like.options().dtype(at::kLong));
}

at::Tensor to_rows(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

at::Tensor to_heads(const at::Tensor& rows, std::int64_t heads) {
  return rows.unflatten(2, {heads, rows.size(2) / heads}).transpose(1, 2);
}

at::Tensor resplit(const at::Tensor& x, std::int64_t heads) {
  return x.size(1) == heads ? x : to_heads(to_rows(x), heads);
}

at::Tensor one_of_each_group(const at::Tensor& x, const std::int64_t key_heads) {
  return x.size(1) == key_heads ? x : x.slice(1, 0, x.size(1), x.size(1) / key_heads);
}

at::Tensor for_each_head(const at::Tensor& x, const std::int64_t heads) {
  if (x.size(1) == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), heads / x.size(1), x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

at::Tensor without_muted(const at::Tensor& finished, const std::span<const int> muted) {
  if (muted.empty()) return finished;
  at::Tensor heard = at::ones({1, finished.size(1), 1, 1}, finished.options().dtype(at::kBool));
  for (const int head : muted) heard.select(1, head).fill_(false);
  return at::where(heard, finished, 0.0); // a select: 0 also where the head's output is not a number
}

std::vector<bool> unmuted_heads(std::span<const int> muted, std::int64_t heads, std::int64_t kernel_heads) {
  // In units of 1/(heads·kernel_heads) of the features, model head i is [i·kernel_heads, (i+1)·kernel_heads)
  // and kernel head j is [j·heads, (j+1)·heads).
  std::vector<bool> silent(static_cast<std::size_t>(heads));
  for (const int head : muted) silent.at(static_cast<std::size_t>(head)) = true;
  std::vector<bool> heard(static_cast<std::size_t>(kernel_heads));
  for (std::int64_t own = 0; own < kernel_heads; ++own) {
    const std::int64_t first = own * heads / kernel_heads;
    const std::int64_t last = ((own + 1) * heads - 1) / kernel_heads;
    for (std::int64_t head = first; head <= last; ++head)
      if (!silent[static_cast<std::size_t>(head)]) heard[static_cast<std::size_t>(own)] = true;
  }
  return heard;
}

} // namespace hydrascope
