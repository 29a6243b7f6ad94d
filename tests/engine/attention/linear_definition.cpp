#include "tests/engine/attention/linear_definition.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hydrascope::testing_inputs {

using cpu::PointMap;

std::vector<double> defined_features(const cpu::LinearMap& map, const Sequence& x, const std::int64_t head,
                                     const std::int64_t token) {
  const auto entry = [&](std::int64_t f) { return x.at(token, head * x.width + f); };
  const std::int64_t stride = cpu::padded_to_lanes(map.outputs);
  double squares = 0;
  for (std::int64_t i = 0; i < x.width; ++i) squares += entry(i) * entry(i);
  std::vector<double> plus, minus;
  for (std::int64_t o = 0; o < map.outputs; ++o) {
    double y = map.weight == nullptr ? entry(o) : 0;
    if (map.bias != nullptr) y += static_cast<double>(map.bias[o]);
    for (std::int64_t i = 0; map.weight != nullptr && i < x.width; ++i)
      y += entry(i) * static_cast<double>(map.weight[i * stride + o]);
    y = static_cast<double>(map.scale) * y - static_cast<double>(map.half_square) * squares;
    switch (map.map) {
      case PointMap::plus_minus_exponential:
      case PointMap::plus_minus_softmax:
      case PointMap::joint_softmax: minus.push_back(std::exp(-y)); [[fallthrough]];
      case PointMap::softmax:
      case PointMap::exponential: plus.push_back(std::exp(y)); break;
      case PointMap::one_plus_elu: plus.push_back(y < 0 ? std::exp(y) : 1 + y); break;
      case PointMap::relu: plus.push_back(std::max(0.0, y)); break;
      case PointMap::relu_token_weighted:
        plus.push_back(std::max(0.0, y) * static_cast<double>(map.token_weights[2 * token]));
        minus.push_back(std::max(0.0, y) * static_cast<double>(map.token_weights[2 * token + 1]));
        break;
      case PointMap::unit:
      case PointMap::taylor: plus.push_back(y);
    }
  }
  if (map.map == PointMap::unit) {
    const double norm = std::sqrt(std::inner_product(plus.begin(), plus.end(), plus.begin(), 0.0));
    for (double& feature : plus) feature /= norm;
  }
  if (map.map == PointMap::taylor) {
    const std::vector<double> y = plus;
    plus.push_back(1);
    for (const double a : y)
      for (const double b : y) plus.push_back(a * b * std::sqrt(0.5));
  }
  double plus_sum = std::reduce(plus.begin(), plus.end()),
         minus_sum = std::reduce(minus.begin(), minus.end());
  if (map.map == PointMap::joint_softmax) plus_sum = minus_sum = plus_sum + minus_sum;
  if (map.map == PointMap::softmax || map.map == PointMap::plus_minus_softmax ||
      map.map == PointMap::joint_softmax) {
    for (double& feature : plus) feature /= plus_sum;
    for (double& feature : minus) feature /= minus_sum;
  }
  plus.insert(plus.end(), minus.begin(), minus.end());
  return plus;
}

DefinedOutput defined_linear_attention(const cpu::LinearMap& map, const Sequence& q, const Sequence& k,
                                       const Sequence& v, const std::int64_t head,
                                       const unsigned char* const mask, const bool causal) {
  const auto real = [&](std::int64_t token) { return mask == nullptr || mask[token] != 0; };
  std::vector<std::vector<double>> keys;
  for (std::int64_t j = 0; j < k.tokens; ++j)
    keys.push_back(real(j) ? defined_features(map, k, head, j) : std::vector<double>());
  DefinedOutput result;
  result.out.assign(static_cast<std::size_t>(q.tokens * v.width), 0);
  for (std::int64_t i = 0; i < q.tokens; ++i) {
    if (!real(i)) continue;
    const std::vector<double> query = defined_features(map, q, head, i);
    double* const row = result.out.data() + i * v.width;
    double denominator = 0;
    for (std::int64_t j = 0; j < (causal ? i + 1 : k.tokens); ++j) {
      const std::vector<double>& key = keys[static_cast<std::size_t>(j)];
      const double product = std::inner_product(key.begin(), key.end(), query.begin(), 0.0);
      denominator += product;
      for (std::int64_t c = 0; real(j) && c < v.width; ++c) row[c] += product * v.at(j, head * v.width + c);
    }
    if (!map.normalised) continue;
    if (denominator == 0) ++result.zero_denominators;
    for (std::int64_t c = 0; c < v.width; ++c) row[c] = denominator == 0 ? 0 : row[c] / denominator;
  }
  return result;
}

} // namespace hydrascope::testing_inputs
