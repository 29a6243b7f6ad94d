// The gradients of causal linear attention as programs of one block of threads, of the pieces of
// linear_causal_programs.h and linear_gradient_programs.h. With g = ∂L/∂out, D_t = φ(q_t)·z_t, the shares
// a_ft = φ(q_t)_f / D_t, and e_ts = g_t·v_s − out_t·g_t:
//   ∂L/∂log φ(q_t)_f = a_ft Σ_{s≤t} φ(k_s)_f e_ts,
//   ∂L/∂log φ(k_s)_f = φ(k_s)_f Σ_{t≥s} a_ft e_ts,
//   ∂L/∂v_s = Σ_f φ(k_s)_f Σ_{t≥s} a_ft g_t.
// (Where φ may be 0, by φ itself. Without a normaliser D = 1 and e_ts = g_t·v_s.)
//   4. D_t and out_t·g_t of each token, by 3. of the forward pass on a copy of the sums,
//   5. over the queries of each part Σ a_ft g_t and Σ a_ft (out_t·g_t), in the place of the copy, and 2. of
//      the forward pass on these, from the last part to the first,
//   6. each part's queries from its first tile to its last, with the sums over keys before and the keys of
//      the tile; its keys from the last to the first with the sums over queries after and the queries of the
//      tile.
// As logarithms, shares are log φ(q_t)_f − log D_t. With log φ(k_s)_f of s ≤ t they add up to at most 0.
#pragma once

#include "engine/attention/linear/cuda/linear_causal_programs.h"
#include "engine/attention/linear/cuda/linear_gradient_programs.h"

