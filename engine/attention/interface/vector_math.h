// A guard against an error of LibTorch's vector mathematics.
#pragma once

namespace hydrascope {

// Calls each elementwise function of LibTorch that MKL computes (exp, log, tanh and others, in float32 and
// float64) once, on this thread. MKL chooses a function's code in its first call; if several threads make it
// at once, one of them may compute its part to four digits only (github.com/pytorch/pytorch/issues/188792;
// MKL 2024.2, not from 2025.0 on). No test can show it reliably: about one process in ten was concerned. To
// be called before any tensor is computed; does its work once per process, in about a millisecond.
void resolve_vector_math();

} // namespace hydrascope
