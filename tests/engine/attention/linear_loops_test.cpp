// The fused loops of normalised linear attention, for every kind of processor that this machine can be,
// against the definition in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/attention/linear/cpu/linear.h"
#include "tests/engine/attention/linear_definition.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

using cpu::Element, cpu::LinearLoops, cpu::LinearMap, cpu::PointMap, cpu::Rows;
using testing_inputs::defined_linear_attention, testing_inputs::DefinedOutput, testing_inputs::error_of,
    testing_inputs::every_third_masked, testing_inputs::head_of, testing_inputs::Sequence;

struct Variant {
  const char* name;
  const LinearLoops* loops;
  // Of outputs within ±3, and of those without a denominator, which are tokens times as large: three times
  // what is measured over all maps and widths, 5.6e-6 and 9.1e-6, with bfloat16 products 0.011 and 0.11.
  double tolerance, tolerance_unnormalised;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const cpu::Processor processor : cpu::processors()) {
    const bool rounds = cpu::has_bfloat16_products(processor);
    all.push_back({cpu::name_of(processor), &cpu::linear_loops(processor), rounds ? 0.033 : 1.7e-5,
                   rounds ? 0.33 : 2.8e-5});
  }
  return all;
}

constexpr std::int64_t tokens = 37;

// W and b of one head, padded with what must not be looked at.
struct Projection {
  Projection(std::int64_t in, std::int64_t out)
      : stride(cpu::padded_to_lanes(out)),
        weight(static_cast<std::size_t>(cpu::padded_to_lanes(in) * stride)),
        bias(static_cast<std::size_t>(stride)) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        weight[static_cast<std::size_t>(i * stride + o)] = static_cast<float>(
            std::sin(static_cast<double>(i * 31 + o * 17)) / std::sqrt(static_cast<double>(in)) / 3);
    for (std::int64_t o = 0; o < out; ++o)
      bias[static_cast<std::size_t>(o)] = static_cast<float>(0.1 * std::cos(static_cast<double>(o)));
  }

  std::int64_t stride;
  std::vector<float> weight, bias;
};

struct Buffers {
  Buffers(const LinearMap& map, std::int64_t value_width)
      : space(static_cast<std::size_t>(cpu::buffer_floats(map, value_width)),
              std::numeric_limits<float>::quiet_NaN()),
        sums(map, value_width) {}
  std::vector<float> space;
  cpu::KeySums sums;
};

// Of the second head, all tokens in one range.
Sequence outputs_of(const LinearLoops& loops, const LinearMap& map, Sequence& q, Sequence& k, Sequence& v,
                    const Element element, const unsigned char* const mask, const std::int64_t count) {
  Sequence out(2, count, map.head_width, 3);
  Buffers buffers(map, map.head_width);
  auto& sums = buffers.sums;
  loops.add_keys(head_of(k, element), head_of(v, element), mask, {0, count}, map, {}, buffers.space.data(),
                 sums.values.data(), sums.totals.data(), sums.largest.data());
  loops.outputs(head_of(q, element), mask, {0, count}, map, sums.values.data(), sums.totals.data(),
                sums.largest.data(), {}, buffers.space.data(), head_of(out, Element::float32));
  return out;
}

