// An accelerator for tests, LibTorch's PrivateUse1. Its memory is the host's, but only the device's own
// copies have access to it: reading a data pointer is a segmentation fault, as it is on a GPU. Operators run
// on copies on the CPU, and a tensor on the wrong device fails by CUDA's rule. It does not show what depends
// on real hardware: the order of streams, operators and types that CUDA lacks, TF32.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/Device.h>

namespace hydrascope::test {

// The device, registered when the program starts, unless HYDRASCOPE_DEVICE names a GPU: LibTorch takes
// gradients on one accelerator alone.
c10::Device fake_device();
// Whether HYDRASCOPE_DEVICE names a GPU, on which tests run then in place of the fake device.
bool tests_are_on_gpu();

// What the host has asked of the device. A wait blocks the host until the device is idle: a number that is
// read (Tensor::item), a tensor that is copied to the CPU, an event or a stream that is waited for. Waiting
// for an event that has passed, or that has work queued behind it, does not count.
struct DeviceCounts {
  std::int64_t numbers_read = 0;  // Tensor::item and what calls it
  std::int64_t copies_to_cpu = 0; // of tensors
  std::int64_t copies_to_device = 0;
  std::int64_t synchronised = 0; // events, streams and the whole device
  std::int64_t paced = 0;        // events with more work behind them
  std::int64_t operators = 0;    // that ran on the device
  std::int64_t most_ahead = 0;   // operators that the host had queued and not waited for, at most
  std::int64_t caches_emptied = 0;
  std::int64_t of_watched_threads = 0; // operators and copies

  std::int64_t waits() const { return numbers_read + copies_to_cpu + synchronised; }
};

// Counts from the object's construction on, in all threads. The newest object has most_ahead.
class DeviceCounter {
public:
  DeviceCounter();
  DeviceCounts counts() const;

private:
  DeviceCounts before_;
};

// Allocations beyond what is in use and `bytes` more fail as CUDA's do, for as long as the object exists.
class DeviceMemoryLimit {
public:
  explicit DeviceMemoryLimit(std::size_t bytes);
  ~DeviceMemoryLimit();
  DeviceMemoryLimit(const DeviceMemoryLimit&) = delete;
  DeviceMemoryLimit& operator=(const DeviceMemoryLimit&) = delete;
};

// Copies of bytes that the data of a tensor begins with, for stand-ins of libraries that are given addresses.
void copy_from_device(void* to, const void* data, std::size_t bytes);
void copy_to_device(void* data, const void* from, std::size_t bytes);

// Counts what the calling thread asks of the device from now on, or no longer.
void watch_this_thread(bool on);

// Lets work of so many seconds pass on the device's stream, for events that measure time.
void advance_device(double seconds);

} // namespace hydrascope::test
