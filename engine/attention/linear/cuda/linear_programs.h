// Fused linear attention as programs of one block of threads (program.h; linear.cu launches them): φ of 32
// tokens at a time is computed and consumed in shared memory.
//   1. exponential maps: the largest log φ(k) of each feature over a part of the tokens,
//   2. Σ φ(k) vᵀ and Σ φ(k) over a part of the tokens,
//   3. for each feature f the mean value S_f / z_f and its weight z_f,
//   4. out = Σ_f a_f · mean_f / Σ_f a_f with a_f = φ(q)_f z_f, divided by the token's largest: a convex
//      combination, so that half types neither over- nor underflow. (Without a normaliser out = Σ_f φ(q)_f
//      S_f.)
#pragma once

#include <cmath>

#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {

// x / denominator, 0 where the denominator is 0. NaN in either comes out.
HYDRASCOPE_BOTH inline float over(const float x, const float denominator) {
  return denominator == 0 ? 0.0f : x / denominator;
}

// 1. The largest log φ(k) of each feature over the real tokens, −∞ without any.
template <typename Block, typename Read>
HYDRASCOPE_BLOCK void largest_of_keys(Block& block, const HeadMap& map, const Read& key, const Tokens& tokens,
                                      const Tile& tile, float* const out) {
  typename Block::template Local<float> largest(-INFINITY);
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    load(block, key, tokens, first, map.inputs, map.inputs, tile.x);
    make_features(block, map, first, tokens, tile);
    block.each([&](const int thread) {
      if (thread >= map.features) return;
      for (int t = 0; t < tile_tokens; ++t)
        if (tokens.real(first + t))
          largest[thread] = larger(largest[thread], tile.features[t * map.features + thread]);
    });
  }
  block.each([&](const int thread) {
    if (thread < map.features) out[thread] = largest[thread];
  });
}

// 2. Σ φ(k) vᵀ, by `product`, and Σ φ(k); of logarithmic maps divided by e^largest.
template <typename Block, typename ReadKey, typename ReadValue, typename Product>
HYDRASCOPE_BLOCK void sums_of_keys(Block& block, const HeadMap& map, const ReadKey& key,
                                   const ReadValue& value, const Tokens& tokens, const Tile& tile,
                                   const float* const largest, Product& product, float* const values,
                                   float* const totals) {
  typename Block::template Local<float> sum(0.0f);
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    load(block, key, tokens, first, map.inputs, map.inputs, tile.x);
    load(block, value, tokens, first, map.width, padded(map.width), tile.value);
    make_features(block, map, first, tokens, tile);
    block.each([&](const int thread) {
      if (thread >= map.features) return;
      for (int t = 0; t < tile_tokens; ++t) {
        float& feature = tile.features[t * map.features + thread];
        if (!tokens.real(first + t))
          feature = 0;
        else if (map.logarithmic())
          feature = expf(feature - largest[thread]);
        sum[thread] += feature;
      }
    });
    product.add(block, map, tile);
  }
  product.write(block, map, values);
  block.each([&](const int thread) {
    if (thread < map.features) totals[thread] = sum[thread];
  });
}

// 3. Merges the parts. First the largest: 0 without keys.
template <typename Block>
HYDRASCOPE_BLOCK void merge_largest(Block& block, const HeadMap& map, const HeadSpace& space,
                                    const int parts) {
  const int stride = padded(map.features);
  block.each([&](const int f) {
    if (f >= map.features) return;
    float largest = -INFINITY;
    for (int part = 0; part < parts; ++part) largest = larger(largest, space.part_largest[part * stride + f]);
    space.largest[f] = largest == -INFINITY ? 0.0f : largest;
  });
}
// Then the sums, in a fixed order, so that results are reproducible to the bit. Calls store(index, mean) for
// a copy.
template <typename Block, typename Store>
HYDRASCOPE_BLOCK void merge_sums(Block& block, const HeadMap& map, const HeadSpace& space, const int parts,
                                 const bool normalised, const Store& store) {
  const int features = padded(map.features), width = padded(map.width);
  block.each([&](const int f) {
    if (f >= map.features) return;
    float sum = 0;
    for (int part = 0; part < parts; ++part) sum += space.part_totals[part * features + f];
    space.part_totals[f] = sum; // replaces the first part's, which only this thread reads
    space.weights[f] = map.logarithmic() ? space.largest[f] + logf(sum) : sum;
  });
  block.each([&](const int thread) {
    each_entry(thread, features, width, [&](const int f, const int c) {
      const int i = f * width + c;
      float mean = 0;
      if (f < map.features && c < map.width) {
        for (int part = 0; part < parts; ++part) mean += space.part_values[part * features * width + i];
        if (normalised) mean = over(mean, space.part_totals[f]);
      }
      space.means[i] = mean;
      store(i, mean);
    });
  });
}

