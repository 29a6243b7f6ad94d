// The kernels once more, in double precision on the CPU, written from their formulas with log-sum-exp and all
// N×N weights: what the real kernels are compared with. A row of the table per kernel.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel.h"

namespace hydrascope::reference {

struct Result {
  at::Tensor out;           // (B,H,N,d)
  at::Tensor weights;       // (B,h,N,N)
  at::Tensor contributions; // (B,N,N): of token t (last) to out_c·g_c
};

// One row of the table.
struct Row {
  std::string spec;         // as on the command line
  bool exponential = false; // no zero row with inputs scaled by 100
  std::function<Result(const AttentionInput&, const KernelParameters&, const at::Tensor& g)> compute;
};
const std::vector<Row>& rows();
const Row& row(const std::string& spec);

// LayerNorm over D of the real tokens' rows, ε = 1e-5: what hydra-*-ln put before W_o.
at::Tensor layer_norm(const AttentionInput& input, const at::Tensor& out, const KernelParameters& parameters);

// For GoogleTest's messages.
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.spec; }

} // namespace hydrascope::reference
