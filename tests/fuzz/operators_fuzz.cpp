// The operators that a user's feature map may call, with arguments that a source can give them: tensors of
// its types, empty and transposed ones among them, extreme numbers, and lists of any of these.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/zeros.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/allowed_operators.h"
#include "engine/attention/own/guarded_operators.h"

using namespace hydrascope;
using c10::TypeKind;

namespace {

using Data = FuzzedDataProvider;

std::int64_t whole_number(Data& data) {
  using Limits = std::numeric_limits<std::int64_t>;
  static constexpr std::int64_t large = std::int64_t{1} << 31;
  static constexpr std::array<std::int64_t, 9> extreme{
      64, 1000, large - 1, large, -large, -1000, Limits::max(), Limits::min() + 1, Limits::min()};
  return data.ConsumeBool() ? data.ConsumeIntegralInRange<std::int64_t>(-4, 5)
                            : data.PickValueInArray(extreme);
}

double number(Data& data) {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::array<double, 10> numbers{0.,   -0.,    1.,       -1.,       0.5,
                                                  1e30, 1e-320, infinity, -infinity, NAN};
  return data.PickValueInArray(numbers);
}

c10::complex<double> complex_number(Data& data) {
  const double real = number(data);
  return {real, number(data)};
}

at::Tensor tensor(Data& data) {
  constexpr std::int64_t dimensions = 4, length = 4;
  std::vector<std::int64_t> shape(data.ConsumeIntegralInRange<std::size_t>(0, dimensions));
  for (std::int64_t& one : shape) one = data.ConsumeIntegralInRange<std::int64_t>(0, length);
  static constexpr std::array<at::ScalarType, 7> types{
      at::kFloat, at::kDouble, at::kLong, at::kBool, at::kBFloat16, at::kComplexFloat, at::kComplexDouble};
  const at::ScalarType type = data.PickValueInArray(types);
  at::Tensor values = at::zeros(shape, type == at::kLong ? at::kLong : at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    if (type == at::kLong)
      values.data_ptr<std::int64_t>()[i] = whole_number(data);
    else
      values.data_ptr<double>()[i] = number(data);
  }
  values = values.to(type);
  if (at::isComplexType(type)) values = values.mul(complex_number(data));
  if (values.dim() > 1 && data.ConsumeBool()) values = values.transpose(0, -1);
  return values;
}

// A source has no dictionaries and no enumerations.
bool can_make(const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::OptionalType: return can_make(*type.expectRef<c10::OptionalType>().getElementType());
    case TypeKind::ListType: return can_make(*type.expectRef<c10::ListType>().getElementType());
    case TypeKind::TensorType:
    case TypeKind::IntType:
    case TypeKind::FloatType:
    case TypeKind::BoolType:
    case TypeKind::NumberType:
    case TypeKind::ComplexType:
    case TypeKind::StringType:
    case TypeKind::DeviceObjType:
    case TypeKind::VarType:
    case TypeKind::AnyType: return true;
    default: return false;
  }
}

// int, float, bool, or a list of lists of these.
c10::TypePtr type_of_numbers(Data& data, const int depth) {
  switch (data.ConsumeIntegralInRange(0, depth > 0 ? 3 : 2)) {
    case 0: return c10::IntType::get();
    case 1: return c10::FloatType::get();
    case 2: return c10::BoolType::get();
    default: return c10::ListType::create(type_of_numbers(data, depth - 1));
  }
}

constexpr int deepest = 2; // of lists

// One that a schema's `t` or `Any` may stand for.
c10::TypePtr any_type(Data& data, const int depth = deepest) {
  switch (data.ConsumeIntegralInRange(0, depth > 0 ? 4 : 3)) {
    case 0: return c10::TensorType::get();
    case 1: return c10::OptionalType::ofTensor();
    case 2: return c10::ComplexType::get();
    case 3: return type_of_numbers(data, depth);
    default: return c10::ListType::create(any_type(data, depth - 1));
  }
}

c10::IValue value(const c10::Type& type, Data& data);

c10::IValue list(c10::TypePtr element, Data& data) {
  constexpr std::size_t longest = 4;
  if (element->kind() == TypeKind::VarType) element = any_type(data); // one for all
  c10::impl::GenericList values(element);
  for (std::size_t i = data.ConsumeIntegralInRange<std::size_t>(0, longest); i > 0; --i)
    values.push_back(value(*element, data));
  return values;
}

