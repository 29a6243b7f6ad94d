// Sources of the kernel `phi`: what they may contain, and what is said of those that are broken or hostile.
// What they compute is tested with all kernels (parity_test.cpp).
#include <exception>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/map_script.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/paths.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

using testing::HasSubstr, testing_inputs::make_input, testing_inputs::relative_error;

constexpr testing_inputs::Case shape{1, 2, 33, 16};

// What is said of a source that is typed, compiled and run on an input; "" if nothing is.
struct Said {
  int line = 0;
  std::string reason;
};
Said said_of(const std::string& text, const AttentionInput& input) {
  try {
    const KernelSpec spec = kernel_of_source("typed", text);
    const auto kernel = make_kernel(spec);
    const Support support = kernel->supports(shape_of(input));
    if (!support.ok) {
      int line = 0;
      if (support.reason.starts_with("line ")) line = std::stoi(support.reason.substr(5));
      return {line, support.reason};
    }
    kernel->run(input, kernel->initial_parameters({input.q.size(1), input.q.size(3)}));
    return {};
  } catch (const SourceError& error) {
    return {error.line(), error.reason()};
  }
}
Said said_of(const std::string& text) { return said_of(text, make_input(shape, 3)); }

struct Bad {
  const char* name;
  std::string text;
  int line;           // 0: none
  const char* reason; // part of it
};

std::string map_of(const std::string& body) { return "def phi(x):\n    " + body + "\n"; }

