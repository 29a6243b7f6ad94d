#include "engine/training/distributed/nccl.h"

#include <optional>
#include <stdexcept>
#include <thread>

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "engine/base/shared_library.h"

namespace hydrascope::training {
namespace {

// Constants of nccl.h.
constexpr int sum_operation = 0, int64_type = 4, float32_type = 7, float64_type = 8;
constexpr NcclFunctions::Result success = 0, in_progress = 7;

int type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return float32_type;
    case at::kDouble: return float64_type;
    case at::kLong: return int64_type;
    default: throw std::runtime_error("NCCL: a tensor of a type that is not sent");
  }
}

std::optional<NcclFunctions> load_nccl() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL); // LibTorch's, which is loaded by then
  NcclFunctions nccl{};
  const bool complete = find_function(library, "ncclGetUniqueId", nccl.get_unique_id) &&
                        find_function(library, "ncclCommInitRank", nccl.init_rank) &&
                        find_function(library, "ncclAllReduce", nccl.all_reduce) &&
                        find_function(library, "ncclCommGetAsyncError", nccl.asynchronous_error) &&
                        find_function(library, "ncclCommDestroy", nccl.destroy) &&
                        find_function(library, "ncclCommAbort", nccl.abort) &&
                        find_function(library, "ncclGetErrorString", nccl.error_text);
  return complete ? std::optional(nccl) : std::nullopt;
}

} // namespace

const NcclFunctions* nccl_functions() {
  static const std::optional<NcclFunctions> functions = load_nccl();
  return functions ? &*functions : nullptr;
}

NcclGroup::NcclGroup(const NcclFunctions& functions, const NcclFunctions::Id& id, const int rank,
                     const int size, const at::Device device, const std::chrono::milliseconds answer_limit)
    : functions_(functions), device_(device), answer_limit_(answer_limit) {
  const c10::DeviceGuard current(device_);
  check(functions_.init_rank(&communicator_, size, id, rank), "connecting");
}

NcclGroup::~NcclGroup() {
  if (communicator_ == nullptr) return;
  const c10::DeviceGuard current(device_);
  if (whole_)
    functions_.destroy(communicator_);
  else
    functions_.abort(communicator_);
}

void NcclGroup::sum(at::Tensor& tensor) {
  const c10::DeviceGuard current(device_);
  const c10::impl::VirtualGuardImpl guard(device_.type());
  void* const stream = guard.getStreamNativeHandle(guard.getStream(device_));
  void* const numbers = tensor.mutable_data_ptr();
  whole_ = false;
  check(functions_.all_reduce(numbers, numbers, static_cast<std::size_t>(tensor.numel()), type_of(tensor),
                              sum_operation, communicator_, stream),
        "summing");
  wait();
  whole_ = true;
}

// The host would wait for ever where another process has ended: it looks again and again instead.
void NcclGroup::wait() {
  using Clock = std::chrono::steady_clock;
  c10::Event done(device_.type());
  done.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  const auto deadline = Clock::now() + answer_limit_;
  while (!done.query()) {
    NcclFunctions::Result error = success;
    check(functions_.asynchronous_error(communicator_, &error), "asking for errors");
    if (error != in_progress) check(error, "summing");
    if (Clock::now() > deadline) throw std::runtime_error("NCCL: another GPU does not answer");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void NcclGroup::check(const NcclFunctions::Result result, const char* const what) const {
  if (result != success)
    throw std::runtime_error(fmt::format("NCCL: {}: {}", what, functions_.error_text(result)));
}

} // namespace hydrascope::training
