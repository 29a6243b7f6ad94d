// Limits of the kernel `phi`: sources that would crash LibTorch, keep it busy for minutes or take any memory,
// and those near them that may do what they do.
#include <ctime>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/map_check.h"
#include "engine/attention/own/map_script.h"
#include "engine/attention/own/map_source.h"
#include "engine/measure/kernel_support.h"

namespace hydrascope {
namespace {

using testing::HasSubstr;

const LayerShape two_heads{.heads = 2, .head_width = 4};

// What the editor says of a source; "" if it runs.
std::string problem_of(const std::string& text) {
  const CheckedMap checked = check_map("typed", text, two_heads);
  return checked.problem ? checked.problem->reason : std::string();
}

std::string repeated(const std::string& text, const int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string map_with(const std::string& lines) {
  return "def phi(x):\n" + lines + "    return torch.relu(x)\n";
}

struct Refused {
  const char* name;
  std::string text;
  const char* reason; // part of it
};

TEST(OwnMapLimits, RefuseWhatWouldCrashOrHang) {
  const std::string half = "    a = torch.ones([6000, 6000], dtype=torch.bool).half()\n",
                    bytes = "    a = torch.ones([6000, 6000], dtype=torch.bool).char()\n";
  const auto product = [](const std::string& made, const std::string& of) {
    return "def phi(x):\n" + made + "    b = " + of + "\n    return torch.relu(x) + b[0, 0]\n";
  };
  const std::vector<Refused> all = {
      {"repeats that are negative",
       map_with("    y = torch.repeat_interleave(torch.tensor([1000000, -999990]), output_size=10)\n"
                "    x = x + y.sum()\n"),
       "a number of repeats is negative"},
      {"repeats of a tensor that are negative",
       map_with("    y = torch.ones([2]).repeat_interleave(torch.tensor([9, -8]), 0, output_size=1)\n"
                "    x = x + y.sum()\n"),
       "a number of repeats is negative"},
      {"an output of another size",
       map_with(
           "    y = torch.repeat_interleave(torch.tensor([2, 3]), output_size=4)\n    x = x + y.sum()\n"),
       "output_size is not the sum"},
      {"matrices of half precision", product(half, "a @ a"), "too long"},
      {"matrices of bytes", product(bytes, "torch.mm(a, a)"), "too long"},
      {"a layer of half precision", product(half, "F.linear(a, a)"), "too long"},
      {"a sum of products of bytes", product(bytes, "torch.einsum(\"ij, jk -> ik\", a, a)"), "too long"},
      {"batches of half precision", product(half, "(a[None] @ a[None, None])[0, 0]"), "too long"},
      {"a tuple of numbers in a tuple", map_with("    t = (1,)\n" + repeated("    t = (t, 1)\n", 60)),
       "too many tuples"},
      {"long tuples of numbers in each other",
       map_with("    t = (1,)\n" + repeated("    t = (t, t, " + repeated("1, ", 400) + ")\n", 11)),
       "too many tuples"},
      {"lists in lists", map_with("    t = " + repeated("[", 5000) + "1" + repeated("]", 5000) + "\n"),
       "too many tuples"},
      {"comparisons with None",
       map_with("    t: Optional[int] = None\n    b = t is None" + repeated(" and t is not None", 70) + "\n"),
       "64 comparisons with None"},
      {"questions about types",
       map_with("    t: Optional[int] = None\n    b = True" + repeated(" and isinstance(t, int)", 70) + "\n"),
       "64 comparisons with None"},
      {"break", map_with("    for j in range(3):\n        if x.dim() == j:\n            break\n"),
       "break and continue are not allowed"},
      {"continue", map_with("    for j in range(3):\n        if x.dim() == j:\n            continue\n"),
       "break and continue are not allowed"},
      {"a return in a loop",
       map_with("    for j in range(3):\n        if x.dim() == j:\n            return torch.relu(x)\n"),
       "a return within a loop"},
      {"an argument that is a number", "def phi(x: int):\n    return torch.ones([1]) * x\n",
       "the arguments of phi are tensors"},
      {"an argument that is a list", "def phi(x):\n    # type: (List[Tensor]) -> Tensor\n    return x[0]\n",
       "the arguments of phi are tensors"},
      {"a number of tokens as a number", "def phi(x, n: int):\n    return torch.relu(x) * n\n",
       "the arguments of phi are tensors"},
  };
  for (const Refused& one : all) EXPECT_THAT(problem_of(one.text), HasSubstr(one.reason)) << one.name;
}

TEST(OwnMapLimits, LeaveRoomForHonestMaps) {
  const std::vector<std::string> all = {
      // scores, with Python's usual infinity
      R"(def score(q, k):
    w = q @ k.mT
    w = w.masked_fill(w > 1e30, float("-inf"))
    return torch.softmax(w, -1)
)",
      // products of integers and of half precision
      R"(def phi(x):
    whole = torch.relu(x).to(torch.int64)
    ones = torch.ones([x.shape[-1], 2], dtype=torch.int64)
    y = torch.einsum("... d, d e -> ... e", whole, ones) + F.linear(whole, ones.t()) + whole @ ones
    return y.to(x.dtype)
)",
      // repeats that fit
      R"(def phi(x):
    y = x.repeat_interleave(torch.tensor([2]), 3, output_size=2 * x.shape[3])
    i = torch.repeat_interleave(torch.tensor([1, 0, 2]), output_size=3)
    return torch.relu(y) + i.sum() + x.repeat_interleave(torch.tensor([2, 0, 1, 1]), -1)[..., :1].abs()
)",
      // tuples, an optional number, and a loop over a tuple that is left early
      "def phi(x):\n    t = (1, 2)\n" + repeated("    t = (t[1], 1)\n", 10) +
          "    m: Optional[int] = None\n    if m is not None:\n        x = x + m\n"
          "    for a in (1, 2):\n        if x.dim() == a:\n            return torch.relu(x)\n"
          "    return torch.relu(x) * t[0]\n",
      "def phi(x: Tensor) -> Tensor:\n    return torch.relu(x)\n",
  };
  for (const std::string& text : all) EXPECT_EQ(problem_of(text), "") << text;
}

