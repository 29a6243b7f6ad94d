// The gradients of fused linear attention as programs of one block of threads, like linear_programs.h.
//
// Normalised attention is out_i = Σ_f p_if mean_f with mean_f = Σ_j s_jf v_j, where p_if = a_if / Σ_f a_if is
// the share of feature f in query i and s_jf = φ(k)_jf / z_f the share of key j in feature f. With
// g = ∂L/∂out:
//   5. over queries, after 1. to 3. of the forward pass,
//        ∂L/∂log φ(q)_if = p_if (mean_f · g_i − out_i · g_i),
//        A_f = Σ_i p_if g_i,  B_f = −Σ_i p_if (out_i · g_i);
//   6. over keys, A and B stored in place of the means and of the largest,
//        ∂L/∂log φ(k)_jf = s_jf (A_f · v_j + B_f),  ∂L/∂v_j = Σ_f s_jf A_f.
// Where φ may be 0, the gradient with respect to φ itself is computed, with z_f / Σ_f φ(q)_if z_f for p_if
// and 1 / z_f for s_jf. Without a normaliser p = φ(q), s = φ(k) and B = 0.
#pragma once

#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {

// Replaces y by ∂L/∂y, for the tokens whose y and φ make_features() left in the tile, from tile.gradient, the
// gradient with respect to φ or log φ.
template <typename Block>
HYDRASCOPE_BLOCK void through_map(Block& block, const HeadMap& map, const std::int64_t first,
                                  const Tokens& tokens, const Tile& tile) {
  using cpu::PointMap;
  const int outputs = map.outputs, features = map.features, stride = padded(features);
  float* const norm = tile.token; // of `unit` only: as make_features() left it
  float* const sum = tile.token + 2 * tile_tokens;
  float* const minus_sum = tile.token + 3 * tile_tokens;
  const auto gradient = [&](const int t, const int f) { return tile.gradient[t * stride + f]; };
  const bool two_sums = map.map == PointMap::plus_minus_softmax;
  if (map.map == PointMap::softmax || map.map == PointMap::joint_softmax || two_sums)
    reduce(block, tile, two_sums ? outputs : features, 0.0f, gradient, Sum(), sum);
  if (two_sums)
    reduce(
        block, tile, outputs, 0.0f, [&](int t, int o) { return gradient(t, outputs + o); }, Sum(), minus_sum);
  if (map.map == PointMap::unit)
    reduce(
        block, tile, outputs, 0.0f,
        [&](int t, int o) { return gradient(t, o) * tile.features[t * features + o]; }, Sum(), sum);
  block.each([&](const int thread) {
    each_entry(thread, tile_tokens, outputs, [&](const int t, const int o) {
      float& entry = tile.y[t * outputs + o];
      const float y = entry;
      const float* const feature = tile.features + t * features + o;
      const float own = gradient(t, o), other = features > outputs ? gradient(t, outputs + o) : 0.0f;
      float result = 0;
      switch (map.map) {
        case PointMap::plus_minus_exponential: result = own - other; break;
        case PointMap::exponential: result = own; break;
        case PointMap::softmax: result = own - expf(feature[0]) * sum[t]; break;
        case PointMap::plus_minus_softmax:
          result = own - expf(feature[0]) * sum[t] - (other - expf(feature[outputs]) * minus_sum[t]);
          break;
        case PointMap::joint_softmax:
          result = own - other - (expf(feature[0]) - expf(feature[outputs])) * sum[t];
          break;
        case PointMap::one_plus_elu: result = y < 0 ? own * feature[0] : own; break;
        case PointMap::relu: result = y <= 0 ? 0.0f : own; break;
        case PointMap::unit: {
          const float length = sqrtf(norm[t]);
          result = length <= 1e-12f ? own * 1e12f : (own - feature[0] * sum[t]) / length;
          break;
        }
        case PointMap::relu_token_weighted: {
          const std::int64_t token = first + t;
          const float* const turn = map.token_weights + 2 * (token < tokens.last ? token : 0);
          result = y <= 0 ? 0.0f : own * turn[0] + other * turn[1];
          break;
        }
        case PointMap::taylor: break; // not taken
      }
      entry = result;
    });
  });
}

