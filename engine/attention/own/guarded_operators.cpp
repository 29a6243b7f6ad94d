#include "engine/attention/own/guarded_operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/attention/own/allocation_limit.h"
#include "engine/base/text.h"

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

// repeat_interleave(repeats, output_size), repeat_interleave(x, repeats, dim, output_size). Where the size of
// the output is given, LibTorch does not look at the repeats before it writes.
void check_repeats(const Arguments arguments) {
  constexpr std::size_t of_numbers = 2, of_tensor = 4;
  const std::size_t count = arguments.size(), place = count == of_numbers ? 0 : 1;
  if ((count != of_numbers && count != of_tensor) || !arguments[place].isTensor()) return;
  const at::Tensor& repeats = arguments[place].toTensor();
  if (repeats.numel() == 0) return;
  TORCH_CHECK(repeats.min().item<double>() >= 0, "a number of repeats is negative");
  std::int64_t times = 1;
  if (place == 1 && repeats.numel() == 1) { // a single number counts for all of x
    const at::Tensor& x = arguments[0].toTensor();
    const bool over_dimension = arguments[2].isInt() && x.dim() > 0;
    times = over_dimension ? x.size(arguments[2].toInt()) : x.numel();
  }
  constexpr double most = 0x1p31; // beyond 2^63 the sum overflows, and memory is taken for what remains of it
  const double sum = repeats.sum(at::kDouble).item<double>() * static_cast<double>(times);
  TORCH_CHECK(sum <= most, "there are more than 2^31 repeats");
  const c10::IValue& size = arguments[count - 1];
  TORCH_CHECK(!size.isInt() || static_cast<double>(size.toInt()) == sum,
              "output_size is not the sum of the repeats");
}

// diff(x, n, dim, prepend, append): of an empty tensor it takes as many differences as a dimension is long.
void check_differences(const Arguments arguments) {
  constexpr std::int64_t most = 16;
  if (arguments.size() < 2 || !arguments[1].isInt()) return;
  TORCH_CHECK(arguments[1].toInt() <= most, "diff is asked for more than ", most,
              " differences of differences");
}

// Multiplications of the rows of a, (…,n,k) or (k), with the columns of b, (…,k,m) or (k).
double products_of_matrices(const at::Tensor& a, const at::Tensor& b) {
  constexpr std::int64_t matrix = 2;
  double products = a.dim() > 0 ? static_cast<double>(a.size(-1)) : 1;
  if (a.dim() >= matrix) products *= static_cast<double>(a.size(-2));
  if (b.dim() >= matrix) products *= static_cast<double>(b.size(-1));
  for (std::int64_t i = matrix + 1; i <= std::max(a.dim(), b.dim()); ++i) {
    const std::int64_t of_a = i <= a.dim() ? a.size(-i) : 1, of_b = i <= b.dim() ? b.size(-i) : 1;
    products *= static_cast<double>(of_a == 1 ? of_b : of_a);
  }
  return products;
}

// Of all operands at once, in whatever order they are contracted: the lengths of all letters, multiplied. 0
// for an equation that does not fit its operands, which is an error of the operator's own.
double products_of_einsum(const std::string_view equation, const std::vector<at::Tensor>& operands) {
  std::map<char, std::int64_t> lengths;
  std::vector<std::int64_t> broadcast; // of "...", the last dimension first
  const std::vector<std::string_view> terms = split(equation.substr(0, equation.find("->")), ',');
  if (terms.size() != operands.size()) return 0;
  for (std::size_t term = 0; term < terms.size(); ++term) {
    const at::Tensor& x = operands[term];
    const auto letters =
        std::ranges::count_if(terms[term], [](const char c) { return c != ' ' && c != '.'; });
    const bool dots = terms[term].find('.') != std::string_view::npos;
    const std::int64_t more = x.dim() - letters;
    if (more < 0 || (more > 0 && !dots)) return 0;
    std::int64_t next = 0; // dimension
    bool in_dots = false;
    for (const char c : terms[term]) {
      if (c == ' ' || (c == '.' && in_dots)) continue;
      in_dots = c == '.';
      if (next + (in_dots ? more : 1) > x.dim()) return 0;
      if (!in_dots) {
        std::int64_t& length = lengths[c];
        length = std::max(length, x.size(next++));
        continue;
      }
      broadcast.resize(std::max(broadcast.size(), static_cast<std::size_t>(more)), 1);
      for (std::int64_t i = 0; i < more; ++i) {
        std::int64_t& length = broadcast[static_cast<std::size_t>(i)];
        length = std::max(length, x.size(next + more - 1 - i));
      }
      next += more;
    }
  }
  double products = 1;
  for (const auto& [letter, length] : lengths) products *= static_cast<double>(length);
  for (const std::int64_t length : broadcast) products *= static_cast<double>(length);
  return products;
}

// On the CPU, LibTorch multiplies matrices of most types one number after another: one product can take
// minutes, and no memory is allocated meanwhile.
bool is_slow(const at::Tensor& x) {
  return x.is_cpu() && !c10::isComplexType(x.scalar_type()) && x.scalar_type() != at::kFloat &&
         x.scalar_type() != at::kDouble;
}

void check_product(const Arguments arguments) {
  if (arguments.size() < 2 || !arguments[0].isTensor() || !arguments[1].isTensor()) return;
  const at::Tensor &a = arguments[0].toTensor(), &b = arguments[1].toTensor();
  if (is_slow(a)) AllocationLimit::count_products(products_of_matrices(a, b));
}

// linear(x, weight, bias): weight is (m,k) or (k).
void check_linear_product(const Arguments arguments) {
  if (arguments.size() < 2 || !arguments[0].isTensor() || !arguments[1].isTensor()) return;
  const at::Tensor &x = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  const std::int64_t columns = weight.dim() > 1 ? weight.size(0) : 1;
  if (is_slow(x))
    AllocationLimit::count_products(static_cast<double>(x.numel()) * static_cast<double>(columns));
}

// einsum(equation, operands, path)
void check_einsum(const Arguments arguments) {
  if (arguments.size() < 2 || !arguments[0].isString() || !arguments[1].isTensorList()) return;
  const std::vector<at::Tensor> operands = arguments[1].toTensorVector();
  if (operands.size() > 1 && std::ranges::any_of(operands, is_slow))
    AllocationLimit::count_products(products_of_einsum(arguments[0].toStringView(), operands));
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
    {"aten::matmul", check_product},
    {"aten::mm", check_product},
    {"aten::bmm", check_product},
    {"aten::mv", check_product},
    {"aten::linear", check_linear_product},
    {"aten::einsum", check_einsum},
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
