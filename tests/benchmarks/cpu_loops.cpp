// Google Benchmark of the fused CPU loops alone, no LibTorch, one thread where no other number is named, each
// for every kind of processor that this machine can be: what AVX2, AVX-512 and bfloat16 products gain, and
// what a change to a loop does.
//
//   build/cpu_loops --benchmark_filter=hedgehog
//
// bytes/s: inputs read and output written once. FLOP/s: two for each multiply-accumulate of the products.
// threads:2: two threads, each with half of the tokens.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <jemalloc/jemalloc.h>
#if defined __x86_64__
  #include <immintrin.h>
#endif

#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/simd/cpu/product.h"
#include "engine/attention/softmax/cpu/softmax.h"

// Huge pages, as the program's tensors have (engine/base/process_memory.cpp).
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
const char* malloc_conf = "thp:always";

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
  // The same as bfloat16, in half of the place.
  Rows half_rows() {
    Rows half = rows();
    half.element = Element::bfloat16;
    auto* const to = static_cast<std::uint16_t*>(half.data);
    for (std::size_t i = 0; i < values_.size() * most_lanes; ++i)
      to[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(floats()[i]) >> 16);
    return half;
  }
  float* floats() { return values_.front().values; }
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
void hydra_cosine(benchmark::State& state, const Processor processor, const std::int64_t tokens_of_all,
                  const std::int64_t width) {
  const HydraLoops& loops = hydra_loops(processor);
  const std::int64_t tokens = tokens_of_all / state.threads();
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

#if defined __x86_64__
// The rows of hydra-cosine, read and written in its order, a row at a time: k and v, which are added up, then
// q, which is copied past the caches: what memory alone takes.
__attribute__((target("avx512f"))) void hydra_rows(benchmark::State& state, const std::int64_t tokens_of_all,
                                                   const std::int64_t width) {
  const std::int64_t tokens = tokens_of_all / state.threads();
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width);
  const float *const queries = q.floats(), *const keys = k.floats(), *const values = v.floats();
  float* const outputs = out.floats();
  for (auto _ : state) {
    __m512 even = _mm512_setzero_ps(), odd = even; // two sums: a single one would wait for each addition
    const auto add_row = [&](const float* row) __attribute__((target("avx512f"))) {
      for (std::int64_t f = 0; f < width; f += 2 * most_lanes) {
        even = _mm512_add_ps(even, _mm512_load_ps(row + f));
        odd = _mm512_add_ps(odd, _mm512_load_ps(row + f + most_lanes));
      }
    };
    for (std::int64_t token = 0; token < tokens; ++token) {
      add_row(keys + token * width);
      add_row(values + token * width);
    }
    benchmark::DoNotOptimize(even);
    benchmark::DoNotOptimize(odd);
    for (std::int64_t i = 0; i < tokens * width; i += most_lanes)
      _mm512_stream_ps(outputs + i, _mm512_load_ps(queries + i));
    _mm_sfence();
    benchmark::ClobberMemory();
  }
  tell(state, q.bytes() + k.bytes() + v.bytes() + out.bytes(), 0);
}

// a = b + s·c over as many bytes, past the caches.
__attribute__((target("avx512f"))) void triad(benchmark::State& state, const std::int64_t tokens_of_all,
                                              const std::int64_t width) {
  const std::int64_t rows = 4 * tokens_of_all / (3 * state.threads()), count = rows * width;
  Tensor a(rows, width), b(rows, width), c(rows, width);
  float* const sums = a.floats();
  const float *const first = b.floats(), *const second = c.floats();
  const __m512 scale = _mm512_set1_ps(0.5F);
  for (auto _ : state) {
    for (std::int64_t i = 0; i < count; i += most_lanes)
      _mm512_stream_ps(sums + i,
                       _mm512_fmadd_ps(_mm512_load_ps(second + i), scale, _mm512_load_ps(first + i)));
    _mm_sfence();
    benchmark::ClobberMemory();
  }
  tell(state, a.bytes() + b.bytes() + c.bytes(), 0);
}
#endif

