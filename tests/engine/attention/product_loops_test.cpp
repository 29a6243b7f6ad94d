// The loops' matrix products against sums in double precision, for every kind of processor that this machine
// can be: depths that tiles take whole, in part and not at all.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/attention/simd/cpu/product.h"
#include "engine/attention/simd/loop_types.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

// (rows,columns) of numbers that bfloat16 holds exactly.
std::vector<float> matrix(const std::int64_t rows, const std::int64_t columns, const double phase) {
  return testing_inputs::Sequence(1, rows, columns, phase).floats;
}

// As many bytes as floats would take, at a register's boundary.
struct Factors {
  struct alignas(64) Lanes {
    float values[cpu::most_lanes];
  };
  explicit Factors(const std::size_t count) : lanes(count / cpu::most_lanes + 1) {}
  void* data() { return lanes.data(); }
  std::vector<Lanes> lanes;
};

TEST(ProductLoops, AreAsSumsInDoublePrecision) {
  for (const cpu::Processor processor : cpu::processors())
    for (const std::int64_t rows : {4, 16, 64})
      for (const std::int64_t depth : {16, 32, 48, 144, 272})
        for (const std::int64_t width : {16, 48, 64}) {
          SCOPED_TRACE(std::string(cpu::name_of(processor)) + ", " + std::to_string(rows) + " × " +
                       std::to_string(depth) + " × " + std::to_string(width));
          const cpu::ProductLoops& loops = cpu::product_loops(processor);
          const std::vector<float> a = matrix(rows, depth, 0), b = matrix(depth, width, 1),
                                   turned = matrix(depth, rows, 2);
          Factors left(a.size()), right(b.size()), columns(turned.size());
          std::vector<float> product(static_cast<std::size_t>(rows * width), NAN), sums(product.size(), 1);
          loops.make_left(a.data(), rows, depth, left.data());
          loops.make_right(b.data(), depth, width, right.data());
          loops.rows_times(left.data(), rows, depth, right.data(), width, product.data());
          double worst = 0;
          const auto compare = [&](const std::vector<float>& found, const auto& a_at, const double before) {
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t f = 0; f < width; ++f) {
                double sum = before;
                for (std::int64_t k = 0; k < depth; ++k)
                  sum += static_cast<double>(a_at(i, k)) * b[static_cast<std::size_t>(k * width + f)];
                worst = std::max(
                    worst, testing_inputs::error_of(found[static_cast<std::size_t>(i * width + f)], sum));
              }
          };
          compare(
              product, [&](auto i, auto k) { return a[static_cast<std::size_t>(i * depth + k)]; }, 0);
          if (rows % cpu::most_lanes == 0) { // its rows are a right factor's
            loops.make_right(turned.data(), depth, rows, columns.data());
            loops.add_columns_times(columns.data(), depth, rows, right.data(), width, sums.data());
            compare(
                sums, [&](auto i, auto k) { return turned[static_cast<std::size_t>(k * rows + i)]; }, 1);
          }
          // Products up to 9; of the largest sum, 272 · 9, a float's last bit is 2.4e-4.
          EXPECT_LT(worst, 1e-6 * 9 * static_cast<double>(depth));
        }
}

} // namespace
} // namespace hydrascope