TEST(LinearLoops, KeysAndOutputsAsDefinedOnEveryProcessor) {
  const std::vector<unsigned char> mask = every_third_masked(tokens);
  std::vector<float> token_weights;
  for (std::int64_t token = 0; token < 2 * tokens; ++token)
    token_weights.push_back(static_cast<float>(std::abs(std::sin(static_cast<double>(token)))));
  for (const auto& [width, outputs] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                       {5, 5},
                                       {16, 7},
                                       {24, 24},
                                       {64, 64},
                                       {64, 100},
                                       {80, 80}})
    for (const Element element : {Element::float32, Element::bfloat16})
      for (const PointMap point :
           {PointMap::plus_minus_exponential, PointMap::exponential, PointMap::softmax,
            PointMap::plus_minus_softmax, PointMap::joint_softmax, PointMap::one_plus_elu, PointMap::relu,
            PointMap::relu_token_weighted, PointMap::unit, PointMap::taylor})
        for (const bool projects : {false, true})
          for (const Variant& variant : variants()) {
            if (!projects && outputs != width) continue;
            SCOPED_TRACE(std::string(variant.name) + ", " + std::to_string(width) + " to " +
                         std::to_string(outputs) + ", map " + std::to_string(static_cast<int>(point)) +
                         (projects ? ", projected" : "") + (element == Element::float32 ? "" : ", bfloat16"));
            Sequence q(2, tokens, width, 0), k(2, tokens, width, 1), v(2, tokens, width, 2);
            Sequence out(2, tokens, width, 3);
            const Projection projection(width, outputs);
            LinearMap map{.map = point, .head_width = width, .outputs = outputs, .scale = 0.5F};
            // (Taylor's products would be large and cancel.)
            map.half_square = point == PointMap::taylor ? 0 : 0.01F;
            map.normalised = point != PointMap::unit; // its weights are of both signs
            map.token_weights = token_weights.data();
            if (projects) {
              map.weight = projection.weight.data();
              map.bias = projection.bias.data();
            }
            for (Sequence* x : {&k, &v})
              x->floats[static_cast<std::size_t>(tokens * width)] =
                  std::numeric_limits<float>::quiet_NaN(); // masked, with its token
            Buffers buffers(map, width);
            auto& sums = buffers.sums;
            const cpu::TokenRange steps[] = {{0, 1}, {1, 20}, {20, tokens}}; // the first without a real token
            for (const cpu::TokenRange& step : steps)
              variant.loops->add_keys(head_of(k, element), head_of(v, element), mask.data(), step, map, {},
                                      buffers.space.data(), sums.values.data(), sums.totals.data(),
                                      sums.largest.data());
            const std::int64_t zeros = variant.loops->outputs(
                head_of(q, element), mask.data(), {0, tokens}, map, sums.values.data(), sums.totals.data(),
                sums.largest.data(), {}, buffers.space.data(), head_of(out, Element::float32));

            const DefinedOutput expected = defined_linear_attention(map, q, k, v, 1, mask.data());
            double worst = 0;
            for (std::int64_t i = 0; i < tokens; ++i)
              for (std::int64_t f = 0; f < width; ++f)
                worst = std::max(worst, error_of(out.at(i, width + f),
                                                 expected.out[static_cast<std::size_t>(i * width + f)]));
            EXPECT_LT(worst, map.normalised ? variant.tolerance : variant.tolerance_unnormalised);
            EXPECT_EQ(zeros, expected.zero_denominators);
          }
}

// Blocks of 64, 64 and 22 tokens in one range, without a mask, whose rows need not be copied before the
// product with W.
TEST(LinearLoops, RowsAreTakenWhereTheyLie) {
  constexpr std::int64_t many = 150;
  for (const std::int64_t width : {16, 48, 64})
    for (const Element element : {Element::float32, Element::bfloat16})
      for (const PointMap point :
           {PointMap::plus_minus_exponential, PointMap::one_plus_elu, PointMap::softmax, PointMap::taylor})
        for (const bool biased : {false, true})
          for (const Variant& variant : variants()) {
            SCOPED_TRACE(std::string(variant.name) + ", " + std::to_string(width) + ", map " +
                         std::to_string(static_cast<int>(point)) + (biased ? ", biased" : "") +
                         (element == Element::float32 ? "" : ", bfloat16"));
            Sequence q(2, many, width, 0), k(2, many, width, 1), v(2, many, width, 2);
            const Projection projection(width, width);
            LinearMap map{.map = point, .head_width = width, .outputs = width};
            map.weight = projection.weight.data();
            if (biased) map.bias = projection.bias.data();
            const Sequence out = outputs_of(*variant.loops, map, q, k, v, element, nullptr, many);
            const DefinedOutput expected = defined_linear_attention(map, q, k, v, 1, nullptr);
            double worst = 0;
            for (std::int64_t i = 0; i < many; ++i)
              for (std::int64_t f = 0; f < width; ++f)
                worst = std::max(worst, error_of(out.at(i, width + f),
                                                 expected.out[static_cast<std::size_t>(i * width + f)]));
            EXPECT_LT(worst, variant.tolerance);
          }
}