namespace hydrascope::cuda {

// The workspace of one head of one sequence beside HeadSpace; all of these lie behind all of those.
struct CausalSpace {
  RunningSums queries; // of the parts
  float* denominators; // (N): D, of logarithmic maps its logarithm
  float* dots;         // (N): out · g; 0 without a normaliser
};
HYDRASCOPE_BOTH inline std::int64_t causal_space_floats(const LinearArguments& a) {
  const std::int64_t features = padded(a.features), width = padded(a.head_width);
  return linear_parts(a.tokens) * features * (width + 2) + (2 * a.tokens + lanes - 1) / lanes * lanes;
}
HYDRASCOPE_BOTH inline CausalSpace causal_space(const LinearArguments& a, const std::int64_t head) {
  const std::int64_t parts_features = static_cast<std::int64_t>(linear_parts(a.tokens)) * padded(a.features);
  float* const values =
      a.workspace + counter_floats + a.batch * a.heads * head_space_floats(a) + head * causal_space_floats(a);
  float* const totals = values + parts_features * padded(a.head_width);
  float* const denominators = totals + 2 * parts_features;
  return {{values, totals, totals + parts_features}, denominators, denominators + a.tokens};
}

template <typename Block>
HYDRASCOPE_BLOCK void copy_sums(Block& block, const HeadMap& map, const RunningSums& from,
                                const RunningSums& to) {
  block.each([&](const int thread) {
    for (int i = thread * 4; i < map.features * padded(map.width); i += block_threads * 4) {
      float values[4];
      get_floats(from.values + i, values);
      put_floats(values, to.values + i);
    }
    if (thread >= map.features) return;
    to.totals[thread] = from.totals[thread];
    to.largest[thread] = from.largest[thread];
  });
}

// 4. of a part of the tokens.
template <typename Block, typename ReadQuery, typename ReadKey, typename ReadValue, typename ReadGradient>
HYDRASCOPE_BLOCK void denominators_and_dots(Block& block, const HeadMap& query_map, const HeadMap& key_map,
                                            const ReadQuery& query, const ReadKey& key,
                                            const ReadValue& value, const ReadGradient& g,
                                            const Tokens& tokens, const Tile& tile,
                                            const RunningSums& of_keys, const CausalSpace& space,
                                            const int part, const bool normalised) {
  const RunningSums sums = space.queries.of_part(query_map, part);
  copy_sums(block, query_map, of_keys.of_part(query_map, part), sums);
  const int width = query_map.width;
  causal_output(
      block, query_map, key_map, query, key, value, tokens, tile, sums, normalised,
      [&](const std::int64_t first) {
        block.alone([&](const int t) {
          if (t >= tile_tokens || !tokens.real(first + t)) return;
          const float denominator = denominator_of(tile, t);
          space.denominators[first + t] = !normalised               ? 1.0f
                                          : query_map.logarithmic() ? scale_of(tile, t) + logf(denominator)
                                                                    : denominator;
        });
        load(block, g, tokens, first, width, padded(width), tile.own);
      },
      [&](const std::int64_t token, const int c, const float(&out)[columns_of_thread]) {
        float* const own = tile.own + (token - tokens.first) % tile_tokens * padded(width) + c;
        HYDRASCOPE_UNROLL
        for (int i = 0; i < columns_of_thread; ++i) own[i] *= out[i];
      },
      [&](const std::int64_t first) {
        block.each([](int) {});
        reduce(
            block, tile, width, 0.0f,
            [&](const int t, const int c) { return tile.own[t * padded(width) + c]; }, Sum(), tile.token);
        block.each([&](const int t) {
          if (t < tile_tokens && tokens.real(first + t))
            space.dots[first + t] = normalised ? tile.token[t] : 0.0f;
        });
      });
}

// 5. is sums_over_part() of a_ft of a query's feature, or its logarithm.
struct ShareOfQuery {
  const HeadMap& map;
  const CausalSpace& space;
  HYDRASCOPE_BOTH float operator()(const float phi, const std::int64_t token) const {
    const float denominator = space.denominators[token];
    return map.logarithmic() ? phi - denominator : over(phi, denominator);
  }
};

// tile.pairs = e of the tile's tokens: of row t of `own` and the row of `value` that dot(t, s) belongs to.
template <typename Block, typename Dot>
HYDRASCOPE_BLOCK void make_pairs(Block& block, const HeadMap& map, const Tile& tile, const bool backwards,
                                 const Dot& dot) {
  const int width = padded(map.width);
  block.each([&](const int thread) {
    for (int i = thread; i < tile_tokens * tile_tokens; i += block_threads) {
      const int t = i / tile_tokens, s = i % tile_tokens;
      float sum = 0;
      for (int c = 0; is_seen(t, s, backwards) && c < width; c += 4) {
        float value[4];
        get_floats(tile.value + s * width + c, value);
        sum += dot_of_four(tile.own + t * width + c, value);
      }
      tile.pairs[i] = sum - dot(t, s);
    }
  });
}

// tile.gradient = the gradient by φ or log φ of the tile's rows: `own` their vectors, tile.keys and the sums
// those of the other side; dot(t) is what the sums' totals are multiplied by. Eight rows at a time.
template <typename Block, typename Dot>
HYDRASCOPE_BLOCK void gradient_of_tile(Block& block, const HeadMap& map, const Tile& tile,
                                       const RunningSums& sums, const bool backwards, const Dot& dot) {
  block.each([&](const int thread) {
    constexpr int rows = 8;
    const int features = map.features, width = padded(map.width);
    const bool logarithmic = map.logarithmic();
    each_entry(thread, tile_tokens / rows, features, [&](const int index, const int f) {
      const int row = index * rows;
      float sum[rows] = {}, phi[rows];
      for (int c = 0; c < width; c += 4) {
        float value[4];
        get_floats(sums.values + f * width + c, value);
        HYDRASCOPE_UNROLL
        for (int j = 0; j < rows; ++j) sum[j] += dot_of_four(tile.own + (row + j) * width + c, value);
      }
      HYDRASCOPE_UNROLL
      for (int j = 0; j < rows; ++j) {
        phi[j] = tile.features[(row + j) * features + f];
        sum[j] -= sums.totals[f] * dot(row + j);
        if (logarithmic) sum[j] *= expf(phi[j] + sums.largest[f]);
      }
      for (int s = 0; s < tile_tokens; ++s) {
        const float key = key_at(tile, f, s);
        HYDRASCOPE_UNROLL
        for (int j = 0; j < rows; ++j) {
          if (!is_seen(row + j, s, backwards)) continue;
          sum[j] += (logarithmic ? exponential(phi[j] + key) : key) * tile.pairs[(row + j) * tile_tokens + s];
        }
      }
      HYDRASCOPE_UNROLL
      for (int j = 0; j < rows; ++j) tile.gradient[(row + j) * padded(features) + f] = sum[j];
    });
  });
}

// 6. The queries of a part: ∂L/∂y by `write`.
template <typename Block, typename ReadQuery, typename ReadKey, typename ReadValue, typename ReadGradient,
          typename Write>
HYDRASCOPE_BLOCK void causal_gradient_of_queries(
    Block& block, const HeadMap& query_map, const HeadMap& key_map, const ReadQuery& query,
    const ReadKey& key, const ReadValue& value, const ReadGradient& g, const Tokens& tokens, const Tile& tile,
    const RunningSums& of_keys, const CausalSpace& space, const int part, const Write& write) {
  const RunningSums sums = of_keys.of_part(query_map, part);
  const int features = query_map.features;
  for (std::int64_t first = tokens.first; first < tokens.last; first += tile_tokens) {
    const auto dot = [&](const int t) { return tokens.real(first + t) ? space.dots[first + t] : 0.0f; };
    load_keys(block, key_map, key, value, tokens, first, tile, OwnFeature());
    load(block, g, tokens, first, query_map.width, padded(query_map.width), tile.own);
    load(block, query, tokens, first, query_map.inputs, query_map.inputs, tile.x);
    make_features(block, query_map, first, tokens, tile);
    if (query_map.logarithmic())
      block.each([&](const int thread) {
        each_entry(thread, tile_tokens, features, [&](const int t, const int f) {
          if (tokens.real(first + t)) tile.features[t * features + f] -= space.denominators[first + t];
        });
      });
    make_pairs(block, query_map, tile, false, [&](const int t, int) { return dot(t); });
    gradient_of_tile(block, query_map, tile, sums, false, dot);
    if (!query_map.logarithmic())
      block.each([&](const int thread) {
        each_entry(thread, tile_tokens, features, [&](const int t, const int f) {
          float& gradient = tile.gradient[t * padded(features) + f];
          gradient = tokens.real(first + t) ? over(gradient, space.denominators[first + t]) : 0.0f;
        });
      });
    if (first + tile_tokens < tokens.last) add_keys(block, key_map, tile, sums, EqualWeights());
    write_gradient(block, query_map, query, tokens, first, tile, write);
  }
}

// The keys of a part: ∂L/∂y by write_key, ∂L/∂v by write_value as write_causally() calls it.
template <typename Block, typename ReadQuery, typename ReadKey, typename ReadValue, typename ReadGradient,
          typename WriteKey, typename WriteValue>
HYDRASCOPE_BLOCK void causal_gradient_of_keys(Block& block, const HeadMap& query_map, const HeadMap& key_map,
                                              const ReadQuery& query, const ReadKey& key,
                                              const ReadValue& value, const ReadGradient& g,
                                              const Tokens& tokens, const Tile& tile,
                                              const CausalSpace& space, const int part,
                                              const WriteKey& write_key, const WriteValue& write_value) {
  const RunningSums sums = space.queries.of_part(key_map, part);
  const bool logarithmic = key_map.logarithmic();
  const std::int64_t tiles = (tokens.last - tokens.first + tile_tokens - 1) / tile_tokens;
  for (std::int64_t index = tiles - 1; index >= 0; --index) {
    const std::int64_t first = tokens.first + index * tile_tokens;
    const auto dot = [&](const int t) { return tokens.real(first + t) ? space.dots[first + t] : 0.0f; };
    load_keys(block, query_map, query, g, tokens, first, tile, ShareOfQuery{query_map, space});
    load(block, value, tokens, first, key_map.width, padded(key_map.width), tile.own);
    load(block, key, tokens, first, key_map.inputs, key_map.inputs, tile.x);
    make_features(block, key_map, first, tokens, tile);
    make_pairs(block, key_map, tile, true, [&](int, const int s) { return dot(s); });
    gradient_of_tile(block, key_map, tile, sums, true, [](int) { return 1.0f; });
    each_product(
        block, key_map, tile, true, 0.0f, [](int) { return 0.0f; },
        [&](const float sum, const float phi, const float share, float) {
          return sum + (logarithmic ? exponential(phi + share) : phi * share);
        });
    if (logarithmic)
      block.each([&](const int thread) {
        each_entry(thread, tile_tokens, key_map.features, [&](const int t, const int f) {
          float& feature = tile.features[t * key_map.features + f];
          feature = expf(feature + sums.largest[f]);
        });
      });
    write_causally(
        block, key_map, tokens, first, tile, sums, true, [](int) { return 1.0f; }, write_value);
    block.each([](int) {});
    if (index > 0) add_keys(block, query_map, tile, sums, dot);
    write_gradient(block, key_map, key, tokens, first, tile, write_key);
  }
}

} // namespace hydrascope::cuda