c10::IValue value(const c10::Type& type, Data& data) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      return data.ConsumeBool() ? value(*type.expectRef<c10::OptionalType>().getElementType(), data)
                                : c10::IValue();
    case TypeKind::ListType: return list(type.expectRef<c10::ListType>().getElementType(), data);
    case TypeKind::TensorType: return tensor(data);
    case TypeKind::IntType: return whole_number(data);
    case TypeKind::FloatType: return number(data);
    case TypeKind::BoolType: return data.ConsumeBool();
    case TypeKind::ComplexType: return complex_number(data);
    case TypeKind::NumberType:
      switch (data.ConsumeIntegralInRange(0, 2)) {
        case 0: return whole_number(data);
        case 1: return number(data);
        default: return complex_number(data);
      }
    case TypeKind::VarType:
    case TypeKind::AnyType: return value(*any_type(data), data);
    case TypeKind::StringType: {
      static constexpr std::array<const char*, 12> texts{"none",        "tanh",  "floor", "bhnd,bhmd->bhnm",
                                                         "...i,i->...", "",      "->",    "ij,jk",
                                                         "ii->i",       "a->aa", "{}",    "{} of {}"};
      return std::string(data.PickValueInArray(texts));
    }
    default: return c10::Device(c10::DeviceType::CPU);
  }
}

// As check_operators() lets through.
c10::IValue argument_of(const c10::FunctionSchema& schema, const c10::Argument& argument, Data& data) {
  const bool optional = argument.type()->kind() == TypeKind::OptionalType;
  switch (kind_of(argument)) {
    case ArgumentKind::type:
      if (optional && data.ConsumeBool()) return {};
      return static_cast<std::int64_t>(data.PickValueInArray(named_types).type);
    case ArgumentKind::layout: return optional ? c10::IValue() : c10::IValue(std::int64_t{0});
    case ArgumentKind::other: break;
  }
  if (schema.name() == "aten::to" && argument.name() == "device") return c10::Device(c10::DeviceType::CPU);
  if (schema.name() == "aten::tensor" && argument.name() == "data")
    return list(type_of_numbers(data, deepest), data);
  return value(*argument.type(), data);
}

// What follows the arguments of a schema that ends with `...`, and how many there are in all.
void push_more(const c10::FunctionSchema& schema, torch::jit::Stack& stack, Data& data) {
  constexpr std::size_t most = 5;
  for (std::size_t i = data.ConsumeIntegralInRange<std::size_t>(0, most); i > 0; --i) {
    if (schema.name() != "aten::einsum")
      stack.push_back(value(*any_type(data), data));
    else if (data.ConsumeBool())
      stack.push_back(list(c10::IntType::get(), data));
    else
      stack.push_back(tensor(data));
  }
  stack.push_back(static_cast<std::int64_t>(stack.size()));
}

// The sanitizers' report ends inside LibTorch: HYDRASCOPE_TELL=1 build/fuzz/operators_fuzz INPUT tells what
// runs.
void tell(const torch::jit::Operator& chosen, const torch::jit::Stack& arguments) {
  std::cerr << "operator: " << chosen.schema() << "\n";
  for (const c10::IValue& one : arguments) {
    if (one.isTensor())
      std::cerr << "  " << one.toTensor().toString() << one.toTensor().sizes() << "\n";
    else
      std::cerr << "  " << one << "\n";
  }
}

using Operators = std::vector<std::shared_ptr<torch::jit::Operator>>;
Operators known_operators() {
  guard_operators();
  at::set_num_threads(1); // one target runs on each processor
  Operators known = torch::jit::getAllOperators();
  std::erase_if(known, [](const auto& one) {
    const c10::FunctionSchema& schema = one->schema();
    // As check_operators() lets through.
    const bool refused = schema.name() == "aten::tensor" && schema.overload_name() == "complex";
    return refused || !is_allowed(schema) ||
           !std::ranges::all_of(schema.arguments(),
                                [](const c10::Argument& argument) { return can_make(*argument.type()); });
  });
  // Their order depends on a hash.
  std::ranges::sort(known, {}, [](const auto& one) { return toString(one->schema()); });
  return known;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, const std::size_t size) {
  static const Operators known = known_operators();
  Data data(bytes, size);
  const torch::jit::Operator& chosen = *known[data.ConsumeIntegralInRange<std::size_t>(0, known.size() - 1)];
  torch::jit::Stack stack;
  for (const c10::Argument& argument : chosen.schema().arguments())
    stack.push_back(argument_of(chosen.schema(), argument, data));
  if (chosen.schema().is_vararg()) push_more(chosen.schema(), stack, data);
  const at::NoGradGuard no_gradients;
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const AllocationLimit limit(most_bytes);
  static const bool told = std::getenv("HYDRASCOPE_TELL") != nullptr;
  if (told) tell(chosen, stack);
  try {
    chosen.getOperation()(stack);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): refused
  }
  return 0;
}