// Tiles round the same numbers as registers do, so only the order of sums differs, and features whose last
// bit that changes. Whole blocks, blocks with masked tokens and what is left of 150 tokens.
TEST(LinearLoops, TilesGiveWhatRegistersGive) {
  if (cpu::processors().back() != cpu::Processor::amx) GTEST_SKIP() << "this processor has no AMX";
  constexpr std::int64_t many = 150;
  std::vector<float> token_weights;
  for (std::int64_t token = 0; token < 2 * many; ++token)
    token_weights.push_back(static_cast<float>(std::abs(std::sin(static_cast<double>(token)))));
  std::vector<unsigned char> mask(many, 1);
  for (std::size_t i = 64; i < 80; ++i) mask[i] = 0; // leaves 48 tokens of the second block
  for (const std::int64_t width : {32, 64, 96})
    for (const PointMap point :
         {PointMap::plus_minus_exponential, PointMap::exponential, PointMap::softmax,
          PointMap::plus_minus_softmax, PointMap::joint_softmax, PointMap::one_plus_elu, PointMap::relu,
          PointMap::relu_token_weighted, PointMap::unit, PointMap::taylor})
      for (const float half_square : {0.0F, 0.01F})
        for (const unsigned char* const masked :
             std::initializer_list<const unsigned char*>{nullptr, mask.data()}) {
          SCOPED_TRACE(std::to_string(width) + ", map " + std::to_string(static_cast<int>(point)) +
                       (masked == nullptr ? "" : ", masked"));
          Sequence q(2, many, width, 0), k(2, many, width, 1), v(2, many, width, 2);
          const Projection projection(width, width);
          LinearMap map{.map = point, .head_width = width, .outputs = width, .scale = 0.5F};
          map.half_square = point == PointMap::taylor ? 0 : half_square;
          map.normalised = point != PointMap::unit;
          map.token_weights = token_weights.data();
          map.weight = projection.weight.data();
          const auto with = [&](const cpu::Processor processor) {
            return outputs_of(cpu::linear_loops(processor), map, q, k, v, Element::bfloat16, masked, many);
          };
          const Sequence tiles = with(cpu::Processor::amx), registers = with(cpu::Processor::avx512bf16);
          double worst = 0;
          for (std::int64_t i = 0; i < many; ++i)
            for (std::int64_t f = 0; f < width; ++f)
              worst = std::max(worst, error_of(tiles.at(i, width + f), registers.at(i, width + f)));
          EXPECT_LT(worst, 1e-3);
        }
}

// e^1000 and e^−1000 among the features: only their ratios count.
TEST(LinearLoops, TakeLogarithmsOfAnySize) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Sequence q(2, tokens, 16, 0), k(2, tokens, 16, 1), v(2, tokens, 16, 2), out(2, tokens, 16, 3);
    for (Sequence* x : {&q, &k})
      for (float& value : x->floats) value *= 100;
    const LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = 16, .outputs = 16};
    Buffers buffers(map, 16);
    auto& sums = buffers.sums;
    variant.loops->add_keys(head_of(k, Element::float32), head_of(v, Element::float32), nullptr, {0, tokens},
                            map, {}, buffers.space.data(), sums.values.data(), sums.totals.data(),
                            sums.largest.data());
    variant.loops->outputs(head_of(q, Element::float32), nullptr, {0, tokens}, map, sums.values.data(),
                           sums.totals.data(), sums.largest.data(), {}, buffers.space.data(),
                           head_of(out, Element::float32));
    for (std::int64_t i = 0; i < tokens; ++i) {
      // The logarithm of the weight of key j is the largest of q_f + k_f and −q_f − k_f, but for what is
      // e^−50 of it.
      std::array<double, tokens> score{};
      for (std::int64_t j = 0; j < tokens; ++j)
        for (std::int64_t f = 16; f < 32; ++f)
          score.at(static_cast<std::size_t>(j)) =
              std::max(score.at(static_cast<std::size_t>(j)), std::abs(q.at(i, f) + k.at(j, f)));
      const double top = *std::ranges::max_element(score);
      double total = 0, value = 0;
      for (std::int64_t j = 0; j < tokens; ++j) {
        double weight = 0;
        for (std::int64_t f = 16; f < 32; ++f)
          for (const double sign : {1.0, -1.0}) weight += std::exp(sign * (q.at(i, f) + k.at(j, f)) - top);
        total += weight;
        value += weight * v.at(j, 16);
      }
      EXPECT_NEAR(out.at(i, 16), value / total, variant.tolerance);
    }
  }
}

TEST(LinearLoops, PartsOfTheKeysAddUp) {
  Sequence k(2, tokens, 24, 1), v(2, tokens, 24, 2);
  const LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = 24, .outputs = 24};
  const Rows keys = head_of(k, Element::float32), values = head_of(v, Element::float32);
  std::vector<cpu::KeySums> parts(3, cpu::KeySums(map, 24)); // the last has no keys
  std::vector<cpu::KeySums> whole(1, cpu::KeySums(map, 24));
  const auto add = [&](const cpu::TokenRange range, cpu::KeySums& sums) {
    const cpu::KeyHead head{keys, values, map, &sums};
    cpu::add_keys({&head, 1}, nullptr, range, cpu::best_processor(false));
  };
  add({0, 10}, parts[0]);
  add({10, tokens}, parts[1]);
  add({0, tokens}, whole[0]);
  cpu::merge(parts);
  cpu::merge(whole);
  const cpu::KeySums &sum = parts.front(), &expected = whole.front();
  EXPECT_EQ(sum.largest, expected.largest);
  for (std::size_t i = 0; i < sum.values.size(); ++i) EXPECT_NEAR(sum.values[i], expected.values[i], 2e-5);
  for (std::size_t i = 0; i < sum.totals.size(); ++i) EXPECT_NEAR(sum.totals[i], expected.totals[i], 2e-5);
}

