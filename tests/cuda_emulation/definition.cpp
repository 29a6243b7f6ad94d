#include "tests/cuda_emulation/definition.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hydrascope::testing_inputs {
namespace {

using cpu::PointMap;

// Rows of doubles.
struct Matrix {
  Matrix(const std::int64_t rows, const std::int64_t columns_)
      : columns(static_cast<std::size_t>(columns_)), values(static_cast<std::size_t>(rows) * columns, 0) {}
  double* operator[](const std::int64_t row) {
    return values.data() + static_cast<std::size_t>(row) * columns;
  }
  const double* operator[](const std::int64_t row) const {
    return values.data() + static_cast<std::size_t>(row) * columns;
  }
  std::size_t columns;
  std::vector<double> values;
};

std::int64_t feature_count(const DefinedHead& head) {
  return cpu::has_two_halves(head.map) ? 2 * head.outputs : head.outputs;
}

double dot(const double* const a, const double* const b, const std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void project(const DefinedHead& head, const DefinedProjection& by, const double* const x, double* const y) {
  const double squares = by.half_square == 0 ? 0 : dot(x, x, head.inputs); // NaN stays where it is
  for (std::int64_t o = 0; o < head.outputs; ++o) {
    double sum = by.bias.empty() ? 0 : by.bias[static_cast<std::size_t>(o)];
    if (by.weight.empty()) sum += x[o];
    for (std::int64_t i = 0; !by.weight.empty() && i < head.inputs; ++i)
      sum += x[i] * by.weight[static_cast<std::size_t>(i * head.outputs + o)];
    y[o] = by.scale * sum - by.half_square * squares;
  }
}

void divide(double* const values, const std::int64_t count, const double by) {
  for (std::int64_t i = 0; i < count; ++i) values[i] /= by;
}

double total(const double* const values, const std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

void apply_map(const DefinedHead& head, const double* const turn, const double* const y, double* const phi) {
  const std::int64_t m = head.outputs;
  for (std::int64_t o = 0; o < m; ++o) {
    switch (head.map) {
      case PointMap::plus_minus_exponential:
      case PointMap::plus_minus_softmax:
      case PointMap::joint_softmax: phi[m + o] = std::exp(-y[o]); [[fallthrough]];
      case PointMap::exponential:
      case PointMap::softmax: phi[o] = std::exp(y[o]); break;
      case PointMap::one_plus_elu: phi[o] = y[o] < 0 ? std::exp(y[o]) : 1 + y[o]; break;
      case PointMap::relu: phi[o] = y[o] < 0 ? 0 : y[o]; break;
      case PointMap::relu_token_weighted:
        phi[o] = (y[o] < 0 ? 0 : y[o]) * turn[0];
        phi[m + o] = (y[o] < 0 ? 0 : y[o]) * turn[1];
        break;
      case PointMap::unit:
      case PointMap::taylor: phi[o] = y[o]; break;
    }
  }
  if (head.map == PointMap::softmax || head.map == PointMap::plus_minus_softmax)
    divide(phi, m, total(phi, m));
  if (head.map == PointMap::plus_minus_softmax) divide(phi + m, m, total(phi + m, m));
  if (head.map == PointMap::joint_softmax) divide(phi, 2 * m, total(phi, 2 * m));
  if (head.map == PointMap::unit) divide(phi, m, std::max(std::sqrt(dot(y, y, m)), 1e-12));
}

// ∂L/∂y from ∂L/∂φ = by.
void through_map(const DefinedHead& head, const double* const turn, const double* const y,
                 const double* const phi, const double* const by, double* const result) {
  const std::int64_t m = head.outputs;
  const bool joint = head.map == PointMap::joint_softmax;
  const double sum = dot(by, phi, joint ? 2 * m : m);
  const bool two = cpu::has_two_halves(head.map);
  const double second_sum = joint ? sum : two ? dot(by + m, phi + m, m) : 0;
  const double length = std::sqrt(dot(y, y, m));
  for (std::int64_t o = 0; o < m; ++o) {
    switch (head.map) {
      case PointMap::plus_minus_exponential: result[o] = by[o] * phi[o] - by[m + o] * phi[m + o]; break;
      case PointMap::exponential: result[o] = by[o] * phi[o]; break;
      case PointMap::softmax: result[o] = phi[o] * (by[o] - sum); break;
      case PointMap::plus_minus_softmax:
      case PointMap::joint_softmax:
        result[o] = phi[o] * (by[o] - sum) - phi[m + o] * (by[m + o] - second_sum);
        break;
      case PointMap::one_plus_elu: result[o] = y[o] < 0 ? by[o] * phi[o] : by[o]; break;
      case PointMap::relu: result[o] = y[o] <= 0 ? 0 : by[o]; break;
      case PointMap::relu_token_weighted:
        result[o] = y[o] <= 0 ? 0 : by[o] * turn[0] + by[m + o] * turn[1];
        break;
      case PointMap::unit: result[o] = (by[o] - phi[o] * sum) / length; break;
      case PointMap::taylor: break;
    }
  }
}

// y and φ of all real tokens on one side.
struct Features {
  Features(const DefinedHead& head, const DefinedProjection& by, const std::vector<double>& x)
      : y(head.tokens, head.outputs), phi(head.tokens, feature_count(head)) {
    for (std::int64_t t = 0; t < head.tokens; ++t) {
      if (head.real[static_cast<std::size_t>(t)] == 0) continue;
      project(head, by, x.data() + t * head.inputs, y[t]);
      apply_map(head, head.token_weights.data() + 2 * t, y[t], phi[t]);
    }
  }
  std::vector<double> through(const DefinedHead& head, const Matrix& by) const {
    Matrix result(head.tokens, head.outputs);
    for (std::int64_t t = 0; t < head.tokens; ++t)
      if (head.real[static_cast<std::size_t>(t)] != 0)
        through_map(head, head.token_weights.data() + 2 * t, y[t], phi[t], by[t], result[t]);
    return result.values;
  }
  Matrix y, phi;
};

// Adds φ(k)ᵀ [v, 1] of a token, and with the gradients of numerator and denominator in the place of [v, 1]
// that of it.
void add_token(Matrix& sums, const double* const phi, const double* const row) {
  const auto features = static_cast<std::int64_t>(sums.values.size() / sums.columns);
  for (std::int64_t f = 0; f < features; ++f)
    for (std::size_t c = 0; c < sums.columns; ++c) sums[f][c] += phi[f] * row[c];
}

// Calls add(token), then use(token) for each real token: all are added before one is used or, causal, those
// up to it, from the first on or, backwards, from the last.
template <typename Add, typename Use>
void each_real_token(const DefinedHead& head, const bool backwards, const Add& add, const Use& use) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < head.tokens; ++t)
    if (head.real[static_cast<std::size_t>(t)] != 0) tokens.push_back(t);
  if (backwards) std::reverse(tokens.begin(), tokens.end());
  if (!head.causal) std::for_each(tokens.begin(), tokens.end(), add);
  for (const std::int64_t t : tokens) {
    if (head.causal) add(t);
    use(t);
  }
}

} // namespace

