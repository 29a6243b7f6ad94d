// Which TorchScript a map source may use.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <ATen/core/function.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/ir/ir.h>

#include "engine/attention/own/map_source.h"

namespace hydrascope {

// Why torch.NAME must not be called; empty if it may, or where another check says it.
std::string why_not_allowed(const std::string& name);

// Throws SourceError if the function and all it calls come to too many operators: forty lines can call for
// 2⁴⁰. Call it before the calls are inlined.
void check_size(const MapSource& source, const torch::jit::Function& function);

// Whether an operator computes new tensors and numbers from others. check_operators() refuses some of their
// arguments, too.
bool is_allowed(const c10::FunctionSchema& schema);

// What an argument stands for: TorchScript has types, layouts and memory formats as integers.
enum class ArgumentKind { type, layout, other };
ArgumentKind kind_of(const c10::Argument& argument);

// The types of tensors that a source may name: torch.float32 …
struct NamedType {
  const char* name;
  c10::ScalarType type;
};
inline constexpr std::array<NamedType, 4> named_types{{{"float32", c10::ScalarType::Float},
                                                       {"float64", c10::ScalarType::Double},
                                                       {"int64", c10::ScalarType::Long},
                                                       {"bool", c10::ScalarType::Bool}}};

// Throws SourceError, with the line, unless the graph has only operators that compute new tensors and numbers
// from others, without chance, files, output or in-place changes, and loops of a fixed number of turns. The
// calls of the source's other functions are inlined before.
void check_operators(const torch::jit::Graph& graph, const MapSource& source);

// The line of the script that a part of a graph comes from; 0 for another text: LibTorch writes some
// operators in TorchScript itself.
int line_of(const torch::jit::SourceRange& range, const std::string& script);

// "torch.exp" for aten::exp, "print" for prim::Print.
std::string python_name(std::string_view symbol);

} // namespace hydrascope