// A linear kernel of one head, d = 64.
struct LinearCase {
  const char* name;
  PointMap map;
  std::int64_t projected = 0; // columns of W; 0: W = I
  float scale = 1;            // of both maps
  float key_half_square = 0;  // of the keys' map

  std::int64_t outputs() const { return projected > 0 ? projected : width; }
  std::int64_t features() const {
    if (map == PointMap::taylor) return (width + 1) * (width + 2) / 2;
    return has_two_halves(map) ? 2 * outputs() : outputs();
  }
  // Multiply-accumulates of a token: both maps, then its features with d values, twice.
  double products() const { return static_cast<double>(2 * width * projected + 2 * features() * width); }
  // The map of queries or, with half_square, of keys; the weights are the caller's.
  LinearMap made(const float* weight, const float* token_weights, const float half_square = 0) const {
    return {.map = map,
            .head_width = width,
            .outputs = outputs(),
            .weight = projected > 0 ? weight : nullptr,
            .scale = scale,
            .half_square = half_square,
            .token_weights = token_weights};
  }

  static constexpr std::int64_t width = 64;
};
constexpr LinearCase hedgehog_case{"hedgehog", PointMap::plus_minus_exponential, LinearCase::width};
constexpr LinearCase linear_cases[] = {hedgehog_case,
                                       {"hedgehog-softmax", PointMap::plus_minus_softmax, LinearCase::width},
                                       {"t2r", PointMap::relu, LinearCase::width},
                                       {"exp-t1", PointMap::exponential},
                                       {"elu", PointMap::one_plus_elu},
                                       {"relu", PointMap::relu},
                                       {"cosformer", PointMap::relu_token_weighted},
                                       // ⌊d ln d⌋ features, d^−¼, 1/(2√d)
                                       {"performer", PointMap::exponential, 266, 0.35355F, 0.0625F},
                                       {"taylor", PointMap::taylor}};

// Both passes.
void linear(benchmark::State& state, const Processor processor, const LinearCase& one,
            const std::int64_t tokens) {
  constexpr std::int64_t width = LinearCase::width;
  Tensor q(tokens, width), k(tokens, width), v(tokens, width), out(tokens, width),
      weight(width, padded_to_lanes(one.outputs()), 1.F / 64);
  const std::vector<float> token_weights(static_cast<std::size_t>(2 * tokens), 0.5F);
  const LinearMap map = one.made(weight.floats(), token_weights.data());
  KeySums sums(map, width);
  const auto rows_of = [&](Tensor& x) { return has_bfloat16_products(processor) ? x.half_rows() : x.rows(); };
  const KeyHead keys{rows_of(k), rows_of(v),
                     one.made(weight.floats(), token_weights.data(), one.key_half_square), &sums};
  const QueryHead queries{rows_of(q), map, &sums, rows_of(out)};
  for (auto _ : state) {
    add_keys({&keys, 1}, nullptr, {0, tokens}, processor);
    linear_outputs({&queries, 1}, nullptr, {0, tokens}, processor);
    benchmark::DoNotOptimize(out.rows().data);
    benchmark::ClobberMemory();
  }
  const double bytes = q.bytes() + k.bytes() + v.bytes() + out.bytes();
  tell(state, has_bfloat16_products(processor) ? bytes / 2 : bytes,
       static_cast<double>(tokens) * one.products());
}

