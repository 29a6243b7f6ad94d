// LibTorch contains Gloo, but not Gloo's headers; those are Debian's libgloo-dev, of another version. Nothing
// here may depend on the layout of Gloo's classes: ProcessGroupGloo holds only pointers to them, and this
// file makes one and uses it as a Backend. (It references no symbol of Gloo but that type's exported
// functions.)
#define USE_C10D_GLOO

#include "engine/training/distributed/process_group.h"

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/base/text.h"
#include "engine/training/distributed/heartbeat.h"
#include "engine/training/distributed/nccl.h"
#include "engine/training/distributed/rendezvous.h"

namespace hydrascope::training {
// Gloo's collective operations on CPU tensors, contiguous, of float, double or long. All throw std::exception
// as LibTorch does.
class GlooGroup {
public:
  // Listens at `address`, or on the interface that GLOO_SOCKET_IFNAME names, and connects to all other ranks.
  GlooGroup(const c10::intrusive_ptr<c10d::Store>& store, const WorldInfo& world, const std::string& address,
            const ProcessGroupOptions& limits)
      : heartbeat_(store, world), limits_(limits) {
    const std::string interface = environment("GLOO_SOCKET_IFNAME");
    const auto options = c10d::ProcessGroupGloo::Options::create(limits.connect);
    options->devices.push_back(interface.empty()
                                   ? c10d::ProcessGroupGloo::createDeviceForHostname(address)
                                   : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    backend_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, world.rank, world.size, options);
  }
  // A call that waits for a process that has ended cannot be interrupted, and the destructor would wait for
  // it.
  ~GlooGroup() {
    if (abandoned_) static_cast<void>(backend_.release());
  }
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  void sum(at::Tensor& tensor) { reduce(tensor, c10d::ReduceOp::SUM); }
  void smallest(at::Tensor& tensor) { reduce(tensor, c10d::ReduceOp::MIN); }
  void broadcast(at::Tensor& tensor, int root) {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = limits_.answer;
    std::vector<at::Tensor> list{tensor};
    await(*backend_->broadcast(list, options));
  }

private:
  void reduce(at::Tensor& tensor, c10d::ReduceOp::RedOpType operation) {
    c10d::AllreduceOptions options;
    options.reduceOp = operation;
    options.timeout = limits_.answer;
    std::vector<at::Tensor> list{tensor};
    await(*backend_->allreduce(list, options));
  }

  // Until the work is done or has failed, or a process has been silent for too long.
  void await(c10d::Work& work) {
    for (;;) {
      try {
        work.wait(kPatience);
        return;
      } catch (const std::exception&) { // it has failed, or is not done yet
        if (work.isCompleted()) {
          work.wait();
          return;
        }
      }
      if (const std::vector<int> silent = heartbeat_.silent_for(limits_.silence); !silent.empty()) {
        abandoned_ = true;
        throw std::runtime_error(fmt::format("nothing has been heard of rank {} for {:.3g} s",
                                             fmt::join(silent, ", "),
                                             std::chrono::duration<double>(limits_.silence).count()));
      }
    }
  }

  static constexpr std::chrono::milliseconds kPatience{1000};

