// Gloo's collective operations on CPU tensors. The only place that needs Gloo's headers is its .cpp.
#pragma once

#include <chrono>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace c10d {
class Backend;
}

namespace hydrascope::training {

// All throw std::exception as LibTorch does. Tensors are contiguous, on the CPU, of float, double or long.
class GlooGroup {
public:
  // Listens at `address`, or on the interface that GLOO_SOCKET_IFNAME names, and connects with all others.
  GlooGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, const std::string& address,
            std::chrono::milliseconds connect_limit, std::chrono::milliseconds answer_limit);
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  void sum(at::Tensor& tensor);
  void smallest(at::Tensor& tensor);
  void broadcast(at::Tensor& tensor, int root);

private:
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::chrono::milliseconds answer_limit_;
};

} // namespace hydrascope::training
