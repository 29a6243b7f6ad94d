// Causal linear attention as programs of one block of threads, like linear_programs.h:
// out_t = φ(q_t)·S_t / φ(q_t)·z_t, S_t = Σ_{s≤t} φ(k_s) v_sᵀ, z_t = Σ_{s≤t} φ(k_s).
//   1. the sums over each part of the tokens, exponential maps divided by the largest so far,
//   2. in their place those over all parts before, added in a fixed order,
//   3. each part 32 tokens at a time: their queries with the sums before them and with the keys among
//      themselves, then their keys added to the sums.
// A later key may be any number of times larger than those a query attends to. Exponential maps are therefore
// divided by the largest log φ(q)_f + log φ(k)_f that the query itself attends to, and products of tokens of
// one tile are exponentiated one by one. All of it is float32.
#pragma once

#include <cmath>

#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {

// Two sums, each divided by e^its largest, are first and second times themselves over e^largest.
struct JoinedScales {
  float largest, first, second;
};
HYDRASCOPE_BOTH inline float finite_scale(const float largest) {
  return largest == -INFINITY ? 0.0f : largest;
}
HYDRASCOPE_BOTH inline JoinedScales joined_scales(const HeadMap& map, const float first, const float second) {
  if (!map.logarithmic()) return {0, 1, 1};
  const float largest = larger(first, second), scale = finite_scale(largest);
  return {largest, expf(first - scale), expf(second - scale)};
}

// Sums of the parts, (parts, F, d) and (parts, F) twice, or of one.
struct RunningSums {
  float* values; // rows padded
  float* totals;
  float* largest; // −∞ before the first token

  HYDRASCOPE_BOTH RunningSums of_part(const HeadMap& map, const int part) const {
    const int features = padded(map.features);
    return {values + static_cast<std::int64_t>(part) * features * padded(map.width), totals + part * features,
            largest + part * features};
  }
};
HYDRASCOPE_BOTH inline RunningSums sums_of_keys(const HeadSpace& space) {
  return {space.part_values, space.part_totals, space.part_largest};
}

// 2. The values: a thread for each entry of a head's, of the index-th block. Backwards, the parts after one
// are those before it.
template <typename Block>
HYDRASCOPE_BLOCK void values_before_parts(Block& block, const HeadMap& map, const RunningSums& sums,
                                          const int parts, const bool backwards, const int index) {
  block.alone([&](const int thread) {
    const int features = padded(map.features), width = padded(map.width);
    const int entry = index * block_threads + thread, f = entry / width;
    if (f >= map.features || entry % width >= map.width) return;
    float before = 0, largest = -INFINITY;
    for (int step = 0; step < parts; ++step) {
      const int part = backwards ? parts - 1 - step : step;
      float& values = sums.values[static_cast<std::int64_t>(part) * features * width + entry];
      const JoinedScales scales = joined_scales(map, largest, sums.largest[part * features + f]);
      const float sum = before * scales.first + values * scales.second;
      values = before;
      before = sum;
      largest = scales.largest;
    }
  });
}
// Then totals and largest, which the values need until then.
template <typename Block>
HYDRASCOPE_BLOCK void totals_before_parts(Block& block, const HeadMap& map, const RunningSums& sums,
                                          const int parts, const bool backwards) {
  block.alone([&](const int f) {
    if (f >= map.features) return;
    float before = 0, largest = -INFINITY;
    for (int step = 0; step < parts; ++step) {
      const int index = (backwards ? parts - 1 - step : step) * padded(map.features) + f;
      const JoinedScales scales = joined_scales(map, largest, sums.largest[index]);
      const float sum = before * scales.first + sums.totals[index] * scales.second;
      sums.totals[index] = before;
      sums.largest[index] = largest;
      before = sum;
      largest = scales.largest;
    }
  });
}