// Writes ∂L/∂y of up to 32 tokens from `first` on, 0 of masked tokens. Recomputes φ, which has been
// overwritten. Does not synchronise.
template <typename Block, typename Read, typename Write>
HYDRASCOPE_BLOCK void write_gradient(Block& block, const HeadMap& map, const Read& read, const Tokens& tokens,
                                     const std::int64_t first, const Tile& tile, const Write& write) {
  load(block, read, tokens, first, map.inputs, map.inputs, tile.x);
  make_features(block, map, first, tokens, tile);
  through_map(block, map, first, tokens, tile);
  write_rows(block, write, tokens, first, map.outputs, map.outputs, tile.y,
             [](int, const float gradient) { return gradient; });
}

// 5. The queries of a part of the tokens: ∂L/∂y by `write`; A by `product` to `values`, C of
// merge_gradients() to `totals`.
template <typename Block, typename ReadQuery, typename ReadGradient, typename Keys, typename Means,
          typename Write>
HYDRASCOPE_BLOCK void gradient_of_queries(Block& block, const HeadMap& map, const ReadQuery& query,
                                          const ReadGradient& g, const Tokens& tokens, const Tile& tile,
                                          const HeadSpace& space, const bool normalised, Keys& product,
                                          Means& by_means, const Write& write, float* const values,
                                          float* const totals) {
  const int features = map.features, stride = padded(features);
  float* const dot = tile.token; // out · g
  const float* const largest = tile.token + 2 * tile_tokens;
  const float* const total = tile.token + 3 * tile_tokens;
  typename Block::template Local<float> offset(0.0f);
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    load(block, query, tokens, first, map.inputs, map.inputs, tile.x);
    load(block, g, tokens, first, map.width, padded(map.width), tile.value);
    make_features(block, map, first, tokens, tile);
    if (normalised) weigh_queries(block, map, tile, space);
    block.each([&](const int thread) {
      each_entry(thread, tile_tokens, features, [&](const int t, const int f) {
        float& p = tile.features[t * features + f];
        if (!tokens.real(first + t))
          p = 0;
        else if (normalised)
          p = over(p, total[t]);
      });
    });
    product.add(block, map, tile);
    by_means.multiply(block, map, tile, space);
    if (normalised) {
      reduce(
          block, tile, features, 0.0f,
          [&](int t, int f) { return tile.features[t * features + f] * tile.gradient[t * stride + f]; },
          Sum(), dot);
      block.each([&](const int f) {
        if (f >= features) return;
        for (int t = 0; t < tile_tokens; ++t) {
          const float p = tile.features[t * features + f];
          offset[f] += p * (tile.gradient[t * stride + f] - dot[t]);
          float share = p; // by the logarithm
          if (!map.logarithmic()) share = over(space.weights[f], total[t] * largest[t]);
          tile.gradient[t * stride + f] = share * (tile.gradient[t * stride + f] - dot[t]);
        }
      });
    }
    write_gradient(block, map, query, tokens, first, tile, write);
  }
  product.write(block, map, values);
  block.each([&](const int f) {
    if (f < features) totals[f] = offset[f];
  });
}

