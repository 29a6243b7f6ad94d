// A number of rows that a kernel has counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// What was counted on a device other than the CPU stays there until it is read, because reading waits for the
// device.
class RowCount {
public:
  RowCount(std::int64_t rows = 0) : known_(rows) {} // NOLINT: implicit, as a number
  // From a single int64 number on any device; read at once where it is on the CPU.
  explicit RowCount(const at::Tensor& rows) {
    if (rows.is_cpu())
      known_ = rows.item<std::int64_t>();
    else
      pending_ = rows;
  }

  RowCount& operator+=(const RowCount& other);

  // The number; waits for the device.
  std::int64_t read() const;

private:
  friend std::vector<std::int64_t> read_rows(std::span<const RowCount> counts);

  std::int64_t known_ = 0;
  at::Tensor pending_; // to be added to known_; undefined: nothing
};

// The numbers of several counts on one device, with one wait.
std::vector<std::int64_t> read_rows(std::span<const RowCount> counts);

} // namespace hydrascope