// φ of a tile's keys, feature by feature.
HYDRASCOPE_BOTH inline float& key_at(const Tile& tile, const int f, const int s) {
  return tile.keys[f * key_stride + s];
}
// φ(q_t)·φ(k_s) of a tile's tokens, in place of x and y.
HYDRASCOPE_BOTH inline float& product_at(const Tile& tile, const int t, const int s) {
  return tile.x[t * tile_tokens + s];
}

// φ(k) or log φ(k) of up to 32 tokens from `first` on, as share(φ, token) makes it, 0 or −∞ of masked ones,
// and their values. Other threads see φ(k) after the next barrier.
template <typename Block, typename ReadKey, typename ReadValue, typename Share>
HYDRASCOPE_BLOCK void load_keys(Block& block, const HeadMap& map, const ReadKey& key, const ReadValue& value,
                                const Tokens& tokens, const std::int64_t first, const Tile& tile,
                                const Share& share) {
  load(block, key, tokens, first, map.inputs, map.inputs, tile.x);
  load(block, value, tokens, first, map.width, padded(map.width), tile.value);
  make_features(block, map, first, tokens, tile);
  block.alone([&](const int thread) {
    const float absent = map.logarithmic() ? -INFINITY : 0.0f;
    each_entry(thread, tile_tokens, map.features, [&](const int s, const int f) {
      key_at(tile, f, s) =
          tokens.real(first + s) ? share(tile.features[s * map.features + f], first + s) : absent;
    });
  });
}

// Whether token t of a tile attends to s or, backwards, s to t.
HYDRASCOPE_BOTH inline bool is_seen(const int t, const int s, const bool backwards) {
  return backwards ? s >= t : s <= t;
}

// Each token's products with the keys of the tile that it attends to: combine(gathered, φ(q)_f, φ(k)_f,
// of_token(t)) over the features; `nothing` with later keys or, backwards, with earlier ones. The lanes of a
// warp have the keys of a token.
template <typename Block, typename OfToken, typename Combine>
HYDRASCOPE_BLOCK void each_product(Block& block, const HeadMap& map, const Tile& tile, const bool backwards,
                                   const float nothing, const OfToken& of_token, const Combine& combine) {
  block.each([&](const int thread) {
    constexpr int rows = tile_tokens * tile_tokens / block_threads;
    const int s = thread % tile_tokens, first_row = thread / tile_tokens;
    float gathered[rows], number[rows];
    HYDRASCOPE_UNROLL
    for (int i = 0; i < rows; ++i) {
      gathered[i] = nothing;
      number[i] = of_token(first_row + i * (tile_tokens / rows));
    }
    for (int f = 0; f < map.features; ++f) {
      const float key = key_at(tile, f, s);
      HYDRASCOPE_UNROLL
      for (int i = 0; i < rows; ++i) {
        const int t = first_row + i * (tile_tokens / rows);
        gathered[i] = combine(gathered[i], tile.features[t * map.features + f], key, number[i]);
      }
    }
    HYDRASCOPE_UNROLL
    for (int i = 0; i < rows; ++i) {
      const int t = first_row + i * (tile_tokens / rows);
      product_at(tile, t, s) = is_seen(t, s, backwards) ? gathered[i] : nothing;
    }
  });
}

HYDRASCOPE_BOTH inline float scale_of(const Tile& tile, const int t) {
  return finite_scale(larger(tile.token[t], tile.token[tile_tokens + t]));
}
HYDRASCOPE_BOTH inline float denominator_of(const Tile& tile, const int t) {
  return tile.token[2 * tile_tokens + t] + tile.token[3 * tile_tokens + t];
}

