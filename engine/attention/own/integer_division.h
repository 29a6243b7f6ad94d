// Division of whole numbers in map sources.
#pragma once

namespace hydrascope {

// Makes TorchScript's %, // and divmod of whole numbers throw for a division by zero and for the least number
// divided by −1: LibTorch leaves both to the processor, which ends the program (SIGFPE). Call it before the
// compiler, which computes with the constants it sees. Concerns the process; calls after the first do
// nothing.
void check_integer_divisions();

} // namespace hydrascope
