#include "engine/attention/interface/loop_input.h"

#include <algorithm>
#include <cstddef>

namespace hydrascope {
namespace {

cpu::Element element_of(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? cpu::Element::bfloat16 : cpu::Element::float32;
}

cpu::Rows rows_from(const at::Tensor& x, const std::int64_t offset, const std::int64_t heads) {
  return {
      .data = static_cast<std::byte*>(x.data_ptr()) + offset * static_cast<std::int64_t>(x.element_size()),
      .element = element_of(x),
      .heads = heads,
      .head_width = x.size(3),
      .token_stride = x.stride(2),
      .head_stride = x.stride(1)};
}

} // namespace

bool loops_take(const AttentionShape& shape) {
  const bool known_type = shape.dtype == at::kFloat || shape.dtype == at::kBFloat16;
  return shape.device == at::kCPU && !shape.gradients && known_type;
}

at::Tensor dense_features(const at::Tensor& x) {
  return x.size(3) == 1 || x.stride(3) == 1 ? x : x.contiguous();
}

cpu::Rows rows_of(const at::Tensor& x, const std::int64_t sequence) {
  return rows_from(x, sequence * x.stride(0), x.size(1));
}
cpu::Rows rows_of(const at::Tensor& x, const std::int64_t sequence, const std::int64_t head) {
  return rows_from(x, sequence * x.stride(0) + head * x.stride(1), 1);
}

LoopMask::LoopMask(const at::Tensor& mask) : bytes_(mask.defined() ? mask.contiguous() : mask) {}

const unsigned char* LoopMask::of(const std::int64_t sequence) const {
  if (!bytes_.defined()) return nullptr;
  return static_cast<const unsigned char*>(bytes_.const_data_ptr()) + sequence * bytes_.size(1);
}

std::int64_t LoopMask::count(const std::int64_t sequence, const std::int64_t tokens) const {
  return count(sequence, cpu::TokenRange{0, tokens});
}

std::int64_t LoopMask::count(const std::int64_t sequence, const cpu::TokenRange& range) const {
  const unsigned char* const mask = of(sequence);
  const std::int64_t tokens = range.last - range.first;
  if (mask == nullptr) return tokens;
  return tokens - std::count(mask + range.first, mask + range.last, static_cast<unsigned char>(0));
}

} // namespace hydrascope
