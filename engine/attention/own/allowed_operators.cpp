#include "engine/attention/own/allowed_operators.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/attention/own/map_syntax.h"

namespace hydrascope {
namespace {

using torch::jit::Block, torch::jit::Node;

// In LibTorch's namespace aten.
const std::unordered_set<std::string_view>& operators() {
  static const std::unordered_set<std::string_view> names{
      // element by element
      "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "asin", "asinh", "atan", "atan2", "atanh", "ceil",
      "celu", "clamp", "clamp_max", "clamp_min", "clip", "copysign", "cos", "cosh", "div", "divide", "elu",
      "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "floor_divide", "floordiv", "fmax", "fmin",
      "fmod", "frac", "gelu", "hardsigmoid", "hardswish", "hardtanh", "hypot", "leaky_relu", "lerp", "lgamma",
      "log", "log10", "log1p", "log2", "log_sigmoid", "logaddexp", "logaddexp2", "logit", "maximum",
      "minimum", "mish", "mul", "multiply", "neg", "negative", "pow", "prelu", "reciprocal", "relu", "relu6",
      "remainder", "round", "rsqrt", "rsub", "selu", "sgn", "sigmoid", "sign", "silu", "sin", "sinc", "sinh",
      "softplus", "sqrt", "square", "sub", "subtract", "tan", "tanh", "threshold", "true_divide", "trunc",
      "where", "xlogy",
      // comparisons
      "all", "any", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "eq", "ge", "gt", "isfinite",
      "isinf", "isnan", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "masked_fill",
      "ne", "__and__", "__is__", "__isnot__", "__not__", "__or__", "__xor__",
      // over one dimension
      "amax", "amin", "aminmax", "argmax", "argmin", "argsort", "cummax", "cummin", "cumprod", "cumsum",
      "diff", "layer_norm", "linalg_vector_norm", "log_softmax", "logcumsumexp", "logsumexp", "max", "mean",
      "median", "min", "norm", "prod", "softmax", "sort", "std", "sum", "topk", "var",
      // products
      "bmm", "dot", "einsum", "linear", "matmul", "mm", "mv", "outer",
      // shapes
      "cat", "chunk", "concat", "contiguous", "clone", "detach", "diag_embed", "diagonal", "dim", "flatten",
      "flip", "gather", "index", "index_select", "mT", "movedim", "narrow", "numel", "permute", "repeat",
      "repeat_interleave", "reshape", "roll", "select", "size", "slice", "split", "squeeze", "stack",
      "swapaxes", "swapdims", "t", "take_along_dim", "to", "transpose", "tril", "tril_indices", "triu",
      "triu_indices", "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as",
      // new tensors
      "arange", "eye", "full", "full_like", "linspace", "new_full", "new_ones", "new_zeros", "ones",
      "ones_like", "tensor", "zeros", "zeros_like",
      // numbers and lists
      "Bool", "Float", "FloatImplicit", "Int", "IntImplicit", "ScalarImplicit", "__getitem__", "format",
      "is_floating_point", "item", "len"};
  return names;
}

// In LibTorch's namespace prim.
const std::unordered_set<std::string_view>& primitives() {
  static const std::unordered_set<std::string_view> names{"Constant",
                                                          "If",
                                                          "ListConstruct",
                                                          "ListUnpack",
                                                          "Loop",
                                                          "NumToTensor",
                                                          "RaiseException",
                                                          "TupleIndex",
                                                          "TupleSlice",
                                                          "TupleConstruct",
                                                          "TupleUnpack",
                                                          "Uninitialized",
                                                          "device",
                                                          "dtype",
                                                          "max",
                                                          "min",
                                                          "unchecked_cast"};
  return names;
}

bool is_type_of_tensors(const std::int64_t number) {
  using c10::ScalarType;
  static constexpr std::array<ScalarType, 10> types{
      ScalarType::Byte, ScalarType::Char,  ScalarType::Short,  ScalarType::Int,  ScalarType::Long,
      ScalarType::Half, ScalarType::Float, ScalarType::Double, ScalarType::Bool, ScalarType::BFloat16};
  return std::ranges::any_of(
      types, [&](const ScalarType type) { return number == static_cast<std::int64_t>(type); });
}

// Whether a value is None, a type of tensors written as such, x.dtype, or one of these by an if. Values in
// `seen` are, or are found out further up: ifs of one another would be looked at again and again.
bool is_known_type(const torch::jit::Value& value, std::unordered_set<const torch::jit::Value*>& seen) {
  if (!seen.insert(&value).second) return true;
  const Node& node = *value.node();
  if (value.mustBeNone() || node.kind() == torch::jit::prim::dtype) return true;
  if (const auto number = torch::jit::constant_as<std::int64_t>(&value)) return is_type_of_tensors(*number);
  if (node.kind() == torch::jit::prim::unchecked_cast) return is_known_type(*node.input(), seen);
  return node.kind() == torch::jit::prim::If &&
         std::ranges::all_of(node.blocks(), [&](const Block* const block) {
           return is_known_type(*block->outputs()[value.offset()], seen);
         });
}

// Numbers, and lists of lists of them: no unions.
bool holds_numbers_of_one_type(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::ListType:
      return holds_numbers_of_one_type(*type.expectRef<c10::ListType>().getElementType());
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType: return true;
    default: return false;
  }
}

// Lists of any type can grow without a tensor's memory, but for taking one element.
bool has_list_of_anything(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  if (name == "aten::__getitem__" || name == "aten::len" || name == "aten::slice") return false;
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->kind() == c10::TypeKind::ListType &&
           result.type()->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::VarType;
  });
}

