// The programs that the GPU's blocks run for linear attention, run on the host thread by thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/attention/linear/cuda/linear_gradient_programs.h"
#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"
#include "tests/engine/attention/cuda_host.h"

namespace hydrascope::testing_inputs {

// The grids of linear.cu and linear_gradient.cu, for float32.
class CudaLinearGrid {
public:
  explicit CudaLinearGrid(const cuda::LinearArguments& arguments) : a_(arguments) {}

  // The output; how many denominators were 0.
  int run() {
    int zeros = 0;
    for (Head head : heads()) {
      Memory memory(head.queries, false);
      sums_over_keys(head);
      for (std::int64_t first = 0; first < a_.tokens; first += cuda::tile_tokens) {
        cuda::PlainOutput<HostBlock> product;
        output_of_queries(block_, head.queries, rows(a_.q, head), all(head), first, memory.tile, head.space,
                          a_.normalised, product, writer(a_.out, head, a_.head_width), [&] { ++zeros; });
      }
    }
    return zeros;
  }

  void run(const cuda::LinearGradients& gradients) {
    const int parts = cuda::linear_parts(a_.tokens);
    for (Head head : heads()) {
      Memory memory(head.keys, true);
      sums_over_keys(head);
      cuda::PlainMeans<HostBlock> by_means;
      for (int part = 0; part < parts; ++part) {
        Sums product;
        gradient_of_queries(block_, head.queries, rows(a_.q, head), rows(gradients.g, head),
                            part_of(a_, head.b, part), memory.tile, head.space, a_.normalised, product,
                            by_means, writer(gradients.q, head, a_.outputs), head.values(part),
                            head.totals(part));
      }
      merge_gradients(block_, head.queries, head.space, parts, [](int, const float sum) { return sum; });
      for (std::int64_t first = 0; first < a_.tokens; first += cuda::tile_tokens) {
        cuda::PlainOutput<HostBlock> product;
        gradient_of_keys(block_, head.keys, rows(a_.k, head), rows(a_.v, head), all(head), first, memory.tile,
                         head.space, a_.normalised, product, by_means, writer(gradients.k, head, a_.outputs),
                         writer(gradients.v, head, a_.head_width));
      }
    }
  }

private:
  using Sums = cuda::PlainKeys<HostBlock, 16, 8>;

  struct Head {
    std::int64_t b, h;
    cuda::HeadMap keys, queries;
    cuda::HeadSpace space;

    float* values(const int part) const {
      return space.part_values + part * cuda::padded(keys.features) * cuda::padded(keys.width);
    }
    float* totals(const int part) const { return space.part_totals + part * cuda::padded(keys.features); }
  };

  // Shared memory, of nothing but NaN when a block begins.
  struct Memory {
    Memory(const cuda::HeadMap& map, const bool gradients)
        : floats(static_cast<std::size_t>(tile_floats(map, gradients)),
                 std::numeric_limits<float>::quiet_NaN()),
          tile(tile_in(floats.data(), map)) {}
    std::vector<float> floats;
    cuda::Tile tile;
  };

  std::vector<Head> heads() const {
    std::vector<Head> result;
    for (std::int64_t b = 0; b < a_.batch; ++b)
      for (std::int64_t h = 0; h < a_.heads; ++h)
        result.push_back({b, h, head_map(a_, a_.key, b, h), head_map(a_, a_.query, b, h),
                          head_space(a_, b * a_.heads + h)});
    return result;
  }

  void sums_over_keys(const Head& head) {
    const int parts = cuda::linear_parts(a_.tokens);
    Memory memory(head.keys, false);
    for (int part = 0; head.keys.logarithmic() && part < parts; ++part)
      largest_of_keys(block_, head.keys, rows(a_.k, head), part_of(a_, head.b, part), memory.tile,
                      head.space.part_largest + part * cuda::padded(head.keys.features));
    if (head.keys.logarithmic()) merge_largest(block_, head.keys, head.space, parts);
    for (int part = 0; part < parts; ++part) {
      Sums product;
      sums_of_keys(block_, head.keys, rows(a_.k, head), rows(a_.v, head), part_of(a_, head.b, part),
                   memory.tile, head.space.largest, product, head.values(part), head.totals(part));
    }
    merge_sums(block_, head.keys, head.space, parts, a_.normalised, [](int, float) {});
  }

  cuda::Tokens all(const Head& head) const {
    return {a_.mask == nullptr ? nullptr : a_.mask + head.b * a_.tokens, 0, a_.tokens};
  }
  struct Read {
    static constexpr int count = 1;
    const float* data;
    std::int64_t stride;
    float operator()(const std::int64_t token, const int c) const { return data[token * stride + c]; }
  };
  static Read rows(const cuda::HeadsOnDevice& x, const Head& head) {
    return {static_cast<const float*>(x.data) + head.b * x.batch_stride + head.h * x.head_stride,
            x.token_stride};
  }
  struct Writer {
    static constexpr int count = 1;
    float* to;
    std::int64_t stride;
    void operator()(const std::int64_t token, const int c, const float value) const {
      to[token * stride + c] = value;
    }
  };
  Writer writer(void* const to, const Head& head, const int width) const {
    return {static_cast<float*>(to) + (head.b * a_.tokens * a_.heads + head.h) * width, a_.heads * width};
  }

  const cuda::LinearArguments& a_;
  HostBlock block_;
};

} // namespace hydrascope::testing_inputs
