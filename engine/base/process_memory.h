// What the operating system says of memory.
#pragma once

#include <cstdint>

namespace hydrascope {

// The process's largest resident set so far, in bytes; 0 where the system does not say.
std::int64_t peak_resident_bytes();
// Memory that can be had without swapping, in bytes; 0 where the system does not say.
std::int64_t available_bytes();

// Gives memory that was freed back to the system. Until then it is kept for the next tensors: to be called
// when nothing has been computed for a while.
void give_back_freed_memory();

} // namespace hydrascope
