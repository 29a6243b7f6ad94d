// Checks in front of LibTorch's operators whose arguments could crash the program.
#pragma once

namespace hydrascope {

// Replaces TorchScript's operators %, //, divmod, arange, repeat_interleave, diff, chunk, split and unbind in
// this process by ones that check their arguments first and throw. LibTorch lets the CPU raise SIGFPE for
// integers modulo zero, for the smallest integer divided by −1 and for steps that become zero as integers,
// writes past the end of repeats whose sum overflows, takes any number of differences of nothing, and makes
// any number of pieces of a tensor, which take memory beside the tensors'. Call it before the compiler, which
// computes with the constants it sees. Later calls do nothing.
void guard_operators();

} // namespace hydrascope