DefinedResult defined_linear(const DefinedHead& head) {
  const std::int64_t d = head.width, features = feature_count(head);
  const Features queries(head, head.query, head.q), keys(head, head.key, head.k);
  Matrix values(head.tokens, d + 1), by_ratio(head.tokens, d + 1);
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    if (head.real[static_cast<std::size_t>(t)] == 0) continue;
    std::copy_n(head.v.data() + t * d, d, values[t]);
    values[t][d] = 1;
  }
  Matrix of_keys(features, d + 1), out(head.tokens, d), by_query(head.tokens, features);
  DefinedResult result;
  const auto attend = [&](const std::int64_t t) {
    std::vector<double> ratio(static_cast<std::size_t>(d + 1), 0);
    for (std::int64_t f = 0; f < features; ++f)
      for (std::int64_t c = 0; c <= d; ++c)
        ratio[static_cast<std::size_t>(c)] += queries.phi[t][f] * of_keys[f][c];
    const double denominator = head.normalised ? ratio.back() : 1;
    if (denominator == 0) {
      ++result.zero_denominators;
      return;
    }
    for (std::int64_t c = 0; c < d; ++c) {
      out[t][c] = ratio[static_cast<std::size_t>(c)] / denominator;
      if (!head.g.empty()) by_ratio[t][c] = head.g[static_cast<std::size_t>(t * d + c)] / denominator;
    }
    if (head.normalised) by_ratio[t][d] = -dot(out[t], by_ratio[t], d);
    for (std::int64_t f = 0; !head.g.empty() && f < features; ++f)
      by_query[t][f] = dot(by_ratio[t], of_keys[f], d + 1);
  };
  each_real_token(
      head, false, [&](const std::int64_t t) { add_token(of_keys, keys.phi[t], values[t]); }, attend);
  result.out = out.values;
  if (head.g.empty()) return result;
  Matrix of_queries(features, d + 1), by_key(head.tokens, features), by_values(head.tokens, d);
  each_real_token(
      head, true, [&](const std::int64_t t) { add_token(of_queries, queries.phi[t], by_ratio[t]); },
      [&](const std::int64_t t) {
        for (std::int64_t f = 0; f < features; ++f) {
          by_key[t][f] = dot(values[t], of_queries[f], d + 1);
          for (std::int64_t c = 0; c < d; ++c) by_values[t][c] += keys.phi[t][f] * of_queries[f][c];
        }
      });
  result.grad_q = queries.through(head, by_query);
  result.grad_k = keys.through(head, by_key);
  result.grad_v = by_values.values;
  return result;
}