// Merges the parts in a fixed order: A in place of the means, B of the largest. store(index, A) stores a copy
// for the products and returns it as they will read it.
//
// A_f · v_j and B_f cancel where the values of the keys are alike, and what a half type has rounded off A
// would remain. The parts therefore sum C_f = Σ_i p_if (mean_f − out_i) · g_i, and B_f = C_f − A_f · mean_f
// with A as it is read: 6. computes C_f + A_f · (v_j − mean_f).
template <typename Block, typename Store>
HYDRASCOPE_BLOCK void merge_gradients(Block& block, const HeadMap& map, const HeadSpace& space,
                                      const int parts, const Store& store) {
  const int features = padded(map.features), width = padded(map.width);
  block.each([&](const int thread) {
    each_entry(thread, features, width, [&](const int f, const int c) {
      const int i = f * width + c;
      float sum = 0;
      if (f < map.features && c < map.width)
        for (int part = 0; part < parts; ++part) sum += space.part_values[part * features * width + i];
      space.part_values[i] = store(i, sum); // replaces the first part's, which only this thread reads
    });
  });
  block.each([&](const int f) {
    if (f >= map.features) return;
    float sum = 0;
    for (int part = 0; part < parts; ++part) sum += space.part_totals[part * features + f];
    for (int c = 0; c < map.width; ++c) sum -= space.part_values[f * width + c] * space.means[f * width + c];
    space.largest[f] = sum;
  });
  block.each([&](const int thread) {
    for (int i = thread; i < features * width; i += block_threads) space.means[i] = space.part_values[i];
  });
}

// 6. Up to 32 keys from `first` on: ∂L/∂y by write_key, ∂L/∂v by write_value.
template <typename Block, typename ReadKey, typename ReadValue, typename Output, typename Means,
          typename WriteKey, typename WriteValue>
HYDRASCOPE_BLOCK void gradient_of_keys(Block& block, const HeadMap& map, const ReadKey& key,
                                       const ReadValue& value, const Tokens& tokens, const std::int64_t first,
                                       const Tile& tile, const HeadSpace& space, const bool normalised,
                                       Output& product, Means& by_means, const WriteKey& write_key,
                                       const WriteValue& write_value) {
  const int features = map.features, stride = padded(features);
  load(block, key, tokens, first, map.inputs, map.inputs, tile.x);
  load(block, value, tokens, first, map.width, padded(map.width), tile.value);
  make_features(block, map, first, tokens, tile);
  block.each([&](const int thread) {
    each_entry(thread, tile_tokens, features, [&](const int t, const int f) {
      float& s = tile.features[t * features + f];
      if (!tokens.real(first + t))
        s = 0;
      else if (normalised)
        s = map.logarithmic() ? expf(s - space.weights[f]) : over(s, space.weights[f]);
    });
  });
  by_means.multiply(block, map, tile, space);
  block.each([&](const int thread) {
    if (!normalised) return;
    each_entry(thread, tile_tokens, features, [&](const int t, const int f) {
      float& gradient = tile.gradient[t * stride + f];
      gradient += space.largest[f]; // B
      gradient =
          map.logarithmic() ? gradient * tile.features[t * features + f] : over(gradient, space.weights[f]);
    });
  });
  product.multiply(block, map, tile, space);
  write_rows(block, write_value, tokens, first, map.width, padded(map.width), tile.value,
             [](int, const float sum) { return sum; });
  write_gradient(block, map, key, tokens, first, tile, write_key);
}

// tile.gradient (32, F padded) = value · meansᵀ.
template <typename Block>
struct PlainMeans {
  HYDRASCOPE_BLOCK void multiply(Block& block, const HeadMap& map, const Tile& tile, const HeadSpace& space) {
    block.each([&](const int thread) {
      constexpr int rows = tile_tokens * lanes / block_threads;
      const int width = padded(map.width);
      for (int f = thread % lanes; f < map.features; f += lanes) {
        float sum[rows] = {};
        for (int c = 0; c < width; c += 4) {
          float mean[4];
          get_floats(space.means + f * width + c, mean);
          HYDRASCOPE_UNROLL
          for (int i = 0; i < rows; ++i)
            sum[i] += dot_of_four(tile.value + (thread / lanes + lanes * i) * width + c, mean);
        }
        HYDRASCOPE_UNROLL
        for (int i = 0; i < rows; ++i)
          tile.gradient[(thread / lanes + lanes * i) * padded(map.features) + f] = sum[i];
      }
    });
  }
};

} // namespace hydrascope::cuda