std::string not_allowed(const std::string_view name) {
  return fmt::format("torch.{} is not allowed: only operators that compute tensors from tensors are", name);
}

class Check {
public:
  explicit Check(const MapSource& source) : source_(source) {}

  void block(const Block& block, const std::int64_t turns) const {
    for (const Node* const node : block.nodes()) {
      one(*node);
      const std::int64_t inner = node->kind() == torch::jit::prim::Loop ? turns_of(*node, turns) : turns;
      for (const Block* const part : node->blocks()) this->block(*part, inner);
    }
  }

private:
  [[noreturn]] void fail(const Node& node, const std::string& reason) const {
    throw SourceError(source_.name, line_of(node.sourceRange(), source_.script), reason);
  }

  void one(const Node& node) const {
    const torch::jit::Symbol kind = node.kind();
    const std::string_view name = kind.toUnqualString();
    if (kind.is_prim()) {
      if (!primitives().contains(name)) fail(node, python_name(kind.toQualString()) + " is not allowed here");
      // Tensors on "meta" have no memory, and some operators then leave that of their result as it was.
      if (kind == torch::jit::prim::Constant &&
          node.output()->type()->kind() == c10::TypeKind::DeviceObjType) {
        const auto& uses = node.output()->uses(); // the constant has no line
        fail(uses.empty() ? node : *uses.front().user, "a device must be written as x.device");
      }
      return;
    }
    const c10::FunctionSchema* const schema = node.maybeSchema();
    if (schema != nullptr && schema->is_mutable())
      fail(node, fmt::format("{} changes a tensor in place; write x = x + 1, not x += 1 or x.add_(1)",
                             python_name(kind.toQualString())));
    if (schema == nullptr || !is_allowed(*schema)) fail(node, not_allowed(name));
    if (makes_text(node)) fail(node, texts_are_literals);
    for (std::size_t i = 0; i < schema->arguments().size(); ++i)
      only_known(node, schema->arguments()[i], *node.input(i));
    // LibTorch copies a list of floats and a list of integers by the type of the first one, past its end.
    if (name == "tensor" && !holds_numbers_of_one_type(*node.input(0)->type()))
      fail(node, "the numbers of a list must be of one type, as in [1., 2.]");
    // With copy=True LibTorch dereferences the missing device.
    if (name == "to" && schema->overload_name() == "prim_Device" &&
        node.input(1)->type()->kind() != c10::TypeKind::DeviceObjType)
      fail(node, "to() needs a type or a device, as in x.to(torch.float32)");
  }

  // Types and layouts are integers to TorchScript, and some that name none make LibTorch loop for ever.
  // CUDA's pinned memory has an allocator of its own, which AllocationLimit does not know.
  void only_known(const Node& node, const c10::Argument& argument, const torch::jit::Value& value) const {
    if (argument.name() == "pin_memory" && !value.mustBeNone() &&
        torch::jit::constant_as<bool>(&value) != false)
      fail(node, "pin_memory is not allowed");
    switch (kind_of(argument)) {
      case ArgumentKind::type:
        if (std::unordered_set<const torch::jit::Value*> seen; !is_known_type(value, seen))
          fail(node,
               "a type must be written as x.dtype, torch.float32, torch.float64, torch.int64 or torch.bool");
        return;
      case ArgumentKind::layout:
        if (!value.mustBeNone() && torch::jit::constant_as<std::int64_t>(&value) != 0) // strided, contiguous
          fail(node, argument.name() + " is not allowed");
        return;
      case ArgumentKind::other: return;
    }
  }

