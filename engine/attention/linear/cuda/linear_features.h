// φ of a tile of tokens, made by one block in shared memory (program.h).
#pragma once

#include <cmath>

#include "engine/attention/linear/cuda/linear_space.h"

namespace hydrascope::cuda {

// Rows of up to 32 tokens from `first` on; what is masked is not looked at.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void load(Block& block, const Read& read, const Tokens& tokens, const std::int64_t first,
                           const int width, float* const to) {
  block.each([&](const int thread) {
    for (int i = thread; i < tile_tokens * width; i += block_threads) {
      const std::int64_t token = first + i / width;
      to[i] = tokens.real(token) ? read(token, i % width) : 0.0f;
    }
  });
}

// out[t] = the items 0 … count−1 of token t combined.
template <typename Block, typename Item, typename Combine>
HYDRASCOPE_BLOCK void reduce(Block& block, const Tile& tile, const int count, const float nothing,
                             const Item& item, const Combine& combine, float* const out) {
  block.each([&](const int thread) {
    float gathered = nothing;
    for (int i = thread % threads_of_token; i < count; i += threads_of_token)
      gathered = combine(gathered, item(thread / threads_of_token, i));
    tile.parts[thread] = gathered;
  });
  block.each([&](const int thread) {
    if (thread >= tile_tokens) return;
    float gathered = nothing;
    for (int i = 0; i < threads_of_token; ++i)
      gathered = combine(gathered, tile.parts[thread * threads_of_token + i]);
    out[thread] = gathered;
  });
}

struct Larger {
  HYDRASCOPE_BOTH float operator()(const float a, const float b) const { return fmaxf(a, b); }
};
struct Sum {
  HYDRASCOPE_BOTH float operator()(const float a, const float b) const { return a + b; }
};

// φ, or log φ, of the tokens in tile.x, which are `first` and the next.
template <typename Block>
HYDRASCOPE_BLOCK void make_features(Block& block, const HeadMap& map, const std::int64_t first,
                                    const Tokens& tokens, const Tile& tile) {
  using cpu::PointMap;
  const int outputs = map.outputs, width = map.inputs;
  const float* const y = tile.y;
  block.each([&](const int thread) {
    for (int i = thread; i < tile_tokens * outputs; i += block_threads) {
      const float* const x = tile.x + i / outputs * width;
      const int o = i % outputs;
      float sum = map.bias == nullptr ? 0.0f : map.bias[o];
      if (map.weight == nullptr)
        sum += x[o];
      else
        for (int c = 0; c < width; ++c) sum += x[c] * map.weight[c * outputs + o];
      float squares = 0;
      if (map.half_square != 0)
        for (int c = 0; c < width; ++c) squares += x[c] * x[c];
      tile.y[i] = map.scale * sum - map.half_square * squares;
    }
  });
  // log Σ e^y, log Σ e^−y or both together; the norm.
  float* const plus = tile.token;
  float* const minus = tile.token + tile_tokens;
  float* const largest = tile.token + 2 * tile_tokens;
  const auto log_sum = [&](const float sign, float* const out) {
    reduce(
        block, tile, outputs, -INFINITY, [&](int t, int o) { return sign * y[t * outputs + o]; }, Larger(),
        largest);
    reduce(
        block, tile, outputs, 0.0f,
        [&](int t, int o) { return expf(sign * y[t * outputs + o] - largest[t]); }, Sum(), out);
    block.each([&](const int thread) {
      if (thread < tile_tokens) out[thread] = largest[thread] + logf(out[thread]);
    });
  };
  if (map.map == PointMap::softmax || map.map == PointMap::plus_minus_softmax ||
      map.map == PointMap::joint_softmax)
    log_sum(1, plus);
  if (map.map == PointMap::plus_minus_softmax || map.map == PointMap::joint_softmax) log_sum(-1, minus);
  if (map.map == PointMap::unit)
    reduce(
        block, tile, outputs, 0.0f, [&](int t, int o) { return y[t * outputs + o] * y[t * outputs + o]; },
        Sum(), plus);
  block.each([&](const int thread) {
    for (int i = thread; i < tile_tokens * outputs; i += block_threads) {
      const int t = i / outputs;
      const float value = y[i];
      float* const feature = tile.features + t * map.features + i % outputs;
      switch (map.map) {
        case PointMap::plus_minus_exponential:
          feature[0] = value;
          feature[outputs] = -value;
          break;
        case PointMap::exponential: feature[0] = value; break;
        case PointMap::softmax: feature[0] = value - plus[t]; break;
        case PointMap::plus_minus_softmax:
          feature[0] = value - plus[t];
          feature[outputs] = -value - minus[t];
          break;
        case PointMap::joint_softmax: {
          const float top = fmaxf(plus[t], minus[t]);
          const float both = top + logf(expf(plus[t] - top) + expf(minus[t] - top));
          feature[0] = value - both;
          feature[outputs] = -value - both;
          break;
        }
        case PointMap::one_plus_elu: feature[0] = value < 0 ? expf(value) : 1 + value; break;
        case PointMap::relu: feature[0] = fmaxf(value, 0.0f); break;
        case PointMap::unit: feature[0] = value / fmaxf(sqrtf(plus[t]), 1e-12f); break;
        case PointMap::relu_turned: {
          const std::int64_t token = first + t;
          const float* const turn = map.turns + 2 * (token < tokens.last ? token : 0);
          feature[0] = fmaxf(value, 0.0f) * turn[0];
          feature[outputs] = fmaxf(value, 0.0f) * turn[1];
          break;
        }
        case PointMap::taylor: break; // not taken
      }
    }
  });
}

} // namespace hydrascope::cuda
