// Every CUDA kernel, emulated, at shapes that are small but fill neither tiles nor squares: in several orders
// of the threads, or, under ThreadSanitizer, with real ones.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda_emulation/cases.h"
#include "tests/cuda_emulation/emulation.h"

namespace hydrascope {
namespace {

using cuda::Element;
using namespace testing_inputs;

#ifdef __SANITIZE_THREAD__
constexpr bool real_threads = true; // slow, and in no order of their own
constexpr cuda_emulation::Order orders[] = {cuda_emulation::Order::forward};
constexpr CudaShape shape{1, 1, 34, 18, true};
#else
constexpr bool real_threads = false;
constexpr cuda_emulation::Order orders[] = {cuda_emulation::Order::forward, cuda_emulation::Order::reverse,
                                            cuda_emulation::Order::shuffled};
constexpr CudaShape shape{2, 2, 35, 18, true};
#endif

// Each program of the kernels is run by one of these.
bool is_run(const LinearKernel& kernel, const Element element) {
  if (!kernel.normalised && element != Element::float32) return false; // not taken
  const bool chosen = kernel.map == cpu::PointMap::joint_softmax || kernel.map == cpu::PointMap::unit;
  return !real_threads || (chosen && element != Element::float16);
}

double tolerance(const Element element) {
  return element == Element::float32 ? 1e-5 : element == Element::float16 ? 2e-3 : 2e-2;
}

void expect(const Comparison& comparison, const Element element) {
  EXPECT_EQ(comparison.message, "");
  EXPECT_LT(comparison.error, tolerance(element));
}

template <typename Test>
void in_every_order(const Test& test) {
  for (const cuda_emulation::Order order : orders)
    for (const Element element : {Element::float32, Element::float16, Element::bfloat16}) {
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(order)) + ", element type " +
                   std::to_string(static_cast<int>(element)));
      cuda_emulation::set_order(order);
      test(element);
    }
  cuda_emulation::set_order(cuda_emulation::Order::forward);
}

TEST(CudaSmall, HydraIsTheDefinition) {
  in_every_order([](const Element element) {
    if (real_threads && element == Element::float16) return;
    for (const bool causal : {false, true}) {
      expect(compare_hydra(shape, element, {.causal = causal}), element);
      expect(compare_hydra({1, 1, 34, 24, true}, element, {.aligned = true, .causal = causal}), element);
    }
    if (real_threads) return;
    expect(compare_hydra({1, 2, 34, 150, true}, element, {.causal = true}), element); // two slices
  });
}

TEST(CudaSmall, LinearAttentionIsTheDefinition) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : linear_kernels()) {
      SCOPED_TRACE(kernel.name);
      if (!is_run(kernel, element)) continue;
      expect(compare_linear(kernel, shape, element), element);
      expect(compare_linear(kernel, shape, element, {.causal = true}), element);
      if (element == Element::float16) continue;
      for (const bool causal : {false, true})
        expect(compare_linear_gradients(kernel, shape, element, {.causal = causal}), element);
    }
  });
}

// Rows that are read and written by 16 bytes: of 24 entries, and in float32 of 20; and those that look like
// these, but are of 20 in a half type or begin one element later.
TEST(CudaSmall, LinearAttentionOnAlignedRowsIsTheDefinition) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : linear_kernels()) {
      SCOPED_TRACE(kernel.name);
      if (!is_run(kernel, element)) continue;
      for (const std::int64_t width : {20, 24})
        for (const bool shifted : {false, true})
          for (const bool causal : {false, true}) {
            if (real_threads && (shifted || width == 20)) continue;
            SCOPED_TRACE(std::to_string(width) + (shifted ? ", shifted" : "") + (causal ? ", causal" : ""));
            const CudaShape rows{1, width == 24 ? 2 : 1, 35, width, true};
            const Variation variation{.aligned = true, .shifted = shifted, .causal = causal};
            expect(compare_linear(kernel, rows, element, variation), element);
            if (element != Element::float16)
              expect(compare_linear_gradients(kernel, rows, element, variation), element);
          }
    }
  });
}

// Heads of 64 features in a half type have kernels of their own. Steep: larger and larger features come.
TEST(CudaSmall, HeadsOf64AreTheDefinition) {
  in_every_order([](const Element element) {
    LinearKernel kernel = linear_kernels().front();
    ASSERT_EQ(kernel.map, cpu::PointMap::plus_minus_exponential);
    for (const double scale : {1.0, 6.0}) {
      kernel.scale = scale;
      if (element == Element::float32 || (real_threads && element == Element::float16)) continue;
      const CudaShape of_64{1, 2, real_threads ? 34 : 270, 64, true};
      expect(compare_linear(kernel, of_64, element, {.aligned = true}), element);
    }
  });
}

#ifndef __SANITIZE_THREAD__

// More than 256 tokens are summed in parts, which are merged.
TEST(CudaSmall, PartsOfTheTokensAreMerged) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : linear_kernels()) {
      SCOPED_TRACE(kernel.name);
      const bool chosen =
          kernel.map == cpu::PointMap::plus_minus_exponential || kernel.map == cpu::PointMap::relu;
      if (!chosen || element == Element::float16) continue;
      expect(compare_linear(kernel, {1, 1, 270, 8, true}, element), element);
      expect(compare_linear(kernel, {1, 1, 600, 8, true}, element, {.causal = true}), element);
      expect(compare_linear_gradients(kernel, {1, 1, 270, 8, true}, element), element);
      expect(compare_linear_gradients(kernel, {1, 1, 600, 8, true}, element, {.causal = true}), element);
    }
  });
}

