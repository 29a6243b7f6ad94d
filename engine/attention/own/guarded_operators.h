// Checks in front of LibTorch's operators whose arguments could crash the program.
#pragma once

namespace hydrascope {

// Replaces TorchScript's operators %, //, divmod, arange, repeat_interleave, diff, chunk, split, unbind,
// matmul, mm, bmm, mv, linear and einsum in this process by ones that check their arguments first and throw.
// LibTorch lets the CPU raise SIGFPE for integers modulo zero, for the smallest integer divided by −1 and for
// steps that become zero as integers, writes past the end of repeats that are negative or whose sum
// overflows, takes any number of differences of nothing, makes any number of pieces of a tensor, which take
// memory beside the tensors', and multiplies matrices of half-precision numbers and of integers for minutes.
// Call it before the compiler, which computes with the constants it sees. Later calls do nothing.
void guard_operators();

} // namespace hydrascope
