// LibTorch carries its own Gloo, but not Gloo's headers; Debian's libgloo-dev, of another version, has them.
// Nothing here may depend on what is inside Gloo's classes: ProcessGroupGloo holds pointers to them only, and
// this file makes one, then uses it as a Backend. (It compiles to no Gloo symbol of its own but that type's
// exported functions.)
#define USE_C10D_GLOO

#include "engine/training/distributed/gloo_group.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "engine/base/process.h"

namespace hydrascope::training {
namespace {

void reduce(c10d::Backend& backend, at::Tensor& tensor, c10d::ReduceOp::RedOpType operation,
            std::chrono::milliseconds limit) {
  c10d::AllreduceOptions options;
  options.reduceOp = operation;
  options.timeout = limit;
  std::vector<at::Tensor> list{tensor};
  backend.allreduce(list, options)->wait();
}

} // namespace

GlooGroup::GlooGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                     const std::string& address, std::chrono::milliseconds connect_limit,
                     std::chrono::milliseconds answer_limit)
    : answer_limit_(answer_limit) {
  const std::string interface = environment("GLOO_SOCKET_IFNAME");
  const auto options = c10d::ProcessGroupGloo::Options::create(connect_limit);
  options->devices.push_back(interface.empty() ? c10d::ProcessGroupGloo::createDeviceForHostname(address)
                                               : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
  backend_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
}

GlooGroup::~GlooGroup() = default;

void GlooGroup::sum(at::Tensor& tensor) { reduce(*backend_, tensor, c10d::ReduceOp::SUM, answer_limit_); }

void GlooGroup::smallest(at::Tensor& tensor) {
  reduce(*backend_, tensor, c10d::ReduceOp::MIN, answer_limit_);
}

void GlooGroup::broadcast(at::Tensor& tensor, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.timeout = answer_limit_;
  std::vector<at::Tensor> list{tensor};
  backend_->broadcast(list, options)->wait();
}

} // namespace hydrascope::training
