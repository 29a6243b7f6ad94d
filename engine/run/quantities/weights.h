// Explicit attention weights of a layer. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct WeightsResult {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  bool derived_signed = false; // Hydra and other kernels without positive, normalised weights
  bool untrained = false;
  std::vector<std::int64_t> rows; // query rows of `weights`
  bool value_weighted = false;
  // (h,R,N). Value-weighted: ‖α_ij v_j W_o^h‖, the length of what token j adds to token i through the head
  // (engine/run/quantities/value_norms.h), no longer signed and with rows of any sum; for Hydra kernels with
  // the derived weights as α.
  Array weights;
  double check = 0; // largest |weights × V − output| over these rows
};

// The weights of one layer under one kernel.
struct WeightsKey {
  using Result = WeightsResult;

  int layer = 0;
  std::optional<KernelSpec> kernel = {}; // nullopt: the schedule's own kernel of that layer
  std::vector<std::int64_t> rows = {};   // query rows; empty: all
  bool teacher_forced = false; // q, k of the run with softmax in every layer, instead of this run's own
  bool value_weighted = false; // ‖α_ij v_j W_o‖ instead of α_ij: as WeightsResult

  bool operator==(const WeightsKey&) const = default;
  // All rows hold some of them.
  bool serves(const WeightsKey& other) const {
    return layer == other.layer && kernel == other.kernel && teacher_forced == other.teacher_forced &&
           value_weighted == other.value_weighted && (rows.empty() || rows == other.rows);
  }
};
const Quantity& quantity_of(const WeightsKey& key);

} // namespace hydrascope
