// What the operating system says of memory.
#pragma once

#include <cstdint>

namespace hydrascope {

// The process's largest resident set so far, in bytes; 0 where the system does not say.
std::int64_t peak_resident_bytes();
// Memory that can be had without swapping, in bytes; 0 where the system does not say.
std::int64_t available_bytes();

// From here on the C library keeps large blocks that are freed, up to an eighth of the machine's memory, and
// LibTorch asks for huge pages: a tensor of many megabytes then does not meet a page fault for each 4 KiB
// every time it is made, which can take longer than computing it. To be called before LibTorch does anything.
void keep_large_blocks();

} // namespace hydrascope
