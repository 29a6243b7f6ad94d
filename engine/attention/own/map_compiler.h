// Map sources, compiled by LibTorch's TorchScript compiler, and what it and its interpreter say, in words.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/attention/own/map_source.h"

namespace hydrascope {

struct CompiledFunction {
  torch::jit::Code code;
  std::vector<std::string> parameters;
};

// A source's phi, phi_k and score, as far as it has them. They know torch, math and torch.nn.functional (F),
// of which pure operators on tensors and numbers are allowed, and loops of a fixed number of turns. Throws
// SourceError.
std::map<std::string, CompiledFunction> compile(const MapSource& source);

// The first line (or, of a traceback, the last one) that a message of TorchScript names; 0 if it names none.
int line_in(const std::string& message, bool last);
// What the interpreter says, after its traceback.
std::string interpreter_reason(const std::string& message);

} // namespace hydrascope