// Replaces φ(q) or its logarithm by a of step 4: the features times z, divided by the token's largest. The
// largest becomes the tile's third number of a token, Σ a the fourth.
template <typename Block>
HYDRASCOPE_BLOCK void weigh_queries(Block& block, const HeadMap& map, const Tile& tile,
                                    const HeadSpace& space) {
  float* const largest = tile.token + 2 * tile_tokens;
  float* const total = tile.token + 3 * tile_tokens;
  const int features = map.features;
  const bool logarithmic = map.logarithmic();
  reduce(
      block, tile, features, -INFINITY,
      [&](const int t, const int f) {
        float& feature = tile.features[t * features + f];
        feature = logarithmic ? feature + space.weights[f] : feature * space.weights[f];
        return feature;
      },
      Larger(), largest);
  reduce(
      block, tile, features, 0.0f,
      [&](const int t, const int f) {
        float& feature = tile.features[t * features + f];
        if (logarithmic)
          feature = largest[t] == -INFINITY ? 0.0f : expf(feature - largest[t]);
        else
          feature = over(feature, largest[t]);
        return feature;
      },
      Sum(), total);
}

// 4. The output of up to 32 tokens from `first` on, written by `write`; calls count() for each real token
// whose denominator is 0.
template <typename Block, typename Read, typename Product, typename Write, typename Count>
HYDRASCOPE_BLOCK void output_of_queries(Block& block, const HeadMap& map, const Read& query,
                                        const Tokens& tokens, const std::int64_t first, const Tile& tile,
                                        const HeadSpace& space, const bool normalised, Product& product,
                                        const Write& write, const Count& count) {
  load(block, query, tokens, first, map.inputs, map.inputs, tile.x);
  make_features(block, map, first, tokens, tile);
  const float* const total = tile.token + 3 * tile_tokens;
  if (normalised) {
    weigh_queries(block, map, tile, space);
    block.each([&](const int thread) {
      if (thread < tile_tokens && tokens.real(first + thread) && total[thread] == 0) count();
    });
  }
  product.multiply(block, map, tile, space);
  write_rows(block, write, tokens, first, map.width, padded(map.width), tile.value,
             [&](const int t, const float value) { return normalised ? over(value, total[t]) : value; });
}

// Products in float32, a small square of results per thread: features f ≡ thread / 16 and neighbouring
// columns.
template <typename Block, int feature_rows, int columns>
struct PlainKeys {
  struct Results {
    float at[feature_rows][columns];
  };
  typename Block::template Local<Results> results{Results{}};

  HYDRASCOPE_BLOCK void add(Block& block, const HeadMap& map, const Tile& tile) {
    block.each([&](const int thread) {
      Results& own = results[thread];
      const int width = padded(map.width), c = thread % lanes * columns;
      if (c >= width) return;
      for (int t = 0; t < tile_tokens; ++t) {
        float value[columns];
        get_floats(tile.value + t * width + c, value);
        HYDRASCOPE_UNROLL
        for (int i = 0; i < feature_rows; ++i) {
          const int f = thread / lanes + lanes * i;
          const float feature = f < map.features ? tile.features[t * map.features + f] : 0.0f;
          HYDRASCOPE_UNROLL
          for (int j = 0; j < columns; ++j) own.at[i][j] += feature * value[j];
        }
      }
    });
  }

  HYDRASCOPE_BLOCK void write(Block& block, const HeadMap& map, float* const to) {
    block.each([&](const int thread) {
      const int width = padded(map.width), c = thread % lanes * columns;
      HYDRASCOPE_UNROLL
      for (int i = 0; i < feature_rows; ++i) {
        const int f = thread / lanes + lanes * i;
        if (f < map.features && c < width) put_floats(results[thread].at[i], to + f * width + c);
      }
    });
  }
};

// tile.value (32, d padded) = features · means.
template <typename Block>
struct PlainOutput {
  HYDRASCOPE_BLOCK void multiply(Block& block, const HeadMap& map, const Tile& tile, const HeadSpace& space) {
    const int width = padded(map.width);
    block.each([&](const int thread) {
      const int t = thread / threads_of_token;
      for (int c = thread % threads_of_token * columns_of_thread; c < width;
           c += threads_of_token * columns_of_thread) {
        float sum[columns_of_thread] = {};
        for (int f = 0; f < map.features; ++f)
          add_multiple(sum, tile.features[t * map.features + f], space.means + f * width + c);
        put_floats(sum, tile.value + t * width + c);
      }
    });
  }
};

} // namespace hydrascope::cuda