constexpr CudaShape all_real{1, 1, 35, 18}; // causal, the first token does not attend to the second's NaN

TEST(CudaSmall, ANanInARealKeyReachesWhatItDoesByTheDefinition) {
  in_every_order([](const Element element) {
    expect(compare_hydra(all_real, element, {.nan_in_key = true, .causal = true}), element);
    for (const bool causal : {false, true})
      expect(compare_hydra(shape, element, {.nan_in_key = true, .causal = causal}), element);
    for (const LinearKernel& kernel : linear_kernels()) {
      SCOPED_TRACE(kernel.name);
      if (!is_run(kernel, element)) continue;
      for (const bool causal : {false, true})
        expect(compare_linear(kernel, shape, element, {.nan_in_key = true, .causal = causal}), element);
      expect(compare_linear(kernel, all_real, element, {.nan_in_key = true, .causal = true}), element);
      if (kernel.map == cpu::PointMap::plus_minus_exponential)
        for (const bool masked : {false, true}) // masked rows are 0 beside means of NaN
          expect(
              compare_linear(kernel, {1, 1, 35, 64, masked}, element, {.nan_in_key = true, .aligned = true}),
              element);
      for (const bool causal : {false, true})
        if (element != Element::float16)
          expect(compare_linear_gradients(kernel, shape, element, {.nan_in_key = true, .causal = causal}),
                 element);
    }
  });
}

TEST(CudaSmall, TakesFloat32QueriesAndKeysBesideBfloat16Values) {
  for (const LinearKernel& kernel : linear_kernels()) {
    SCOPED_TRACE(kernel.name);
    if (!kernel.normalised) continue;
    for (const bool causal : {false, true})
      expect(compare_linear(kernel, shape, Element::bfloat16, {.float_inputs = true, .causal = causal}),
             Element::bfloat16);
    for (const bool causal : {false, true})
      expect(compare_linear_gradients(kernel, shape, Element::bfloat16,
                                      {.float_inputs = true, .causal = causal}),
             Element::bfloat16);
  }
}

// Kernels whose features lie apart by many powers of ten.
std::vector<LinearKernel> kernels_of_a_wide_range() {
  std::vector<LinearKernel> chosen;
  for (LinearKernel kernel : linear_kernels()) {
    if (kernel.map != cpu::PointMap::exponential && kernel.map != cpu::PointMap::plus_minus_exponential)
      continue;
    kernel.scale = 30;
    chosen.push_back(kernel);
  }
  return chosen;
}

// Later keys whose features are larger by many powers of ten do not spoil what the tokens before attend to.
TEST(CudaSmall, CausalAttentionOfAWideRangeIsTheDefinition) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : kernels_of_a_wide_range()) {
      SCOPED_TRACE(kernel.name);
      expect(compare_linear(kernel, {1, 1, 300, 8, true}, element, {.causal = true}), element);
    }
  });
}

// Nor do they overflow where they are in another part of the sums than smaller ones.
TEST(CudaSmall, PartsOfAWideRangeAreMerged) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : kernels_of_a_wide_range()) {
      SCOPED_TRACE(kernel.name);
      expect(compare_linear(kernel, {1, 1, 1100, 8, true}, element), element);
    }
  });
}

// Of two features some queries have none above 0. That they are counted as the definition does is compared,
// too.
TEST(CudaSmall, DenominatorsOfZeroAreCounted) {
  in_every_order([](const Element element) {
    for (const LinearKernel& kernel : linear_kernels()) {
      SCOPED_TRACE(kernel.name);
      if (!kernel.normalised || kernel.map != cpu::PointMap::relu) continue;
      for (const bool causal : {false, true})
        expect(compare_linear(kernel, {1, 1, 35, 2, true}, element, {.causal = causal}), element);
    }
  });
}

TEST(CudaSmall, CausalGradientsOfAWideRangeAreTheDefinition) {
  for (const LinearKernel& kernel : kernels_of_a_wide_range())
    for (const Element element : {Element::float32, Element::bfloat16}) {
      SCOPED_TRACE(kernel.name);
      expect(compare_linear_gradients(kernel, {1, 1, 100, 8, true}, element, {.causal = true}), element);
    }
}

// Normalised attention to one token gives back its value: no gradient reaches q and k.
TEST(CudaSmall, RoundingDoesNotRemainWhereGradientsCancel) {
  for (const LinearKernel& kernel : linear_kernels())
    for (const Element element : {Element::float32, Element::bfloat16}) {
      SCOPED_TRACE(kernel.name);
      if (!kernel.normalised) continue;
      const Comparison comparison = compare_linear_gradients(kernel, {1, 2, 1, 64}, element);
      EXPECT_EQ(comparison.message, "");
      EXPECT_LT(comparison.error, element == Element::float32 ? 1e-5 : 5e-3); // that of v
    }
}

#endif

} // namespace
} // namespace hydrascope