std::vector<Bad> bad_sources() {
  const std::string deep(7000, '('), closed(7000, ')'), signs(15000, '-');
  std::string doubled_text = "def phi(x):\n    s = torch.einsum(\"a\", x)\n    t = \"a\"\n";
  std::string nested_calls = "def f0(x):\n    return torch.relu(x)\n";
  for (int i = 1; i <= 40; ++i) {
    doubled_text += "    t = t + t\n";
    nested_calls += fmt::format("def f{0}(x):\n    return f{1}(f{1}(x))\n", i, i - 1);
  }
  std::string doubled_tuple = "def phi(x):\n    t0 = (x, x)\n",
              doubled_list = "def phi(x):\n    t0 = [1, 2.]\n", many_returns = "def phi(x):\n",
              nested_tuples = "def phi(x):\n", indentation = "    ";
  for (int i = 0; i < 40; ++i) {
    doubled_tuple += fmt::format("    t{} = (t{}, t{})\n", i + 1, i, i);
    doubled_list += fmt::format("    t{0} = [t{1}, [t{1}, 1]]\n", i + 1, i);
  }
  for (int i = 0; i < 300; ++i)
    many_returns += fmt::format("    if x.shape[0] == {}:\n        return x\n", i);
  for (int i = 0; i < 12; ++i, indentation += " ")
    nested_tuples += indentation + fmt::format("for a{} in (1, 2, 3, 4, 5, 6, 7, 8):\n", i);
  nested_tuples += indentation + "x = x + 1\n    return torch.relu(x)\n";
  for (std::string* text : {&doubled_tuple, &doubled_list, &many_returns})
    *text += "    return torch.relu(x)\n";
  doubled_text += "    return torch.relu(x)\n";
  nested_calls += "def phi(x):\n    return f40(x)\n";
  return {
      // syntax
      {"unclosed bracket", map_of("return torch.cat([x, -x, -1)"), 2, "expected ]"},
      {"no colon", "def phi(x)\n    return x\n", 0, "expected"},
      {"bad indentation", "def phi(x):\nreturn x\n", 2, "outside functions"},
      {"unknown word", map_of("return x $ 2"), 2, ""},
      {"empty", "", 0, "neither phi(x) nor score(q, k)"},
      {"comment only", "# nothing\n", 0, "neither phi(x) nor score(q, k)"},
      {"a class", "class A:\n    pass\n", 1, "outside functions"},
      {"a control character", map_of("return x \x01"), 2, "control character"},
      {"too long", map_of("return x" + std::string(20000, ' ')), 0, "at most"},
      {"deep brackets", map_of("return " + deep + "x" + closed), 0, ""},
      // What LibTorch's compiler or interpreter crashes on.
      {"no index", map_of("return torch.cat([x, -x[]], -1)"), 2, "an index is missing in []"},
      {"an index of a type is missing", "def f(x: Optional[]):\n    return x\n" + map_of("return f(x)"), 1,
       "an index is missing in []"},
      {"a constant divided by zero", map_of("return x * (1 % 0)"), 2, "divided by zero"},
      {"a remainder by zero", map_of("return x * (7 % (x.shape[0] - 1))"), 2, "divided by zero"},
      {"a division that overflows", map_of("return x * ((-9223372036854775807 - x.shape[0]) // -1)"), 2,
       "overflows"},
      {"divmod that overflows", map_of("a, b = divmod(-9223372036854775807 - 1, -1)\n    return x * a"), 2,
       "divmod is not allowed"},
      {"elements that are truncated",
       map_of("return x * torch.div(torch.tensor(-9223372036854775807 - 1), torch.tensor(-1), "
              "rounding_mode=\"trunc\")"),
       2, "write torch.trunc(a / b)"},
      {"a method that LibTorch divides in", map_of("return x * x.gcd(-9223372036854775807 - 1, -1)"), 2,
       "torch.gcd is not allowed"},
      {"a step of half an integer", map_of("return x + torch.arange(0., 1., 0.5, dtype=torch.int64).sum()"),
       2, "the step of integers is less than 1"},
      {"a range that overflows", map_of("return x + torch.arange(9223372036854775807, -1, -1).sum()"), 2,
       "beyond 2^53"},
      {"pieces of nothing", map_of("return torch.cat(x[..., :0].chunk(2147483648, -1), -1)"), 2,
       "4096 pieces"},
      {"pieces of a length", map_of("return torch.cat(torch.zeros([0, 1000000000]).split(1, 1), 1)"), 2,
       "4096 pieces"},
      {"one piece for each", map_of("return torch.stack(torch.zeros([0, 1000000000]).unbind(1), 1)"), 2,
       "4096 pieces"},
      {"pieces of nothing in a loop",
       "def phi(x):\n    for j in range(256):\n        y = torch.zeros([0, 4096]).unbind(1)\n        x = x + "
       "len(y)\n    return "
       "torch.relu(x)\n",
       3, "it takes more than"},
      {"a type that is none", map_of("return torch.relu(x).to(-1)"), 2, "a type must be written as"},
      {"a type that is computed", map_of("return torch.zeros([2], dtype=x.shape[0] - 2)"), 2,
       "a type must be written as"},
      {"a layout", map_of("return torch.ones_like(x, layout=99)"), 2, "layout is not allowed"},
      {"pinned memory", map_of("return x + torch.zeros([2], pin_memory=True).sum()"), 2,
       "pin_memory is not allowed"},
      {"a copy to no device", map_of("return torch.relu(x).to(None, copy=True)"), 2, "to() needs a type"},
      {"a list of floats and one of integers",
       map_of("return x + torch.tensor([[1., 1., 1.], [-1, -1, -1]]).sum()"), 2, "must be of one type"},
      {"repeats whose sum overflows",
       map_of("return x + torch.repeat_interleave(torch.tensor([9223372036854775807, 9223372036854775807, "
              "4])).sum()"),
       2, "more than 2^31 repeats"},
      {"repeats of a tensor that overflow",
       map_of("return x + x.repeat_interleave(torch.tensor([4611686018427387904]), 3).sum()"), 2,
       "more than 2^31 repeats"},
      {"a default that is computed", "def f(x, n: int = 7 % 0):\n    return x\n" + map_of("return f(x)"), 1,
       "an argument has no default"},
      {"a default that is huge",
       "def f(x, y=torch.ones([100000, 1000000])):\n    return x\n" + map_of("return f(x)"), 1,
       "an argument has no default"},
      {"differences of nothing",
       map_of("return x + torch.zeros([0, 1000000000000]).diff(1000000000000, 1).sum()"), 2,
       "16 differences"},
      {"many signs", map_of("return " + signs + "x"), 0, ""},
      // names
      {"unknown operator", "def phi(x):\n\n    return torch.expp(x)\n", 3,
       "there is no torch.expp; near it: torch.exp"},
      {"undefined name", map_of("return y"), 2, "undefined value y"},
      {"two functions", map_of("return x") + map_of("return -x"), 3, "phi is defined twice"},
      {"phi and score", map_of("return x") + "def score(q, k):\n    return q\n", 0, "both phi(x) and score"},
      {"unknown setting", "colour = True\n" + map_of("return x"), 1, "there is no setting \"colour\""},
      {"undeclared parameter", "def phi(x, W):\n    return x @ W\n", 1, "W is no parameter"},
      {"another import", "import os\n" + map_of("return x"), 1, "only torch, math"},
      {"a bad parameter",
       "parameters = {\"W\": (\"H q d\", \"identity\")}\ndef phi(x, W):\n    return x @ W\n", 1,
       "\"q\" is no length"},
      {"a bad start", "parameters = {\"W\": (\"H d d\", \"orthogonal\")}\ndef phi(x, W):\n    return x @ W\n",
       1, "cannot start as \"orthogonal\""},
      // shapes
      {"wrong rank", map_of("return x.sum()"), 0, "not (B,H,N,d′)"},
      {"other tokens", map_of("return torch.relu(x)[:, :, :1]"), 0, "not (B,H,N,d′)"},
      {"no tensor", map_of("return 3"), 0, ""},
      {"truth values", map_of("return x > 0"), 0, "returns Bool"},
      {"another device", map_of("return torch.relu(x).to(\"meta\")"), 2, "written as x.device"},
      {"weights without memory",
       map_of("return torch.relu(F.linear(x, torch.ones([8, x.shape[-1]]).to(\"meta\")))"), 2,
       "written as x.device"},
      {"a sum over the tokens", map_of("return torch.softmax(x, 2)"), 0, "depend on the other tokens"},
      {"the largest number of all", map_of("return x.amax() - x"), 0, "depend on the other tokens"},
      {"a sum of the earlier tokens", map_of("return torch.relu(x).cumsum(2)"), 0,
       "depend on the other tokens"},
      {"the number of tokens", map_of("return torch.relu(x) / x.shape[2]"), 0, "depend on the other tokens"},
      {"a sum over the queries", "def score(q, k):\n    return torch.softmax(q @ k.transpose(-1, -2), 2)\n",
       0, "depend on the other queries"},
      {"two tensors", map_of("return x, x"), 0, "does not return a tensor"},
      {"a product of wrong shapes", "def phi(x):\n    y = x\n    return y @ torch.ones([3, 3])\n", 3,
       "cannot be multiplied"},
      {"keys of another width",
       "def phi(x):\n    return torch.relu(x)\n\ndef phi_k(x):\n    return torch.relu(x)[..., :2]\n", 0,
       "queries have 16 features, keys 2"},
      {"a score without keys", "def score(q, k):\n    return torch.relu(q)\n", 0, "not (B,H,R,N)"},
      // time
      {"endless loop", "def phi(x):\n    while True:\n        x = x + 1\n    return x\n", 2,
       "while loops are not allowed"},
      {"loop of unknown length",
       "def phi(x):\n    for j in range(x.shape[0] * 1000000):\n        x = x + 1\n    return x\n", 2,
       "must be written as a number"},
      {"long loop", "def phi(x):\n    for j in range(1000000000):\n        x = x + 1\n    return x\n", 2,
       "256 turns"},
      {"nested loops",
       "def phi(x):\n    for j in range(100):\n        for l in range(100):\n            x = x + 1\n    "
       "return x\n",
       3, "256 turns"},
      {"nested loops over tuples", nested_tuples, 0, "loops over tuples"},
      {"a loop over a tuple with a name",
       "def phi(x):\n    t = (1, 2)\n    for a in t:\n        x = x + a\n    return torch.relu(x)\n", 3,
       "a loop goes over range"},
      {"a loop with two names",
       "def phi(x):\n    for a, b in zip((1, 2), (3, 4)):\n        x = x + a\n    return torch.relu(x)\n", 2,
       "in parentheses"},
      {"a tuple that doubles", doubled_tuple, 0, "too many tuples"},
      {"a list whose type doubles", doubled_list, 0, "too many tuples and lists"},
      {"a tuple of a tuple's parts", map_of("t = (x, x)\n    u = (*t, *t)\n    return torch.relu(u[0])"), 3,
       "a * in front"},
      {"a dictionary", map_of("t = {1: x}\n    return torch.relu(t[1])"), 2, "a dictionary is not allowed"},
      {"many returns", many_returns, 0, "64 returns"},
      {"recursion", map_of("return phi(x)"), 2, "recursive"},
      // memory
      {"a huge tensor", map_of("return x + torch.ones([1000000, 1000000]).sum()"), 2, "it takes more than"},
      {"a huge repetition", map_of("return x.repeat(1, 1, 1, 1000000000)"), 2, "it takes more than"},
      {"a huge list", map_of("y = [0] * 1000000000\n    return x + len(y)"), 2, "not allowed"},
      {"many features", map_of("return torch.relu(x).repeat(1, 1, 1, 5000)"), 0,
       "d′ = 80000 features for each token, and at most 65536"},
      {"growth in a loop",
       "def phi(x):\n    for j in range(40):\n        x = torch.cat([x, x], -1)\n    return torch.relu(x)\n",
       3, "it takes more than"},
      {"a text that doubles", doubled_text, 3, "a text may only be written as an argument"},
      {"a text that is padded", map_of("s = \"a\".ljust(68719476736)\n    return torch.relu(x)"), 2,
       "a text may"},
      {"a text of a number", map_of("s = str(5)\n    return torch.relu(x)"), 2, "str is not allowed"},
      {"a text by format", map_of("s = torch.format(\"{}\", 3)\n    return torch.relu(x)"), 2,
       "torch.format is not allowed"},
      {"a text by another operator", map_of("s = torch.chr(65)\n    return torch.relu(x)"), 2,
       "torch.chr is not allowed"},
      {"calls that multiply", nested_calls, 0, "10000 operators"},
      {"a huge parameter",
       "parameters = {\"W\": (\"H 2048 2048d\", \"zeros\", \"fixed\")}\ndef phi(x, W):\n    return "
       "torch.relu(x)\n",
       0, "W has more than 16777216 numbers"},
      {"huge parameters together",
       "parameters = {\"W\": (\"H 1024 3000\", \"zeros\"), \"V\": (\"H 1024 3000\", \"zeros\")}\ndef phi(x, "
       "W, V):\n"
       "    return torch.relu(x)\n",
       0, "more than 16777216 numbers together"},
      // files, output, other devices
      {"a file that is written", map_of("torch.save(x, \"stolen\")\n    return x"), 2,
       "torch.save is not allowed"},
      {"a file that is opened", map_of("return open(\"/etc/passwd\")"), 2, "open is not allowed"},
      {"a file as a tensor", map_of("return torch.from_file(\"/etc/passwd\", size=10)"), 2, "not allowed"},
      {"output", map_of("print(x)\n    return x"), 2, "print is not allowed"},
      {"chance", map_of("return torch.relu(x + torch.rand_like(x))"), 2, "torch.rand_like is not allowed"},
      {"views of foreign memory", map_of("return x.as_strided([1, 2, 33, 16], [1, 1, 1, 1], 1000000000)"), 2,
       "not allowed"},
      {"a sum of nothing", map_of("return x + torch.ones([1]).expand([1000000000000]).sum()"), 2,
       "not allowed"},
      // in place
      {"an addition in place", map_of("x.add_(1)\n    return x"), 2, "in place"},
      {"an assignment to elements", map_of("x[0] = 3\n    return x"), 2, "in place"},
      {"augmented assignment", map_of("x += 1\n    return x"), 2, "in place"},
      // values
      {"infinite", "def phi(x):\n    y = x - x\n    return 1 / y\n", 0, "infinite numbers or NaN"},
      {"not a number", "def phi(x):\n    y = torch.log(-1 - torch.relu(x))\n    return torch.relu(y)\n", 2,
       "torch.log gives infinite numbers or NaN"},
      {"negative", map_of("return torch.tanh(x)"), 2, "set signed = True"},
      {"an error of its own", map_of("assert x.shape[-1] == 3, \"d is not 3\"\n    return torch.relu(x)"), 2,
       "d is not 3"},
  };
}

