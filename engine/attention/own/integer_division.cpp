#include "engine/attention/own/integer_division.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <torch/csrc/jit/runtime/operator.h>

namespace hydrascope {
namespace {

namespace jit = torch::jit;

void check_operands(const jit::Stack& stack) {
  const c10::IValue &a = stack[stack.size() - 2], &b = stack.back();
  if (!a.isInt() || !b.isInt()) return;
  TORCH_CHECK(b.toInt() != 0, "a whole number is divided by zero");
  TORCH_CHECK(b.toInt() != -1 || a.toInt() != std::numeric_limits<std::int64_t>::min(),
              "a division of whole numbers overflows");
}

jit::Operator checked(const jit::Operator& unchecked) {
  return {toString(unchecked.schema()),
          [run = unchecked.getOperation()](jit::Stack& stack) mutable {
            check_operands(stack);
            run(stack);
          },
          unchecked.aliasAnalysisKind()};
}

void check_divisions_by(const char* name) {
  // A copy: registration changes the original.
  std::vector<std::shared_ptr<jit::Operator>> overloads =
      jit::getAllOperatorsFor(c10::Symbol::fromQualString(name));
  std::erase_if(overloads, [](const auto& overload) { return overload->isC10Op(); }); // those take tensors
  // All are taken out before any goes back: the compiler takes the first overload that fits.
  for (const auto& overload : overloads) jit::deregisterOperator(overload->schema());
  for (const auto& overload : overloads) jit::registerOperator(checked(*overload));
}

} // namespace

void check_integer_divisions() {
  [[maybe_unused]] static const bool done = [] {
    for (const char* const name : {"aten::remainder", "aten::floordiv", "aten::divmod"})
      check_divisions_by(name);
    return true;
  }();
}

} // namespace hydrascope
