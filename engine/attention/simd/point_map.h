// What the fused loops, on the CPU and on the GPU, know of feature maps. No LibTorch, no C++20.
#pragma once

namespace hydrascope::cpu {

// φ of y, feature by feature.
enum class PointMap {
  plus_minus_exponential, // [e^y, e^−y]: twice as many features as y has entries
  exponential,            // e^y
  softmax,                // e^y / Σ e^y over the features of a token
  plus_minus_softmax,     // [softmax y, softmax −y]
  joint_softmax,          // softmax [y, −y]
  one_plus_elu,           // e^y below 0, 1 + y above
  relu,
  unit,        // y / max(‖y‖₂, 10⁻¹²)
  relu_turned, // [ReLU(y) · a, ReLU(y) · b] with a token's own a and b
  taylor,      // [1, y, y_i y_j for i < j, y_i²/√2]: two of them multiply to 1 + y·y' + (y·y')²/2
};

// Whether behind the features of y there are as many again, of −y or with another factor.
constexpr bool has_two_halves(const PointMap map) {
  return map == PointMap::plus_minus_exponential || map == PointMap::plus_minus_softmax ||
         map == PointMap::joint_softmax || map == PointMap::relu_turned;
}

} // namespace hydrascope::cpu
