// Where the blocks of linear.cu find what they work on: φ of a head, its part of the workspace, its tokens,
// and the shared memory. Compiled for the GPU and for the host.
#pragma once

#include <cstdint>

#include "engine/attention/cuda/program.h"
#include "engine/attention/linear/cuda/linear.h"

namespace hydrascope::cuda {

constexpr int tile_tokens = 32;
constexpr int threads_of_token = block_threads / tile_tokens;
constexpr int most_features = block_threads; // a thread each
constexpr int most_width = 128;
constexpr int lanes = 16; // tensor cores take squares of so many

HYDRASCOPE_BOTH constexpr int padded(const int count) { return (count + lanes - 1) / lanes * lanes; }

// What one head's blocks need to know of φ.
struct HeadMap {
  cpu::PointMap map;
  int width, inputs, outputs, features; // d, entries of x, m and m or 2m
  const float *weight, *bias, *turns;
  float scale, half_square;

  // Features are kept as logarithms until they are scaled.
  HYDRASCOPE_BOTH bool logarithmic() const {
    return map == cpu::PointMap::plus_minus_exponential || map == cpu::PointMap::exponential ||
           map == cpu::PointMap::softmax || map == cpu::PointMap::plus_minus_softmax ||
           map == cpu::PointMap::joint_softmax;
  }
};

HYDRASCOPE_BOTH inline HeadMap head_map(const LinearArguments& a, const SideArguments& side,
                                        const std::int64_t b, const std::int64_t h) {
  return {a.map,
          a.head_width,
          a.inputs,
          a.outputs,
          a.features,
          side.weight == nullptr ? nullptr : side.weight + h * side.weight_stride,
          side.bias == nullptr ? nullptr : side.bias + h * a.outputs,
          side.turns == nullptr ? nullptr : side.turns + b * side.turns_stride,
          side.scale,
          side.half_square};
}

// Tokens are gathered in this many parts: enough blocks to fill a GPU, few enough to add.
HYDRASCOPE_BOTH inline int linear_parts(const std::int64_t tokens) {
  const std::int64_t parts = (tokens + 255) / 256;
  return static_cast<int>(parts < 32 ? parts : 32);
}

// The workspace of one head of one sequence, rows padded to whole squares for the tensor cores.
struct HeadSpace {
  float* part_largest; // (parts, F)
  float* part_values;  // (parts, F, d)
  float* part_ones;    // (parts, F)
  float* largest;      // (F)
  float* means;        // (F, d); of gradients later A (linear_gradient_programs.h)
  float* weights;      // (F): z, of logarithmic maps largest + log z
  float* half_means;   // (F, d) of a half type, of what is in means
};
HYDRASCOPE_BOTH inline std::int64_t head_space_floats(const LinearArguments& a) {
  const std::int64_t features = padded(a.features), width = padded(a.head_width);
  const std::int64_t parts = linear_parts(a.tokens);
  return parts * features * (width + 2) + features * (width + 2) + features * width / 2;
}
constexpr std::int64_t counter_floats = lanes; // in front of all: how many denominators were 0
HYDRASCOPE_BOTH inline HeadSpace head_space(const LinearArguments& a, const std::int64_t head) {
  const std::int64_t features = padded(a.features), width = padded(a.head_width);
  const std::int64_t parts = linear_parts(a.tokens);
  float* at = a.workspace + counter_floats + head * head_space_floats(a);
  const auto take = [&at](const std::int64_t floats) {
    float* const taken = at;
    at += floats;
    return taken;
  };
  HeadSpace space{};
  space.part_values = take(parts * features * width);
  space.means = take(features * width);
  space.half_means = take(features * width / 2);
  space.part_largest = take(parts * features);
  space.part_ones = take(parts * features);
  space.largest = take(features);
  space.weights = take(features);
  return space;
}

// Shared memory of a block. Once features are made, x and y are free; a product may keep its own copies
// there.
struct Tile {
  float* x;        // (32, inputs), room for padded rows of d
  float* y;        // (32, m), room for padded rows
  float* features; // (32, F)
  float* value;    // (32, d), room for padded rows
  float* parts;    // (256): what each of a token's eight threads has gathered
  float* token;    // (4, 32): numbers of a token
  float* gradient; // (32, F padded): the loss by the features; in programs of gradients alone
};
HYDRASCOPE_BOTH inline int tile_floats(const HeadMap& map, const bool gradients) {
  const int x = padded(map.inputs > map.width ? map.inputs : map.width);
  const int row = x + padded(map.width) + padded(map.outputs) + map.features + 4;
  return tile_tokens * (row + (gradients ? padded(map.features) : 0)) + block_threads;
}
HYDRASCOPE_BOTH inline Tile tile_in(float* memory, const HeadMap& map) {
  Tile tile{};
  tile.x = memory;
  tile.y = tile.x + tile_tokens * padded(map.inputs > map.width ? map.inputs : map.width);
  tile.value = tile.y + tile_tokens * padded(map.outputs);
  tile.features = tile.value + tile_tokens * padded(map.width);
  tile.parts = tile.features + tile_tokens * map.features;
  tile.token = tile.parts + block_threads;
  tile.gradient = tile.token + 4 * tile_tokens;
  return tile;
}

// The tokens first … last−1 of a sequence whose mask is `mask`.
struct Tokens {
  const unsigned char* mask; // null: all real
  std::int64_t first, last;

  HYDRASCOPE_BOTH bool real(const std::int64_t token) const {
    return token < last && (mask == nullptr || mask[token] != 0);
  }
};
HYDRASCOPE_BOTH inline Tokens part_of(const LinearArguments& a, const std::int64_t b, const int part) {
  const std::int64_t parts = linear_parts(a.tokens);
  return {a.mask == nullptr ? nullptr : a.mask + b * a.tokens, a.tokens * part / parts,
          a.tokens * (part + 1) / parts};
}

} // namespace hydrascope::cuda