// The matrix products of a block of tokens alone, with as many features at a time as the above: what bounds
// it.
void linear_products(benchmark::State& state, const Processor processor, const LinearCase& one) {
  constexpr std::int64_t width = LinearCase::width;
  const ProductLoops& loops = product_loops(processor);
  const LinearMap map = one.made(nullptr, nullptr);
  const std::int64_t features = map.features(), at_once = map.features_at_once(),
                     outputs = padded_to_lanes(one.outputs());
  Tensor x(tokens_of_block, width), y(tokens_of_block, outputs), weight(width, outputs),
      query_features(tokens_of_block, at_once), key_features(tokens_of_block, at_once),
      values(tokens_of_block, width), key_sums(features, width), sums(features, width);
  loops.make_left(x.floats(), tokens_of_block, width, x.floats());
  loops.make_left(query_features.floats(), tokens_of_block, at_once, query_features.floats());
  loops.make_right(weight.floats(), width, outputs, weight.floats());
  loops.make_right(key_features.floats(), tokens_of_block, at_once, key_features.floats());
  loops.make_right(values.floats(), tokens_of_block, width, values.floats());
  loops.make_right(key_sums.floats(), features, width, key_sums.floats());
  for (auto _ : state) {
    for (int side = 0; side < (one.projected > 0 ? 2 : 0); ++side)
      loops.rows_times(x.floats(), tokens_of_block, width, weight.floats(), outputs, y.floats());
    for (std::int64_t first = 0; first < features; first += at_once) {
      const std::int64_t count = std::min(at_once, features - first);
      loops.add_columns_times(key_features.floats(), tokens_of_block, count, values.floats(), width,
                              sums.floats() + first * width);
      loops.rows_times(query_features.floats(), tokens_of_block, count, key_sums.floats() + first * width,
                       width, y.floats());
    }
    benchmark::ClobberMemory();
  }
  tell(state, 0, static_cast<double>(tokens_of_block) * one.products());
}

// hedgehog, causal.
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
  const auto add = [](const std::string& named, const auto&... rest) {
    // NOLINTNEXTLINE(readability-redundant-string-cstr): Google Benchmark takes strings from 1.8 on
    return benchmark::RegisterBenchmark(named.c_str(), rest...);
  };
  for (const std::int64_t tokens : {197, 4096, 65536})
    for (const Processor processor : processors()) {
      // Hydra has no products, and so no loops of its own for those of bfloat16.
      if (!has_bfloat16_products(processor))
        add(name("hydra-cosine", processor, tokens), hydra_cosine, processor, tokens, 768);
      if (tokens == 65536) continue; // beyond every cache: of interest to what only reads and writes
      add(name("hedgehog", processor, tokens), linear, processor, hedgehog_case, tokens);
      if (!has_bfloat16_products(processor)) // its products are of floats
        add(name("causal-hedgehog", processor, tokens), causal_hedgehog, processor, tokens);
      add(name("flash", processor, tokens), softmax, processor, tokens);
    }
#if defined __x86_64__
  // hydra-cosine beside its bounds from memory, on two threads.
  if (best_processor(false) >= Processor::avx512)
    for (const std::int64_t tokens : {4096, 65536}) {
      constexpr std::int64_t width = 768;
      const auto on_two_threads = [](auto* one) { one->Threads(2)->UseRealTime(); };
      on_two_threads(add(name("hydra-cosine", Processor::avx512, tokens), hydra_cosine, Processor::avx512,
                         tokens, width));
      on_two_threads(add(name("hydra-rows", Processor::avx512, tokens), hydra_rows, tokens, width));
      on_two_threads(add(name("triad", Processor::avx512, tokens), triad, tokens, width));
    }
#endif
  // Beside their bound, with all data in the second-level cache.
  constexpr std::int64_t cached_tokens = 256, cached_wide_tokens = 64;
  for (const Processor processor : processors()) {
    if (!has_bfloat16_products(processor))
      add(name("hydra-cosine", processor, cached_wide_tokens), hydra_cosine, processor, cached_wide_tokens,
          768);
    for (const LinearCase& one : linear_cases) {
      add(name(one.name, processor, cached_tokens), linear, processor, one, cached_tokens);
      add(std::string(one.name) + "-products/" + name_of(processor), linear_products, processor, one);
    }
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