// Replaces φ(q) of the tile or its logarithm by the factors of the sums before the tile, and makes the
// products with its own keys, both of exponential maps divided by e^scale_of() the token. The tile's third
// number of a token becomes the first part of the denominator, the fourth the second.
template <typename Block>
HYDRASCOPE_BLOCK void weigh_causally(Block& block, const HeadMap& map, const Tile& tile,
                                     const RunningSums& before) {
  const int features = map.features;
  const bool logarithmic = map.logarithmic();
  if (logarithmic) {
    each_product(
        block, map, tile, false, -INFINITY, [](int) { return 0.0f; },
        [](const float most, const float q, const float k, float) { return larger(most, q + k); });
    reduce(
        block, tile, tile_tokens, -INFINITY, [&](const int t, const int s) { return product_at(tile, t, s); },
        Larger(), tile.token + tile_tokens);
    reduce(
        block, tile, features, -INFINITY,
        [&](const int t, const int f) { return tile.features[t * features + f] + before.largest[f]; },
        Larger(), tile.token);
  }
  each_product(
      block, map, tile, false, 0.0f, [&](const int t) { return logarithmic ? scale_of(tile, t) : 0.0f; },
      [&](const float sum, const float q, const float k, const float scale) {
        return sum + (logarithmic ? exponential(q + k - scale) : q * k);
      });
  reduce(
      block, tile, features, 0.0f,
      [&](const int t, const int f) {
        float& feature = tile.features[t * features + f];
        if (logarithmic) feature = expf(feature + before.largest[f] - scale_of(tile, t));
        return feature * before.totals[f];
      },
      Sum(), tile.token + 2 * tile_tokens);
  reduce(
      block, tile, tile_tokens, 0.0f, [&](const int t, const int s) { return product_at(tile, t, s); }, Sum(),
      tile.token + 3 * tile_tokens);
}

// Adds the tile's keys to the sums: scales and totals, of which weight(s) is each key's weight, then values,
// four features and four columns at a time.
template <typename Block, typename Weight>
HYDRASCOPE_BLOCK void add_keys(Block& block, const HeadMap& map, const Tile& tile, const RunningSums& sums,
                               const Weight& weight) {
  float* const factors = tile.parts;
  block.each([&](const int f) {
    if (f >= map.features) return;
    float most = -INFINITY;
    for (int s = 0; s < tile_tokens; ++s) most = larger(most, key_at(tile, f, s));
    const JoinedScales scales = joined_scales(map, sums.largest[f], most);
    float total = sums.totals[f] * scales.first;
    for (int s = 0; s < tile_tokens; ++s) {
      float& key = key_at(tile, f, s);
      if (map.logarithmic()) key = expf(key - finite_scale(scales.largest));
      total += key * weight(s);
    }
    factors[f] = scales.first;
    sums.totals[f] = total;
    sums.largest[f] = scales.largest;
  });
  block.each([&](const int thread) {
    constexpr int side = 4;
    const int width = padded(map.width);
    for (int f0 = thread / lanes; f0 < map.features; f0 += side * lanes)
      for (int c = thread % lanes * side; c < width; c += side * lanes) {
        float added[side][side] = {};
        const float* keys[side]; // beyond the last feature, the last
        HYDRASCOPE_UNROLL
        for (int i = 0; i < side; ++i) {
          const int f = f0 + i * lanes;
          keys[i] = &key_at(tile, f < map.features ? f : map.features - 1, 0);
        }
        for (int s = 0; s < tile_tokens; ++s) {
          float value[side];
          get_floats(tile.value + s * width + c, value);
          HYDRASCOPE_UNROLL
          for (int i = 0; i < side; ++i) {
            HYDRASCOPE_UNROLL
            for (int j = 0; j < side; ++j) added[i][j] += keys[i][s] * value[j];
          }
        }
        HYDRASCOPE_UNROLL
        for (int i = 0; i < side; ++i) {
          const int f = f0 + i * lanes;
          if (f >= map.features) continue;
          float* const of_feature = sums.values + f * width + c;
          float value[side];
          get_floats(of_feature, value);
          HYDRASCOPE_UNROLL
          for (int j = 0; j < side; ++j) value[j] = value[j] * factors[f] + added[i][j];
          put_floats(value, of_feature);
        }
      }
  });
}

template <typename Block>
HYDRASCOPE_BLOCK void clear_sums(Block& block, const HeadMap& map, const RunningSums& sums) {
  block.each([&](const int thread) {
    for (int i = thread; i < map.features * padded(map.width); i += block_threads) sums.values[i] = 0;
    if (thread >= map.features) return;
    sums.totals[thread] = 0;
    sums.largest[thread] = -INFINITY;
  });
}