  c10::intrusive_ptr<c10d::Backend> backend_;
  Heartbeat heartbeat_;
  ProcessGroupOptions limits_;
  bool abandoned_ = false;
};

namespace {

using Operation = std::function<void(at::Tensor&)>;

// Large enough for latency not to matter, small enough not to double the memory of a large model.
constexpr std::int64_t kBucketElements = std::int64_t{1} << 24;

// Runs the operation on a contiguous tensor of the CPU in place of one of another device, for which the host
// waits once.
void through_host(at::Tensor& bucket, const Operation& operation) {
  if (bucket.is_cpu()) {
    operation(bucket);
    return;
  }
  // CUDA copies to and from pinned memory by DMA, elsewhere by way of a buffer of its own.
  const auto options = at::TensorOptions(bucket.scalar_type()).pinned_memory(bucket.is_cuda());
  at::Tensor host = at::empty(bucket.sizes(), options);
  host.copy_(bucket);
  operation(host);
  bucket.copy_(host);
}

// The type that a tensor's elements are sent as, without loss.
at::ScalarType wire_type(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return at::kLong;
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void through_one_bucket(const std::vector<at::Tensor*>& tensors, at::ScalarType type, std::int64_t elements,
                        const Operation& operation) {
  if (elements == 0) return;
  at::Tensor bucket = at::empty({elements}, at::TensorOptions(type).device(tensors.front()->device()));
  const auto each = [&](const auto& visit) {
    std::int64_t offset = 0;
    for (at::Tensor* const tensor : tensors) {
      visit(*tensor, bucket.narrow(0, offset, tensor->numel()).view(tensor->sizes()));
      offset += tensor->numel();
    }
  };
  each([](at::Tensor& tensor, const at::Tensor& part) { part.copy_(tensor); });
  operation(bucket);
  each([](at::Tensor& tensor, const at::Tensor& part) { tensor.copy_(part); });
}

void check_defined(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors)
    if (!tensor.defined())
      throw Error("process group", "a tensor is not defined", "give zeros where a rank has no gradient");
}

// Few calls for many tensors: those of one type and device are sent together.
void through_buckets(std::vector<at::Tensor>& tensors, const Operation& operation) {
  const at::NoGradGuard no_gradients; // parameters are leaves
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong}) {
    std::vector<at::Tensor*> together;
    std::int64_t elements = 0;
    for (at::Tensor& tensor : tensors) {
      if (wire_type(tensor) != type) continue;
      if (!together.empty() &&
          (elements + tensor.numel() > kBucketElements || tensor.device() != together.front()->device())) {
        through_one_bucket(together, type, elements, operation);
        together.clear();
        elements = 0;
      }
      together.push_back(&tensor);
      elements += tensor.numel();
    }
    through_one_bucket(together, type, elements, operation);
  }
}

void through_tensor(std::span<double> values, const Operation& operation) {
  if (values.empty()) return;
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  operation(tensor);
  std::copy_n(tensor.data_ptr<double>(), values.size(), values.begin());
}

// "[…/gloo/transport/tcp/pair.cc:534] Connection closed by peer …" without the source, on one line.
std::string plain_reason(const std::exception& error) {
  std::string text = first_line(error.what());
  if (text.starts_with('[') && text.find("] ") != std::string::npos) text = text.substr(text.find("] ") + 2);
  return text.substr(0, text.find(". This may indicate"));
}

} // namespace

class ProcessGroup::Connection {
public:
  Connection(const WorldInfo& world, const ProcessGroupOptions& options)
      : rendezvous_(world, options.connect), answer_limit_(options.answer), remedy_(options.remedy) {
    guarded([&] { gloo_.emplace(rendezvous_.store(), world, rendezvous_.own_address(), options); });
  }

  // Runs one collective operation. A failure ends the group: it closes the connections, so that the others
  // fail too instead of waiting.
  void guarded(const std::function<void()>& operation) {
    if (!failure_.empty()) fail();
    try {
      operation();
    } catch (const std::bad_alloc&) {
      failure_ = "this one had no memory left";
      close();
      throw;
    } catch (const std::exception& error) {
      failure_ = plain_reason(error);
      close();
      if (const std::string missing = rendezvous_.missing_ranks(); !missing.empty())
        failure_ = fmt::format("{} ({})", missing, failure_);
      fail();
    }
  }

  GlooGroup& gloo() { return *gloo_; }

  // From GPU to GPU where the bucket's device is connected.
  void sum(at::Tensor& bucket) {
    if (nccl_ && bucket.device() == nccl_->device())
      nccl_->sum(bucket);
    else
      through_host(bucket, [&](at::Tensor& host) { gloo_->sum(host); });
  }

