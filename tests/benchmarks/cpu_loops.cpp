// Google Benchmark of the fused CPU loops alone, one thread, no LibTorch, each for every kind of processor
// that this machine can be: what AVX2, AVX-512 and bfloat16 products gain, and what a change to a loop does.
//
//   build/cpu_loops --benchmark_filter=hedgehog
//
// bytes/s: inputs read and output written once. FLOP/s: two for each multiply-accumulate of the products.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/softmax/cpu/softmax.h"

namespace hydrascope::cpu {
namespace {

// (tokens, width) of normal numbers, as the rows of one head.
class Tensor {
public:
  Tensor(const std::int64_t tokens, const std::int64_t width, const float scale = 1)
      : values_(static_cast<std::size_t>(tokens * width / most_lanes)), width_(width) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (Lanes& lanes : values_)
      for (float& value : lanes.values) value = scale * normal(generator);
  }
  Rows rows() {
    return {.data = values_.data(),
            .heads = 1,
            .head_width = width_,
            .token_stride = width_,
            .head_stride = width_};
  }
  double bytes() const { return static_cast<double>(values_.size() * sizeof(Lanes)); }

private:
  struct alignas(64) Lanes {
    float values[most_lanes];
  };
  std::vector<Lanes> values_; // aligned as LibTorch's allocator does
  std::int64_t width_;
};

std::vector<float> buffer(const std::int64_t floats) {
  return std::vector<float>(static_cast<std::size_t>(floats));
}

void tell(benchmark::State& state, const double bytes, const double multiply_accumulates) {
  using benchmark::Counter;
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  if (multiply_accumulates > 0)
    state.counters["FLOP/s"] = Counter(2 * multiply_accumulates, Counter::kIsIterationInvariantRate);
}

// Both passes of hydra-cosine.
void hydra_cosine(benchmark::State& state, const Processor processor, const std::int64_t tokens,
                  const std::int64_t width) {
  const HydraLoops& loops = hydra_loops(processor);
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width);
  const std::int64_t padded = padded_to_lanes(width);
  std::vector<float> buffers = buffer(3 * padded), sum = buffer(padded);
  for (auto _ : state) {
    in_blocks({0, tokens}, [&](const TokenRange block) {
      loops.sum(k.rows(), v.rows(), nullptr, block, RowMap::unit_l2, 1, buffers.data(), sum.data());
    });
    loops.gate(q.rows(), nullptr, {0, tokens}, RowMap::unit_l2, 1, sum.data(), out.rows(), tokens > 1024,
               buffers.data());
    benchmark::DoNotOptimize(out.rows().data);
    benchmark::ClobberMemory();
  }
  tell(state, q.bytes() + k.bytes() + v.bytes() + out.bytes(), 0);
}

// Both passes of one head with a trained map, d = 64.
void hedgehog(benchmark::State& state, const Processor processor, const std::int64_t tokens) {
  constexpr std::int64_t width = 64;
  const LinearLoops& loops = linear_loops(processor);
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width),
      weight(width, width, 1.F / 64);
  LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = width, .outputs = width};
  map.weight = static_cast<const float*>(weight.rows().data);
  std::vector<float> buffers = buffer(buffer_floats(map, width));
  for (auto _ : state) {
    KeySums sums(map, width);
    loops.add_keys(k.rows(), v.rows(), nullptr, {0, tokens}, map, {}, buffers.data(), sums.values.data(),
                   sums.totals.data(), sums.largest.data());
    loops.outputs(q.rows(), nullptr, {0, tokens}, map, sums.values.data(), sums.totals.data(),
                  sums.largest.data(), {}, buffers.data(), out.rows());
    benchmark::DoNotOptimize(out.rows().data);
    benchmark::ClobberMemory();
  }
  const double products =
      2.0 * width * width + 4.0 * width * width; // both maps; 2d features with d values, twice
  tell(state, q.bytes() + k.bytes() + v.bytes() + out.bytes(), static_cast<double>(tokens) * products);
}

// The same, causal.
void causal_hedgehog(benchmark::State& state, const Processor processor, const std::int64_t tokens) {
  constexpr std::int64_t width = 64;
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width),
      weight(width, width, 1.F / 64);
  LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = width, .outputs = width};
  map.weight = static_cast<const float*>(weight.rows().data);
  const std::vector<CausalQueries> queries{{q.rows(), map, out.rows()}};
  for (auto _ : state) {
    KeySums sums(map, width);
    causal_outputs(k.rows(), v.rows(), queries, nullptr, {0, tokens}, map, sums, processor);
    benchmark::DoNotOptimize(out.rows().data);
    benchmark::ClobberMemory();
  }
  // Both maps; 2d features with d values, twice; half of the products of a block's queries, keys and values.
  const double products = 2.0 * width * width + 4.0 * width * width + 1.5 * tokens_of_block * width;
  tell(state, q.bytes() + k.bytes() + v.bytes() + out.bytes(), static_cast<double>(tokens) * products);
}

// Softmax of one head, d = 64, in blocks.
void softmax(benchmark::State& state, const Processor processor, const std::int64_t tokens) {
  constexpr std::int64_t width = 64;
  const SoftmaxLoops& loops = softmax_loops(processor);
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width);
  std::vector<float> buffers = buffer(softmax_buffer_floats(width, width));
  for (auto _ : state) {
    for (std::int64_t first = 0; first < tokens; first += queries_at_once)
      loops.output(q.rows(), k.rows(), v.rows(), nullptr, {first, std::min(tokens, first + queries_at_once)},
                   tokens, false, 0.125F, buffers.data(), out.rows());
    benchmark::DoNotOptimize(out.rows().data);
    benchmark::ClobberMemory();
  }
  tell(state, q.bytes() + k.bytes() + v.bytes() + out.bytes(),
       2.0 * static_cast<double>(tokens) * static_cast<double>(tokens) * width);
}

void add_benchmarks() {
  const auto name = [](const char* kernel, const Processor processor, const std::int64_t tokens) {
    return std::string(kernel) + "/" + name_of(processor) + "/" + std::to_string(tokens);
  };
  for (const std::int64_t tokens : {197, 4096, 65536})
    for (const Processor processor : processors()) {
      // Hydra has no products, and so no loops of its own for those of bfloat16.
      if (!has_bfloat16_products(processor))
        benchmark::RegisterBenchmark(name("hydra-cosine", processor, tokens).c_str(), hydra_cosine, processor,
                                     tokens, 768);
      if (tokens == 65536) continue; // beyond every cache: of interest to what only reads and writes
      benchmark::RegisterBenchmark(name("hedgehog", processor, tokens).c_str(), hedgehog, processor, tokens);
      if (!has_bfloat16_products(processor)) // its products are of floats
        benchmark::RegisterBenchmark(name("causal-hedgehog", processor, tokens).c_str(), causal_hedgehog,
                                     processor, tokens);
      benchmark::RegisterBenchmark(name("flash", processor, tokens).c_str(), softmax, processor, tokens);
    }
}

} // namespace
} // namespace hydrascope::cpu

int main(int count, char** arguments) {
  hydrascope::cpu::add_benchmarks();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
