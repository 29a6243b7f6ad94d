// Each quantity of heads against its definition in float64, on weights that are known: one row for each
// quantity.
#include <cmath>
#include <functional>
#include <map>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/quantities/head_reader.h"

namespace hydrascope {
namespace {

// Two heads over a class token and 2 × 3 patches: one attends everywhere alike, the other by random q and k.
AttentionInput patches() {
  at::manual_seed(7);
  AttentionInput input;
  input.q = at::randn({1, 2, 7, 4});
  input.k = at::randn({1, 2, 7, 4});
  input.v = at::randn({1, 2, 7, 4});
  input.q[0][0].zero_();
  input.layout = {.prefix = 1, .rows = 2, .columns = 3};
  return input;
}

// Softmax's weight of head, query and key.
using Weights = std::function<double(int head, int query, int key)>;

double mean_over_rows(int first, const std::function<double(int)>& of_row) {
  double sum = 0;
  for (int row = first; row < 7; ++row) sum += of_row(row);
  return sum / (7 - first);
}

double sum_over_keys(int first, const std::function<double(int)>& of_key) {
  double sum = 0;
  for (int key = first; key < 7; ++key) sum += of_key(key);
  return sum;
}

double patch_distance(int a, int b) {
  return std::hypot((a - 1) / 3 - (b - 1) / 3, (a - 1) % 3 - (b - 1) % 3);
}

using Definition = std::function<double(const Weights& weight, int head)>;

// Of softmax itself; a quantity without a row fails.
const std::map<std::string, Definition> definitions = {
    {"entropy",
     [](const Weights& weight, int head) {
       return mean_over_rows(0, [&](int row) {
         return sum_over_keys(
             0, [&](int key) { return -weight(head, row, key) * std::log(weight(head, row, key)); });
       });
     }},
    {"kl", [](const Weights&, int) { return 0.0; }},
    {"monotonicity", [](const Weights&, int head) { return head == 0 ? 0.0 : 1.0; }}, // constant rows: 0
    {"change", [](const Weights&, int) { return 0.0; }},                              // its relative error
    {"distance",
     [](const Weights& weight, int head) {
       return mean_over_rows(1, [&](int row) {
         return sum_over_keys(1, [&](int key) { return weight(head, row, key) * patch_distance(row, key); }) /
                sum_over_keys(1, [&](int key) { return weight(head, row, key); });
       });
     }},
    {"sink", [](const Weights& weight, int head) {
       return mean_over_rows(0, [&](int row) { return weight(head, row, 0); });
     }}};

TEST(HeadQuantities, AgreeWithTheirDefinitions) {
  const AttentionInput input = patches();
  const at::Tensor scores = at::matmul(input.q.to(at::kDouble), input.k.to(at::kDouble).transpose(2, 3)) / 2;
  const at::Tensor softmax = at::softmax(scores, -1);
  const Weights weight = [&](int head, int query, int key) {
    return softmax[0][head][query][key].item<double>();
  };
  LayerKernel kernel;
  kernel.kernel = make_kernel({});
  for (const HeadQuantity& quantity : head_quantities()) {
    const auto row = definitions.find(quantity.info.name);
    ASSERT_NE(row, definitions.end()) << quantity.info.name << " has no row in this table";
    const HeadQuantity* const asked = &quantity;
    const HeadValues read = read_heads({&asked, 1}, input, {&kernel, 1}).front().values.front();
    for (int head = 0; head < 2; ++head) {
      const at::Tensor value = read.values[0][head];
      EXPECT_NEAR(value.dim() == 0 ? value.item<double>() : value[-1].item<double>(),
                  row->second(weight, head), 1e-6)
          << quantity.info.name << ", head " << head;
    }
  }
}

TEST(HeadQuantities, UnknownNamesListTheKnownOnes) {
  try {
    head_quantity("spread");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("spread"), testing::HasSubstr("entropy")));
  }
}

} // namespace
} // namespace hydrascope