void use_processor(const double seconds) {
  const std::clock_t begin = std::clock();
  while (static_cast<double>(std::clock() - begin) < seconds * CLOCKS_PER_SEC) at::ones({100}).sum();
}

TEST(AllocationLimits, CountTheTimeOfTheOuterOneToo) {
  constexpr std::size_t bytes = std::size_t{1} << 40;
  constexpr double seconds = 0.02;
  const AllocationLimit outer(std::numeric_limits<std::size_t>::max(), seconds);
  EXPECT_NO_THROW(AllocationLimit::check_time());
  const AllocationLimit inner(bytes);
  EXPECT_THROW(use_processor(100 * seconds), std::exception);
  EXPECT_TRUE(inner.late());
  EXPECT_THROW(AllocationLimit::check_time(), std::exception);
}

TEST(AllocationLimits, CountProductsBeforeTheyAreComputed) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  constexpr double short_ones = 1e6, hours = 1e13;
  EXPECT_NO_THROW(AllocationLimit::count_products(hours)); // without a limit
  const AllocationLimit limit(bytes, 1);
  EXPECT_NO_THROW(AllocationLimit::count_products(short_ones));
  EXPECT_THROW(AllocationLimit::count_products(hours), std::exception);
  EXPECT_TRUE(limit.late());
  EXPECT_FALSE(limit.exceeded());
  EXPECT_FALSE(limit.no_memory());
}

// The window asks in its frames.
TEST(OwnMapLimits, AreKnownOnceASourceWasTried) {
  static int times = 17; // a source that no repetition of the test has tried
  const KernelSpec kernel =
      kernel_of_source("untried", fmt::format("def phi(x):\n    return torch.relu(x) + {}\n", ++times));
  EXPECT_FALSE(is_tried(kernel, two_heads));
  EXPECT_EQ(why_unsupported(kernel, two_heads), "");
  EXPECT_TRUE(is_tried(kernel, two_heads));
  const LayerShape other{.heads = 3, .head_width = 4};
  EXPECT_FALSE(is_tried(kernel, other));
  EXPECT_TRUE(is_tried({"hedgehog", {}}, other));
  EXPECT_TRUE(is_tried({"phi", {}}, other));
}

// A session may name a source that does not compile in each of its layers.
TEST(OwnMapLimits, AreFoundOnceWhereASourceDoesNotCompile) {
  const char* const text = "def phi(x):\n    return torch.relu(y)\n";
  const MapSource source = parse_map_source("broken", text);
  EXPECT_THROW(MapScript::of(source), SourceError);
  EXPECT_THROW(MapScript::compiled_before(source), SourceError);
  EXPECT_TRUE(is_tried(kernel_of_source("broken", text), two_heads));
}

// A text that a source raises says nothing of the device.
TEST(OwnMapLimits, AreNotThoseOfTheDeviceWhereASourceSaysSo) {
  for (const char* const said : {"illegal memory access", "out of memory", "std::bad_alloc"}) {
    const MapSource source = parse_map_source(
        "asserting",
        fmt::format("def phi(x):\n    assert x.shape[2] < 4, \"{}\"\n    return torch.relu(x)\n", said));
    const auto script = MapScript::of(source);
    EXPECT_THROW(script->map(Side::query, at::ones({1, 2, 4, 4}), {}, {}, {2, 4}), SourceError) << said;
  }
}

// Messages of the compiler quote the source.
TEST(OwnMapLimits, AreNotThoseOfTheMachineWhereALineThatDoesNotCompileSaysSo) {
  const MapSource source = parse_map_source(
      "quoted", "def phi(x):\n    return torch.relu(x, \"DefaultCPUAllocator: can't allocate memory\")\n");
  EXPECT_THROW(MapScript::of(source), SourceError);
}

} // namespace
} // namespace hydrascope