// 1. The sums over a part of the tokens, with share() of load_keys() and the weight of each token.
template <typename Block, typename ReadKey, typename ReadValue, typename Share, typename Weight>
HYDRASCOPE_BLOCK void sums_over_part(Block& block, const HeadMap& map, const ReadKey& key,
                                     const ReadValue& value, const Tokens& tokens, const Tile& tile,
                                     const RunningSums& sums, const Share& share, const Weight& weight) {
  clear_sums(block, map, sums);
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    load_keys(block, map, key, value, tokens, first, tile, share);
    block.each([](int) {});
    add_keys(block, map, tile, sums,
             [&](const int s) { return tokens.real(first + s) ? weight(first + s) : 0.0f; });
  }
}
// As they are.
struct OwnFeature {
  HYDRASCOPE_BOTH float operator()(const float phi, std::int64_t) const { return phi; }
};
struct EqualWeights {
  HYDRASCOPE_BOTH float operator()(std::int64_t) const { return 1.0f; }
};

// Calls write(token, c, values) with entries c to c + 7 of Σ_f φ(q)_f S_f + Σ_s product(t, s) v_s over what a
// token of the tile attends to or, backwards, what attends to it, divided by denominator(t). Entries from d
// on are 0. Does not synchronise.
template <typename Block, typename Denominator, typename Write>
HYDRASCOPE_BLOCK void write_causally(Block& block, const HeadMap& map, const Tokens& tokens,
                                     const std::int64_t first, const Tile& tile, const RunningSums& before,
                                     const bool backwards, const Denominator& denominator,
                                     const Write& write) {
  block.alone([&](const int thread) {
    const int t = thread / threads_of_token, width = padded(map.width);
    if (first + t >= tokens.last) return;
    for (int c = thread % threads_of_token * columns_of_thread; c < map.width;
         c += threads_of_token * columns_of_thread) {
      float sum[columns_of_thread] = {};
      for (int f = 0; f < map.features; ++f)
        add_multiple(sum, tile.features[t * map.features + f], before.values + f * width + c);
      // What a value that is not attended to holds must not reach this token, NaN neither.
      for (int s = backwards ? t : 0; s < (backwards ? tile_tokens : t + 1); ++s)
        add_multiple(sum, product_at(tile, t, s), tile.value + s * width + c);
      const float total = denominator(t);
      HYDRASCOPE_UNROLL
      for (float& one : sum) one = tokens.real(first + t) ? over(one, total) : 0.0f;
      write(first + t, c, sum);
    }
  });
}

// 3. The output of a part of the tokens, whose sums are those over all parts before and are added to: calls
// write() as write_causally() does, and before that, of each tile, weighed(first), which reads what
// weigh_causally() has left; then written(first).
template <typename Block, typename ReadQuery, typename ReadKey, typename ReadValue, typename Weighed,
          typename Write, typename Written>
HYDRASCOPE_BLOCK void causal_output(Block& block, const HeadMap& query_map, const HeadMap& key_map,
                                    const ReadQuery& query, const ReadKey& key, const ReadValue& value,
                                    const Tokens& tokens, const Tile& tile, const RunningSums& sums,
                                    const bool normalised, const Weighed& weighed, const Write& write,
                                    const Written& written) {
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    load_keys(block, key_map, key, value, tokens, first, tile, OwnFeature());
    load(block, query, tokens, first, query_map.inputs, query_map.inputs, tile.x);
    make_features(block, query_map, first, tokens, tile);
    weigh_causally(block, query_map, tile, sums);
    weighed(first);
    write_causally(
        block, query_map, tokens, first, tile, sums, false,
        [&](const int t) { return normalised ? denominator_of(tile, t) : 1.0f; }, write);
    written(first);
    if (first + tile_tokens < tokens.last) add_keys(block, key_map, tile, sums, EqualWeights());
  }
}

} // namespace hydrascope::cuda
