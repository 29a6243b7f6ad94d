// Sums over processes from GPU to GPU, by NVIDIA's NCCL. Its library comes with LibTorch's CUDA half and is
// called by its C interface, which keeps its types and constants over versions: neither NCCL nor CUDA is
// needed to build.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <ATen/core/Tensor.h>

namespace hydrascope::training {

// The functions of nccl.h that are used; a result of 0 is success.
struct NcclFunctions {
  using Result = int;
  using Communicator = void*;
  struct Id {
    std::array<char, 128> bytes{};
  };

  Result (*get_unique_id)(Id* id);
  Result (*init_rank)(Communicator* communicator, int ranks, Id id, int rank);
  Result (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                       Communicator communicator, void* stream);
  Result (*asynchronous_error)(Communicator communicator, Result* error);
  Result (*destroy)(Communicator communicator);
  Result (*abort)(Communicator communicator);
  const char* (*error_text)(Result result);
};

// Those of the library that is installed; null where there is none or it lacks one. The library is never
// unloaded.
const NcclFunctions* nccl_functions();

// The ranks' GPUs, one each. All throw std::runtime_error with NCCL's reason.
class NcclGroup {
public:
  // Every rank connects at once, with the id that rank 0 has got. `device`: of this rank.
  NcclGroup(const NcclFunctions& functions, const NcclFunctions::Id& id, int rank, int size,
            at::Device device, std::chrono::milliseconds answer_limit);
  // Gives up what is under way.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  at::Device device() const { return device_; }

  // A contiguous tensor of the device, of float, double or long; in place. Returns when all ranks have added
  // theirs, or throws when one has not within the limit.
  void sum(at::Tensor& tensor);

private:
  void wait();
  void check(NcclFunctions::Result result, const char* what) const;

  const NcclFunctions& functions_;
  at::Device device_;
  std::chrono::milliseconds answer_limit_;
  NcclFunctions::Communicator communicator_ = nullptr;
  bool whole_ = true; // false after an error
};

} // namespace hydrascope::training