  // Texts could grow without a tensor's memory. That of an error is put together by the compiler.
  static bool makes_text(const Node& node) {
    return std::ranges::any_of(node.outputs(), [](const torch::jit::Value* const output) {
      return output->type()->kind() == c10::TypeKind::StringType &&
             std::ranges::any_of(output->uses(), [](const torch::jit::Use& use) {
               return use.user->kind() != torch::jit::prim::RaiseException && !makes_text(*use.user);
             });
    });
  }

  std::int64_t turns_of(const Node& loop, const std::int64_t outer) const {
    constexpr std::int64_t most = 256;
    const auto turns = torch::jit::constant_as<std::int64_t>(loop.input(0));
    const auto goes_on = torch::jit::constant_as<bool>(loop.input(1));
    if (!goes_on || !*goes_on || (turns && *turns == std::numeric_limits<std::int64_t>::max()))
      fail(loop, "while loops are not allowed; write for j in range(4)");
    if (!turns) fail(loop, "the number of a loop's turns must be written as a number: for j in range(4)");
    if (*turns > most || std::max<std::int64_t>(*turns, 1) * outer > most)
      fail(loop, fmt::format("loops may have {} turns together", most));
    return std::max<std::int64_t>(*turns, 1) * outer;
  }

  const MapSource& source_;
};

// How many operators a function has once all it calls is put in place of the calls, up to `most`.
std::size_t inlined_size(const torch::jit::Block& block,
                         std::unordered_map<const torch::jit::Function*, std::size_t>& known,
                         const std::size_t most) {
  std::size_t size = 0;
  for (const torch::jit::Node* const node : block.nodes()) {
    if (size >= most) return most;
    size += 1;
    for (const torch::jit::Block* const part : node->blocks()) size += inlined_size(*part, known, most);
    if (node->kind() != torch::jit::prim::CallFunction) continue;
    const torch::jit::Function* const called =
        node->input(0)->type()->expectRef<c10::FunctionType>().function();
    const auto found = known.find(called);
    if (found != known.end()) {
      size += found->second;
      continue;
    }
    const std::size_t own = inlined_size(*torch::jit::toGraphFunction(*called).graph()->block(), known, most);
    known.emplace(called, own);
    size += own;
  }
  return std::min(size, most);
}

} // namespace

ArgumentKind kind_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  // TorchScript's own operators declare a type as an integer.
  if (type->kind() == c10::TypeKind::ScalarTypeType || argument.name() == "dtype") return ArgumentKind::type;
  const bool layout =
      type->kind() == c10::TypeKind::LayoutType || type->kind() == c10::TypeKind::MemoryFormatType;
  return layout ? ArgumentKind::layout : ArgumentKind::other;
}

bool is_allowed(const c10::FunctionSchema& schema) {
  const c10::Symbol symbol = c10::Symbol::fromQualString(schema.name());
  return symbol.is_aten() && operators().contains(symbol.toUnqualString()) && !schema.is_mutable() &&
         !has_list_of_anything(schema);
}

int line_of(const torch::jit::SourceRange& range, const std::string& script) {
  if (!range.source() || range.source()->text_str().str() != script) return 0;
  const auto place = range.file_line_col();
  return place ? static_cast<int>(std::get<1>(*place)) : 0;
}

std::string python_name(const std::string_view symbol) {
  const std::string_view name = symbol.substr(symbol.rfind(':') + 1);
  if (symbol.starts_with("prim::")) return name == "Print" ? "print" : std::string(name);
  return "torch." + std::string(name);
}

std::string why_not_allowed(const std::string& name) {
  const auto symbol = c10::Symbol::fromQualString("aten::" + name);
  const bool known = operators().contains(name) && name != "format";
  // An unknown name is the compiler's to tell, an operator that works in place check_operators().
  if (known || name.ends_with('_') || torch::jit::getAllOperatorsFor(symbol).empty()) return {};
  return not_allowed(name);
}

void check_size(const MapSource& source, const torch::jit::Function& function) {
  constexpr std::size_t most = 10000;
  std::unordered_map<const torch::jit::Function*, std::size_t> known;
  if (inlined_size(*torch::jit::toGraphFunction(function).graph()->block(), known, most) >= most)
    throw SourceError(
        source.name, 0,
        fmt::format("{} and what it calls come to more than {} operators", function.name(), most));
}

void check_operators(const torch::jit::Graph& graph, const MapSource& source) {
  Check(source).block(*graph.block(), 1);
}

} // namespace hydrascope
