#include "engine/attention/interface/row_count.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

namespace hydrascope {

RowCount& RowCount::operator+=(const RowCount& other) {
  known_ += other.known_;
  if (other.pending_.defined()) pending_ = pending_.defined() ? pending_ + other.pending_ : other.pending_;
  return *this;
}

std::int64_t RowCount::read() const { return read_rows({this, 1}).front(); }

std::vector<std::int64_t> read_rows(const std::span<const RowCount> counts) {
  std::vector<at::Tensor> pending;
  std::vector<std::int64_t> rows;
  for (const RowCount& count : counts)
    if (count.pending_.defined()) pending.push_back(count.pending_);
  const at::Tensor read = pending.empty() ? at::Tensor() : at::stack(pending).to(at::kCPU, at::kLong);
  std::int64_t next = 0;
  for (const RowCount& count : counts) {
    rows.push_back(count.known_);
    if (count.pending_.defined()) rows.back() += read.const_data_ptr<std::int64_t>()[next++];
  }
  return rows;
}

} // namespace hydrascope
