// Explicit attention weights of a layer. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/array.h"
#include "engine/run/quantities/last_token.h"
#include "engine/run/quantity.h"

namespace hydrascope {

// How the weights of several heads are combined into one map.
enum class HeadFusion { mean, min, max };

struct WeightsResult {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  bool derived_signed = false; // the kernel's weights are not positive and normalised (Hydra and others)
  bool untrained = false;
  std::vector<std::int64_t> rows; // query rows of `weights`
  bool value_weighted = false;
  // (h,R,N). Value-weighted: ‖α_ij v_j W_o^h‖, the length of the vector that token j adds to token i through
  // the head; not signed, rows of any sum; for Hydra kernels α is the derived weight.
  Array weights;
  // Largest |weights × V − output| over these rows; NaN for a few rows of a long sequence, whose output would
  // take far longer.
  double check = 0;
  // How much of it may be a half type's rounding of the output; 0 in float32, and where the check is small.
  double rounding = 0;
};

// The weights of one layer under one kernel.
struct WeightsKey {
  using Result = WeightsResult;

  int layer = 0;
  std::optional<KernelSpec> kernel = {}; // nullopt: the schedule's kernel of that layer
  std::vector<std::int64_t> rows = {};   // query rows, or last_token; empty: all …
  std::int64_t most_rows = 0;            // … or, of more tokens, this many evenly spaced ones; 0: all
  bool teacher_forced = false;           // from q, k of the pass with softmax in every layer
  bool value_weighted = false;           // ‖α_ij v_j W_o^h‖ instead of α_ij

  bool operator==(const WeightsKey&) const = default;
  // A result with all rows contains those with some.
  bool covers(const WeightsKey& other) const {
    const bool all = rows.empty() && most_rows == 0;
    return layer == other.layer && kernel == other.kernel && teacher_forced == other.teacher_forced &&
           value_weighted == other.value_weighted &&
           (all || (rows == other.rows && most_rows == other.most_rows));
  }
};
const Quantity& quantity_of(const WeightsKey& key);

} // namespace hydrascope