// What is requested from memory ahead must not change what is computed: blocks of three heads in turn, side
// by side or one after another, give bit for bit what each head gives alone. Rows that are copied first, and
// rows that are taken where they lie; each head with a projection of its own.
TEST(LinearLoops, HeadsTogetherGiveWhatEachGives) {
  constexpr std::int64_t heads = 3, many = 300;
  const std::vector<unsigned char> masked = every_third_masked(many);
  for (const std::int64_t width : {24, 32})
    for (const bool side_by_side : {false, true})
      for (const unsigned char* const mask : {masked.data(), static_cast<const unsigned char*>(nullptr)})
        for (const Element element : {Element::float32, Element::bfloat16}) {
          const bool bfloat16 = element == Element::bfloat16;
          SCOPED_TRACE(std::to_string(width) + (side_by_side ? ", side by side" : ", one after another") +
                       (mask != nullptr ? ", masked" : "") + (bfloat16 ? ", bfloat16" : ""));
          const cpu::Processor processor = cpu::best_processor(bfloat16);
          Sequence q(heads, many, width, 0), k(heads, many, width, 1), v(heads, many, width, 2);
          const auto rows_of = [&](Sequence& x, const std::int64_t head) {
            Rows rows = x.rows(element);
            rows.heads = 1;
            rows.head_stride = width;
            if (side_by_side) rows.token_stride = heads * width;
            rows.data = static_cast<std::byte*>(rows.data) +
                        head * (side_by_side ? width : many * width) * (bfloat16 ? 2 : 4);
            return rows;
          };
          LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = width, .outputs = width};
          std::vector<Projection> projections(heads, Projection(width, width));
          std::vector<cpu::KeySums> sums(heads, cpu::KeySums(map, width)), expected_sums = sums;
          Sequence out(heads, many, width, 3), expected(heads, many, width, 4);
          std::vector<cpu::KeyHead> keys;
          std::vector<cpu::QueryHead> queries;
          std::int64_t zeros = 0;
          for (std::int64_t head = 0; head < heads; ++head) {
            const auto at = static_cast<std::size_t>(head);
            for (float& weight : projections[at].weight) weight *= static_cast<float>(head + 1);
            map.weight = projections[at].weight.data();
            keys.push_back({rows_of(k, head), rows_of(v, head), map, &sums[at]});
            queries.push_back({rows_of(q, head), map, &sums[at], rows_of(out, head)});
            const cpu::KeyHead key{keys.back().k, keys.back().v, map, &expected_sums[at]};
            cpu::add_keys({&key, 1}, mask, {0, many}, processor);
            const cpu::QueryHead query{queries.back().q, map, &expected_sums[at], rows_of(expected, head)};
            zeros += cpu::linear_outputs({&query, 1}, mask, {0, many}, processor);
          }
          cpu::add_keys(keys, mask, {0, many}, processor);
          cpu::add_keys(keys, mask, {many, many}, processor); // of no tokens
          EXPECT_EQ(cpu::linear_outputs(queries, mask, {0, many}, processor), zeros);
          EXPECT_TRUE(bfloat16 ? out.halves == expected.halves : out.floats == expected.floats);
        }
}

// Denominators whose reciprocal is infinite (5e-40) or subnormal (1e38). Products of bfloat16 numbers have no
// subnormal results.
TEST(LinearLoops, DividesByNumbersOfAnySize) {
  constexpr std::int64_t width = 16;
  for (const Variant& variant : variants())
    for (const float scale : {1e-21F, 4.5e17F}) {
      if (scale < 1 && variant.tolerance > 1e-3) continue;
      SCOPED_TRACE(std::string(variant.name) + ", " + std::to_string(scale));
      Sequence q(2, tokens, width, 0), k(2, tokens, width, 1), v(2, tokens, width, 2);
      const LinearMap map{.map = PointMap::relu, .head_width = width, .outputs = width, .scale = scale};
      const Sequence out = outputs_of(*variant.loops, map, q, k, v, Element::float32, nullptr, tokens);
      const DefinedOutput expected = defined_linear_attention(map, q, k, v, 1, nullptr);
      double worst = 0;
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t f = 0; f < width; ++f)
          worst = std::max(
              worst, error_of(out.at(i, width + f), expected.out[static_cast<std::size_t>(i * width + f)]));
      EXPECT_LT(worst, scale < 1 ? 5e-3 : variant.tolerance); // subnormal products have fewer digits
    }
}

} // namespace
} // namespace hydrascope