TEST(OwnMap, SaysWhatIsWrongWithBrokenAndHostileSources) {
  const AttentionInput input = make_input(shape, 3),
                       before = {.q = input.q.clone(), .k = {}, .v = {}, .layer_input = {}, .mask = {}};
  EXPECT_GE(bad_sources().size(), 40U);
  for (const Bad& bad : bad_sources()) {
    const Said said = said_of(bad.text, input);
    EXPECT_FALSE(said.reason.empty()) << bad.name;
    EXPECT_THAT(said.reason, HasSubstr(bad.reason)) << bad.name;
    EXPECT_LT(said.reason.size(), 400U) << bad.name << ": " << said.reason;
    if (bad.line > 0) {
      EXPECT_EQ(said.line, bad.line) << bad.name << ": " << said.reason;
    }
  }
  EXPECT_TRUE(at::equal(input.q, before.q)); // nothing was changed in place
  EXPECT_FALSE(std::filesystem::exists("stolen"));
  EXPECT_EQ(said_of(map_of("return torch.relu(x)")).reason, "");
}

TEST(OwnMap, BlamesNoSourceForAnInputThatIsNotFinite) {
  AttentionInput input = make_input(shape, 3);
  input.q.select(2, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(said_of(map_of("return torch.relu(x)"), input).reason, "");
}

// Sums take time, and hardly any memory.
TEST(AllocationLimits, EndWhatTakesTooLong) {
  const at::Tensor x = at::ones({1000, 1000});
  constexpr std::size_t bytes = std::size_t{1} << 30;
  constexpr double seconds = 0.02;
  const AllocationLimit outer(bytes);
  {
    const AllocationLimit limit(bytes, seconds);
    EXPECT_THROW(for (int i = 0; i < 1'000'000; ++i) x.sum(), std::exception);
    EXPECT_TRUE(limit.late());
    EXPECT_FALSE(limit.exceeded());
  }
  EXPECT_FALSE(outer.late());
  EXPECT_EQ(x.sum().item<float>(), 1e6F);
}

TEST(OwnMap, ReadsALineFromManyDigits) {
  const std::string digits(15000, '1');
  const Said said = said_of("def phi(x):\n    assert x.shape[0] == 5, 'File \"<string>\", line " + digits +
                            "'\n    return torch.relu(x)\n");
  EXPECT_THAT(said.reason, HasSubstr(digits));
}

// What all weights of a row have in common cancels, whatever other rows there are.
TEST(OwnMap, MayScaleTheWeightsOfAllQueries) {
  const std::string begin = "def score(q, k):\n    w = q @ k.transpose(-1, -2)\n";
  EXPECT_EQ(said_of(begin + "    return (w - w.amax()).exp()\n").reason, "");
  EXPECT_EQ(said_of("logarithm = True\n" + begin + "    return w - w.amax()\n").reason, "");
}

TEST(OwnMap, MayUseHelpersConstantsAndLoops) {
  const std::string text = R"(import math
import torch
import torch.nn.functional as F

def scaled(y, factor: float):
    return y * factor

def phi(x):
    for j in range(3):
        x = x + 1
    for (j, factor) in enumerate((0.5, 2.0)):
        x = x * factor
    y = F.relu(scaled(x, math.pi)) + torch.nn.functional.softplus(x)
    y = y * (-7 // 2 + 5 + -7 % 3) + x % 2.0 - torch.div(x, 2, rounding_mode="floor")
    if x.shape[-1] > 4:
        kind = torch.float64 if x.shape[-1] > 5 else y.dtype
        y = y.to(kind).half().float().contiguous() + torch.ones([1], dtype=y.dtype).int()
    a, b = x.chunk(2, -1)
    e, f = x.split([1, x.shape[-1] - 1], -1)
    c, d = torch.split(torch.cat([b, a], -1), x.shape[-1] // 2, -1)
    y = y + torch.cat([d, c], -1) - torch.stack(x.unbind(-1), -1)
    for a in (0.5, 2.0):
        y = y * a
    y = torch.cat([y, y * 2], -1)[..., ::2]
    z = x.repeat_interleave(torch.tensor([2]), 3)[..., ::2] + x.repeat_interleave(2, -1)[..., ::2]
    z = z + x.diff(2, -1).sum(-1, keepdim=True) + torch.softmax(x, -1) + F.layer_norm(x, [x.shape[-1]])
    y = y + z.abs() + torch.zeros([2], device=x.device).sum().to(x.device) + torch.ones_like(x).to(dtype=x.dtype)
    y = y * torch.tensor([[1., 2.], [3., 4.]]).sum() + torch.tensor(1) + torch.tensor([True])
    return torch.cat([y, y * math.sqrt(2.0)], dim=-1)
)";
  EXPECT_EQ(said_of(text).reason, "");
}

// Brackets, # and def in them are no source.
TEST(OwnMap, MayHaveTextsThatLookLikeSource) {
  const std::string text = R"(def scaled(x):
    """Half of x,
def g(x):
  (or so, # of it
"""
    assert x.dim() == 4, "x is (B,H,N,d"
    return x / 2  # don't

def phi(x):
    '''# one line"'''
    assert x.dim() == 4, 'it\'s [not # (B,H,N,d'
    return torch.relu(scaled(x))
)";
  EXPECT_EQ(said_of(text).reason, "");
  std::vector<std::string> names;
  for (const MapSource::Function& one : parse_map_source("typed", text).functions) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scaled", "phi"}));
}

TEST(OwnMap, MayChooseATypeByManyConditions) {
  std::string text = "def phi(x):\n    t0 = x.dtype\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("    t{0} = t{1} if x.shape[0] == {0} else t{1}\n", i + 1, i);
  EXPECT_EQ(said_of(text + "    return torch.relu(x).to(t60)\n").reason, "");
}

TEST(OwnMap, HasKeysOfItsOwnAndPositions) {
  const AttentionInput input = make_input(shape, 4);
  const auto out = [&](const std::string& text) {
    return make_kernel(kernel_of_source("typed", text))->run(input, {}).out;
  };
  const at::Tensor plain = out(map_of("return torch.relu(x)"));
  EXPECT_TRUE(
      at::equal(plain, out(map_of("return torch.relu(x)") + "\ndef phi_k(x):\n    return torch.relu(x)\n")));
  EXPECT_GT(relative_error(
                out(map_of("return torch.relu(x)") + "\ndef phi_k(x):\n    return torch.relu(-x)\n"), plain),
            1e-3);
  EXPECT_GT(relative_error(out("def phi(x, i, n):\n    return torch.relu(x) * (i / n)\n"), plain), 1e-3);
}

TEST(OwnMap, IsNamedByItsText) {
  const KernelSpec one = kernel_of_source("my map", map_of("return torch.relu(x)")),
                   same = kernel_of_source("my map", map_of("return torch.relu(x)")),
                   other = kernel_of_source("my map", map_of("return torch.relu(-x)"));
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
  EXPECT_EQ(one.text().substr(0, 15), "phi:map=my_map@");
  EXPECT_EQ(parse_kernel_spec(one.text()), one);
  EXPECT_THROW(parse_kernel_spec("phi:map=my_map@0123456789abcdef"), UsageError);
  EXPECT_THROW(parse_kernel_spec("phi:no-such-map"), UsageError);
  EXPECT_EQ(kernel_with_source(one.text(), text_of_source(one)), one);
  EXPECT_THROW(kernel_with_source(one.text(), text_of_source(other)), UsageError);
  EXPECT_THROW(kernel_with_source("hedgehog", text_of_source(one)), UsageError);
  EXPECT_EQ(text_of_source({"softmax", {}}), "");
}

TEST(OwnMap, IsReadFromFilesAndTheUsersFolder) {
  const KernelSpec bundled = parse_kernel_spec("phi:elu");
  EXPECT_EQ(source_of(bundled).text, bundled_map("elu"));
  EXPECT_EQ(parse_kernel_spec("phi:" + (assets_folder() / "maps/elu.py").string()), bundled);
  EXPECT_EQ(parse_kernel_list("phi:elu,hedgehog").size(), 2U);
  EXPECT_TRUE(kernel_info(bundled).normalised);
  EXPECT_TRUE(kernel_info(parse_kernel_spec("phi:hedgehog")).trainable);
  EXPECT_FALSE(kernel_info(parse_kernel_spec("phi:linear-cosine")).normalised);
  EXPECT_TRUE(kernel_info(parse_kernel_spec("phi:hydra-cosine")).implied_weights);
  EXPECT_TRUE(kernel_info(parse_kernel_spec("phi:cosformer")).positional);
}

TEST(OwnMap, StartsWithDeclaredParameters) {
  const auto kernel = make_kernel(parse_kernel_spec("phi:hedgehog"));
  const KernelParameters parameters = kernel->initial_parameters({2, 4}, 0);
  EXPECT_EQ(parameters.size(), 4U);
  EXPECT_EQ(parameters.at("query.W").sizes(), (at::IntArrayRef{2, 4, 4}));
  EXPECT_EQ(parameters.at("key.b").sizes(), (at::IntArrayRef{2, 4}));
  const auto performer = make_kernel(parse_kernel_spec("phi:performer"));
  EXPECT_EQ(performer->fixed_parameters(), std::vector<std::string>{"omega"});
  EXPECT_FALSE(at::equal(performer->initial_parameters({2, 4}, 0).at("omega"),
                         performer->initial_parameters({2, 4}, 1).at("omega")));
}

} // namespace
} // namespace hydrascope