DefinedResult defined_hydra(const DefinedHead& head) {
  const std::int64_t width = head.width;
  Matrix q(head.tokens, width), k(head.tokens, width), out = q, by_q = q, by_k = q, by_v = q;
  std::vector<double> of_keys(static_cast<std::size_t>(width), 0), of_queries = of_keys;
  std::vector<double> q_length(static_cast<std::size_t>(head.tokens), 1), k_length = q_length;
  std::vector<double> by_unit(static_cast<std::size_t>(width));
  const auto unit = [&](const std::vector<double>& x, const std::int64_t t, double* const to) {
    const double length = std::sqrt(dot(x.data() + t * width, x.data() + t * width, width));
    for (std::int64_t f = 0; f < width; ++f) to[f] = x[static_cast<std::size_t>(t * width + f)] / length;
    return length;
  };
  const auto add = [&](std::vector<double>& to, const double* const rows, const std::vector<double>& by,
                       const std::int64_t t) {
    for (std::int64_t f = 0; f < width; ++f)
      to[static_cast<std::size_t>(f)] += rows[f] * by[static_cast<std::size_t>(t * width + f)];
  };
  const auto through_unit = [&](const double* const rows, const std::vector<double>& of,
                                const double* const x, const double length, double* const to) {
    for (std::int64_t f = 0; f < width; ++f)
      by_unit[static_cast<std::size_t>(f)] = rows[f] * of[static_cast<std::size_t>(f)];
    const double along = dot(by_unit.data(), x, width);
    for (std::int64_t f = 0; f < width; ++f)
      to[f] = (by_unit[static_cast<std::size_t>(f)] - x[f] * along) / length;
  };
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    if (head.real[static_cast<std::size_t>(t)] == 0) continue;
    q_length[static_cast<std::size_t>(t)] = unit(head.q, t, q[t]);
    k_length[static_cast<std::size_t>(t)] = unit(head.k, t, k[t]);
  }
  each_real_token(
      head, false, [&](const std::int64_t t) { add(of_keys, k[t], head.v, t); },
      [&](const std::int64_t t) {
        for (std::int64_t f = 0; f < width; ++f) out[t][f] = q[t][f] * of_keys[static_cast<std::size_t>(f)];
        through_unit(head.g.data() + t * width, of_keys, q[t], q_length[static_cast<std::size_t>(t)],
                     by_q[t]);
      });
  each_real_token(
      head, true, [&](const std::int64_t t) { add(of_queries, q[t], head.g, t); },
      [&](const std::int64_t t) {
        for (std::int64_t f = 0; f < width; ++f)
          by_v[t][f] = k[t][f] * of_queries[static_cast<std::size_t>(f)];
        through_unit(head.v.data() + t * width, of_queries, k[t], k_length[static_cast<std::size_t>(t)],
                     by_k[t]);
      });
  return {.out = out.values, .grad_q = by_q.values, .grad_k = by_k.values, .grad_v = by_v.values};
}

} // namespace hydrascope::testing_inputs
