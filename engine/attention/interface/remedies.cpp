#include "engine/attention/interface/remedies.h"

#include <new>
#include <utility>

#include <c10/util/Exception.h>
#include <dnnl.hpp>

#include "engine/attention/interface/device.h"
#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

Failure out_of_memory() { return {Failure::Kind::memory, "out of memory"}; }
Failure out_of_memory_on(const std::string& device) {
  return {Failure::Kind::device_memory, "out of memory on " + device_of(device).str()};
}

Failure failure_of(const c10::Error& error, const std::string& device) {
  std::string message = first_line(error.what_without_backtrace());
  if (lasts_until_restart(message)) return {Failure::Kind::broken_device, std::move(message)};
  if (lacks_device_memory(message)) return out_of_memory_on(device);
  if (lacks_host_memory(message)) return out_of_memory();
  return {Failure::Kind::other, std::move(message)};
}

} // namespace

Failure caught_failure(const std::string& device) {
  try {
    throw;
  } catch (const c10::OutOfMemoryError&) { // of an accelerator: the CPU's allocator throws others
    return out_of_memory_on(device);
  } catch (const c10::Error& error) {
    return failure_of(error, device);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const dnnl::error& error) { // says no more when memory runs out
    return {Failure::Kind::memory, error.what()};
  }
}

void throw_with_remedy(const Remedies& remedies) {
  const auto [kind, reason] = caught_failure(remedies.device);
  switch (kind) {
    case Failure::Kind::broken_device: throw BrokenDevice(remedies.subject, reason);
    case Failure::Kind::device_memory:
      throw Error(remedies.subject, reason,
                  remedies.device_memory.empty() ? remedies.memory : remedies.device_memory);
    case Failure::Kind::memory: throw Error(remedies.subject, reason, remedies.memory);
    case Failure::Kind::other: break;
  }
  throw Error(remedies.subject, reason, remedies.other);
}

} // namespace hydrascope