  // Why this rank cannot connect its device; empty once it has.
  std::string connect(const at::Tensor& tensor, const NcclFunctions* const functions) {
    if (!all(functions != nullptr)) return "not every process has a GPU and NCCL";
    const WorldInfo& world = rendezvous_.world();
    NcclFunctions::Id id;
    const bool has_id = world.rank != 0 || functions->get_unique_id(&id) == 0;
    if (!all(has_id)) return "NCCL does not start";
    at::Tensor bytes = at::empty({static_cast<std::int64_t>(id.bytes.size())}, at::kLong);
    std::copy(id.bytes.begin(), id.bytes.end(), bytes.mutable_data_ptr<std::int64_t>());
    gloo_->broadcast(bytes, 0);
    std::transform(bytes.const_data_ptr<std::int64_t>(), bytes.const_data_ptr<std::int64_t>() + bytes.numel(),
                   id.bytes.begin(), [](const std::int64_t byte) { return static_cast<char>(byte); });
    std::string reason = "another process could not connect its GPU";
    try {
      nccl_.emplace(*functions, id, world.rank, world.size, tensor.device(), answer_limit_);
    } catch (const std::exception& error) { // the others must hear of it
      reason = plain_reason(error);
    }
    if (all(nccl_.has_value())) return {};
    nccl_.reset();
    return reason;
  }

private:
  // Whether it holds in every process.
  bool all(const bool here) {
    at::Tensor least = at::full({1}, here ? 1.0 : 0.0, at::kDouble);
    gloo_->smallest(least);
    return least.item<double>() > 0;
  }

  void close() {
    nccl_.reset();
    gloo_.reset();
  }

  [[noreturn]] void fail() const {
    const WorldInfo& world = rendezvous_.world();
    throw Error(fmt::format("rank {} of {}", world.rank, world.size),
                "another process has ended or does not answer: " + failure_, remedy_);
  }

  Rendezvous rendezvous_;
  std::chrono::milliseconds answer_limit_;
  std::optional<GlooGroup> gloo_; // nullopt after a failure
  std::optional<NcclGroup> nccl_; // if the devices are connected
  std::string failure_, remedy_;
};

ProcessGroup::ProcessGroup(const WorldInfo& world, const ProcessGroupOptions& options) : world_(world) {
  if (!world.alone()) connection_ = std::make_unique<Connection>(world, options);
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::sum(std::vector<at::Tensor>& tensors) {
  if (alone()) return;
  check_defined(tensors);
  connection_->guarded(
      [&] { through_buckets(tensors, [&](at::Tensor& bucket) { connection_->sum(bucket); }); });
}

void ProcessGroup::sum(std::span<double> values) {
  if (alone()) return;
  connection_->guarded(
      [&] { through_tensor(values, [&](at::Tensor& tensor) { connection_->gloo().sum(tensor); }); });
}

void ProcessGroup::smallest(std::span<double> values) {
  if (alone()) return;
  connection_->guarded(
      [&] { through_tensor(values, [&](at::Tensor& tensor) { connection_->gloo().smallest(tensor); }); });
}

void ProcessGroup::broadcast(std::vector<at::Tensor>& tensors, int root) {
  if (alone()) return;
  check_defined(tensors);
  connection_->guarded([&] {
    through_buckets(tensors, [&](at::Tensor& bucket) {
      through_host(bucket, [&](at::Tensor& host) { connection_->gloo().broadcast(host, root); });
    });
  });
}

std::string ProcessGroup::connect_devices_of(const at::Tensor& tensor) {
  return connect_devices_of(tensor, tensor.is_cuda() ? nccl_functions() : nullptr);
}

std::string ProcessGroup::connect_devices_of(const at::Tensor& tensor, const NcclFunctions* const functions) {
  if (alone()) return "Gloo";
  std::string reason;
  connection_->guarded([&] { reason = connection_->connect(tensor, functions); });
  return reason.empty() ? "NCCL" : fmt::format("Gloo ({})", reason);
}

void ProcessGroup::barrier() {
  double nothing = 0;
  sum({&nothing, 1});
}

DataShare ProcessGroup::share() {
  return {rank(), size(), [this](std::span<double> values) { sum(values); },
          [this](std::span<double> values) { smallest(values); }};
}

} // namespace hydrascope::training
