#include "engine/attention/own/value_checks.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/isfinite.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/attention/own/allowed_operators.h"

namespace hydrascope {
namespace {

namespace jit = torch::jit;

// Found in a rerun that observes each operator.
struct Fault {
  const std::string* script = nullptr; // null: nothing is looked for
  std::string first_not_finite;        // operator
  int line_not_finite = 0;
  int last_line = 0;
};
Fault& fault_of_this_thread() {
  thread_local Fault fault;
  return fault;
}

std::unique_ptr<at::ObserverContext> before_operator(const at::RecordFunction&) { return nullptr; }

void after_operator(const at::RecordFunction& operation, at::ObserverContext*) {
  Fault& fault = fault_of_this_thread();
  if (fault.script == nullptr) return;
  const at::DisableRecordFunctionGuard no_recursion;
  int line = 0;
  for (const jit::StackEntry& entry : jit::currentCallstack()) // the innermost first
    if (line == 0) line = line_of(entry.range, *fault.script);
  if (line > 0) fault.last_line = line;
  if (!fault.first_not_finite.empty()) return;
  for (const c10::IValue& output : operation.outputs()) {
    if (!output.isTensor() || !output.toTensor().defined() || !output.toTensor().is_floating_point())
      continue;
    if (at::isfinite(output.toTensor()).all().item<bool>()) continue;
    fault.first_not_finite = python_name(operation.name());
    fault.line_not_finite = line;
  }
}

class FaultSearch {
public:
  explicit FaultSearch(const MapSource& source)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(before_operator, after_operator)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    fault_of_this_thread() = {};
    fault_of_this_thread().script = &source.script;
  }
  ~FaultSearch() {
    fault_of_this_thread().script = nullptr;
    at::removeCallback(handle_);
  }
  FaultSearch(const FaultSearch&) = delete;
  FaultSearch& operator=(const FaultSearch&) = delete;

private:
  at::CallbackHandle handle_;
};

struct Range {
  double least = 0, most = 0;
};

Range range_of(const at::Tensor& x) {
  const at::NoGradGuard no_gradients;
  const auto [least, most] = at::aminmax(x.detach());
  return {least.item<double>(), most.item<double>()}; // NaN if there is one
}

} // namespace

void check_kind(const MapSource& source, const at::Tensor& y, const at::Tensor& x) {
  if (!y.is_floating_point())
    throw SourceError(source.name, 0,
                      fmt::format("it returns {}, not numbers like those of its input; write y.to(x.dtype)",
                                  c10::toString(y.scalar_type())));
  if (y.device() != x.device())
    throw SourceError(
        source.name, 0,
        fmt::format("it returns a tensor on {}, its input is on {}", y.device().str(), x.device().str()));
}

void check_values(const MapSource& source, const at::Tensor& y, const at::Tensor& x,
                  const std::function<void()>& again) {
  if (!y.is_cpu()) return; // reading a number would wait for the device
  const Range range = range_of(y);
  const bool finite = source.logarithm ? range.most < std::numeric_limits<double>::infinity()
                                       : std::isfinite(range.least) && std::isfinite(range.most);
  const bool negative = !source.negative_features && !source.logarithm && range.least < 0 &&
                        (source.form == MapSource::Form::normalised ||
                         (source.form == MapSource::Form::score && source.divided_by_sums));
  if (finite && !negative) return;
  const Range input = range_of(x);
  if (!std::isfinite(input.least) || !std::isfinite(input.most)) return; // the source is not at fault
  {
    const FaultSearch search(source);
    const at::NoGradGuard no_gradients;
    again();
  }
  const Fault& fault = fault_of_this_thread();
  if (finite)
    throw SourceError(
        source.name, fault.last_line,
        fmt::format("a feature is {:.3g}, and negative ones can make negative weights; set signed = "
                    "True to allow them, or \"features\" if no product of features is negative",
                    range.least));
  throw SourceError(
      source.name, fault.line_not_finite,
      fmt::format("{} gives infinite numbers or NaN, where the input lies between {:.3g} and {:.3g}",
                  fault.first_not_finite.empty() ? "it" : fault.first_not_finite, input.least, input.most));
}

} // namespace hydrascope
