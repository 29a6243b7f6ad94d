#include "engine/measure/machine_limits.h"

#include <sched.h>
#if defined __x86_64__
  #include <immintrin.h>
#endif

#include <algorithm>
#include <functional>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/simd/processor.h"
#include "engine/measure/device_clock.h"
#include "engine/models/transformer/linear.h"
#include "engine/run/dtype.h"

namespace hydrascope {
namespace {

// Seconds of the fastest of some runs, after one that warms up.
double fastest(const DeviceClock& clock, const std::function<void()>& run) {
  constexpr int runs = 7;
  double best = std::numeric_limits<double>::infinity();
  run();
  for (int i = 0; i < runs; ++i) best = std::min(best, clock.seconds(run));
  return best;
}

// The triad's numbers [first, last), whole lines of 16, written past the caches: what is not read first.
#if defined __x86_64__
__attribute__((target("avx512f"))) void streamed_triad(float* a, const float* b, const float* c,
                                                       const std::int64_t first, const std::int64_t last) {
  const __m512 scale = _mm512_set1_ps(0.5F);
  for (std::int64_t i = first; i < last; i += 16)
    _mm512_stream_ps(a + i, _mm512_fmadd_ps(_mm512_loadu_ps(c + i), scale, _mm512_loadu_ps(b + i)));
  _mm_sfence();
}
bool can_stream() { return cpu::best_processor(false) >= cpu::Processor::avx512; }
#else
void streamed_triad(float*, const float*, const float*, std::int64_t, std::int64_t) {}
bool can_stream() { return false; }
#endif

} // namespace

double triad_bandwidth(const std::int64_t footprint, const std::string& device) {
  const at::NoGradGuard no_gradients;
  const at::TensorOptions floats = at::TensorOptions(at::kFloat).device(device_of(device));
  const DeviceClock clock(floats.device());
  const std::int64_t length = std::max<std::int64_t>(16, footprint / 12 / 16 * 16);
  at::Tensor a = at::empty({length}, floats);
  const at::Tensor b = at::full({length}, 1.0, floats), c = at::full({length}, 2.0, floats);
  // Short ones many times over, or the clock and the call are what is measured.
  const std::int64_t repeats = std::max<std::int64_t>(1, (4 << 20) / (12 * length));
  double seconds = fastest(clock, [&] {
    for (std::int64_t i = 0; i < repeats; ++i) at::add_out(a, b, c, 0.5);
  });
  if (floats.device().is_cpu() && can_stream()) {
    constexpr std::int64_t lines_of_thread = 4096;
    const float *from = b.const_data_ptr<float>(), *scaled = c.const_data_ptr<float>();
    float* const to = a.mutable_data_ptr<float>();
    seconds = std::min(seconds, fastest(clock, [&] {
                         for (std::int64_t i = 0; i < repeats; ++i)
                           at::parallel_for(0, length / 16, lines_of_thread,
                                            [&](const std::int64_t first, const std::int64_t last) {
                                              streamed_triad(to, from, scaled, 16 * first, 16 * last);
                                            });
                       }));
  }
  return static_cast<double>(12 * length * repeats) / seconds;
}

double matrix_rate(const std::string& dtype, const std::string& device) {
  const at::NoGradGuard no_gradients;
  const at::Device place = device_of(device);
  const DeviceClock clock(place);
  const std::int64_t side = place.is_cpu() ? 1024 : 8192;
  const at::ScalarType type = dtype_on(place, dtype);
  const at::Tensor x = at::randn({side, side}, place).to(type), w = at::randn({side, side}, place).to(type);
  double seconds = fastest(clock, [&] { at::matmul(x, w); });
  if (place.is_cpu()) {
    const Linear packed({{w, {}}});
    seconds = std::min(seconds, fastest(clock, [&] { packed(x); }));
  }
  return 2.0 * static_cast<double>(side * side * side) / seconds;
}

MachineLimits machine_limits(const std::string& dtype) {
  constexpr std::int64_t beyond_caches = 3LL << 26;
  return {.bandwidth = triad_bandwidth(beyond_caches), .matrix_rate = matrix_rate(dtype)};
}

std::string threads_text() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int first = 0; first < CPU_SETSIZE; ++first) {
      if (!CPU_ISSET(first, &set)) continue;
      int last = first;
      while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
      processors += fmt::format("{}{}", processors.empty() ? "" : ",", first);
      if (last > first) processors += fmt::format("-{}", last);
      first = last;
    }
  }
  return fmt::format("{} threads on processors {}", at::get_num_threads(), processors);
}

} // namespace hydrascope
