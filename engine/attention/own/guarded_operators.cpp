#include "engine/attention/own/guarded_operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/attention/own/allocation_limit.h"

namespace hydrascope {
namespace {

namespace jit = torch::jit;

using Arguments = c10::ArrayRef<c10::IValue>;
using ArgumentCheck = void (*)(Arguments);

void check_division(const Arguments arguments) {
  const c10::IValue &a = arguments[0], &b = arguments[1];
  if (!a.isInt() || !b.isInt()) return;
  TORCH_CHECK(b.toInt() != 0, "an integer is divided by zero");
  TORCH_CHECK(b.toInt() != -1 || a.toInt() != std::numeric_limits<std::int64_t>::min(),
              "a division of integers overflows");
}

// chunk(x, pieces, dim), split(x, length, dim), unbind(x, dim).
void check_pieces(const Arguments arguments, const bool by_length) {
  constexpr std::int64_t most = 4096, bytes = 600; // a piece takes some 600 bytes without any of its numbers
  if (!arguments.front().isTensor() || !arguments.back().isInt()) return;
  const at::Tensor& x = arguments.front().toTensor();
  const std::int64_t dimension = arguments.back().toInt();
  if (dimension < -x.dim() || dimension >= x.dim()) return; // an error of the operator's own
  std::int64_t pieces = x.size(dimension);
  if (arguments.size() == 3 && arguments[1].isInt()) {
    const std::int64_t number = arguments[1].toInt();
    // chunk() makes no more pieces than there are elements, but of none as many as it is asked for.
    if (by_length)
      pieces = number > 0 ? pieces / number : 0;
    else
      pieces = pieces > 0 ? std::min(pieces, number) : number;
  }
  if (arguments.size() == 3 && arguments[1].isIntList())
    pieces = static_cast<std::int64_t>(arguments[1].toIntVector().size());
  TORCH_CHECK(pieces <= most, "a tensor is cut into more than ", most, " pieces");
  AllocationLimit::count(static_cast<std::size_t>(std::max<std::int64_t>(pieces, 0) * bytes));
}

// arange(start, end, step, dtype, …)
void check_range(const Arguments arguments) {
  constexpr std::size_t step = 2, type = 3, count = 7;
  if (arguments.size() != count) return;
  constexpr double most = 0x1p53; // beyond it the number of elements overflows
  for (const c10::IValue& bound : arguments.slice(0, type))
    TORCH_CHECK(std::abs(bound.toScalar().toDouble()) <= most, "a bound of arange is beyond 2^53");
  if (!arguments[type].isInt() || !c10::isIntegralType(arguments[type].toScalarType(), true)) return;
  TORCH_CHECK(std::abs(arguments[step].toScalar().toDouble()) >= 1, "the step of integers is less than 1");
}

// repeat_interleave(repeats, output_size), repeat_interleave(x, repeats, dim, output_size)
void check_repeats(const Arguments arguments) {
  constexpr std::size_t of_numbers = 2, of_tensor = 4;
  const std::size_t count = arguments.size(), place = count == of_numbers ? 0 : 1;
  if ((count != of_numbers && count != of_tensor) || !arguments[place].isTensor()) return;
  const at::Tensor& repeats = arguments[place].toTensor();
  // A single number counts for all of x.
  const std::int64_t times = place == 1 && repeats.numel() == 1 ? arguments[0].toTensor().numel() : 1;
  constexpr double most = 0x1p31; // beyond 2^63 the sum overflows, and memory is taken for what remains of it
  TORCH_CHECK(repeats.sum(at::kDouble).item<double>() * static_cast<double>(times) <= most,
              "there are more than 2^31 repeats");
}

// diff(x, n, dim, prepend, append): of an empty tensor it takes as many differences as a dimension is long.
void check_differences(const Arguments arguments) {
  constexpr std::int64_t most = 16;
  if (arguments.size() < 2 || !arguments[1].isInt()) return;
  TORCH_CHECK(arguments[1].toInt() <= most, "diff is asked for more than ", most,
              " differences of differences");
}

struct Guard {
  const char* name;
  ArgumentCheck check;
};
constexpr Guard guards[] = {
    {"aten::remainder", check_division},
    {"aten::floordiv", check_division},
    {"aten::divmod", check_division},
    {"aten::arange", check_range},
    {"aten::repeat_interleave", check_repeats},
    {"aten::diff", check_differences},
    {"aten::chunk", [](const Arguments arguments) { check_pieces(arguments, false); }},
    {"aten::split", [](const Arguments arguments) { check_pieces(arguments, true); }},
    {"aten::unbind", [](const Arguments arguments) { check_pieces(arguments, false); }},
};

jit::Operator guarded(const jit::Operator& unguarded, const ArgumentCheck check) {
  const c10::FunctionSchema& schema = unguarded.schema();
  return {
      schema.name(),
      schema.overload_name(),
      schema.arguments(),
      schema.returns(),
      [run = unguarded.getOperation(), count = schema.arguments().size(), check](jit::Stack& stack) mutable {
        check(Arguments(stack).slice(stack.size() - count));
        run(stack);
      },
      unguarded.aliasAnalysisKind()};
}

using Operators = std::vector<std::shared_ptr<jit::Operator>>;

// Returns the operators that were replaced.
Operators guard(const Guard& guard) {
  // A copy: registration changes the original.
  const Operators overloads = jit::getAllOperatorsFor(c10::Symbol::fromQualString(guard.name));
  std::vector<jit::Operator> replacements;
  for (const auto& overload : overloads) replacements.push_back(guarded(*overload, guard.check));
  // All are removed before any is added: the compiler takes the first overload that fits.
  for (const auto& overload : overloads) jit::deregisterOperator(overload->schema());
  for (jit::Operator& replacement : replacements) jit::registerOperator(std::move(replacement));
  return overloads;
}

} // namespace

void guard_operators() {
  // Kept: graphs point to operators without owning them.
  [[maybe_unused]] static const std::vector<Operators> replaced = [] {
    std::vector<Operators> all;
    for (const Guard& one : guards) all.push_back(guard(one));
    return all;
  }();
}

} // namespace hydrascope
