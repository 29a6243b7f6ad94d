// One of several processes that the process group's tests start. What it does is its first argument; its
// place among the others comes from the environment, as from torchrun. Prints what it found out.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/training/distributed/nccl.h"
#include "engine/training/distributed/process_group.h"
#include "tests/support/fake_device.h"

namespace {

using namespace hydrascope;
using namespace hydrascope::training;

constexpr int failed = 3;

void print(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kDouble).flatten().contiguous();
  const std::span<const double> numbers(values.data_ptr<double>(), static_cast<std::size_t>(values.numel()));
  fmt::print("{} {:a}\n", name, fmt::join(numbers, " ")); // hexadecimal: every bit is compared
}

// Sums, smallest, broadcast of several types, layouts and sizes; then a hundred steps.
void exchange(ProcessGroup& group) {
  const double rank = group.rank();
  at::Tensor leaf = at::full({2, 3}, rank + 0.1);
  leaf.set_requires_grad(true);
  std::vector<at::Tensor> tensors{
      leaf, at::arange(6, at::kDouble).view({2, 3}).t() * (rank + 1), at::full({2}, rank + 1, at::kBFloat16),
      at::full({3}, (std::int64_t{1} << 40) + group.rank(), at::kLong), at::zeros({0})};
  group.sum(tensors);
  for (const at::Tensor& tensor : tensors) print("sum", tensor);

  std::vector<double> values{rank, -rank, 5};
  group.smallest(values);
  fmt::print("smallest {}\n", fmt::join(values, " "));

  std::vector<at::Tensor> given{at::full({4}, rank / 3, at::kDouble), at::full({1}, rank == 1, at::kBool)};
  group.broadcast(given, 1);
  for (const at::Tensor& tensor : given) print("broadcast", tensor);

  // Larger than a bucket together, and more than one call's worth of small ones.
  std::vector<at::Tensor> large(3, at::Tensor());
  for (at::Tensor& one : large) one = at::full({7'000'001}, rank + 1);
  group.sum(large);
  for (const at::Tensor& one : large) print("large", one.slice(0, 7'000'000));
  at::Tensor total = at::sin(at::arange(1000, at::kFloat) * (rank + 1));
  for (int step = 0; step < 100; ++step) {
    std::vector<at::Tensor> list{total};
    group.sum(list);
    total = at::sin(list[0] * (rank + 1) + step);
  }
  std::vector<at::Tensor> list{total};
  group.sum(list);
  print("steps", list[0]);
  group.barrier();
}

// NCCL's functions for the fake device. They sum by way of the group itself, or do what the task asks for.
struct StandIn {
  ProcessGroup* group = nullptr;
  std::string task;
  int victim = -1;
};
StandIn& stand_in() {
  static StandIn one;
  return one;
}

using Result = NcclFunctions::Result;
using Communicator = NcclFunctions::Communicator;
constexpr Result refused = 5, remote_error = 6;

Result get_unique_id(NcclFunctions::Id* id) {
  for (std::size_t i = 0; i < id->bytes.size(); ++i) id->bytes[i] = static_cast<char>(200 + i);
  return 0;
}
Result init_rank(Communicator* communicator, int ranks, NcclFunctions::Id id, int rank) {
  NcclFunctions::Id expected;
  get_unique_id(&expected);
  const ProcessGroup& group = *stand_in().group;
  if (ranks != group.size() || rank != group.rank() || id.bytes != expected.bytes) return refused;
  if (stand_in().task == "nccl-refused" && rank == 1) return refused;
  *communicator = &stand_in();
  return 0;
}
Result all_reduce(const void* from, void* to, std::size_t count, int type, int operation, Communicator,
                  void* stream) {
  if (operation != 0 || stream != nullptr) return refused;
  if (stand_in().task == "nccl-silent") return 0;
  if (stand_in().task == "nccl-dies") {
    if (stand_in().group->rank() == stand_in().victim) std::raise(SIGKILL);
    return 0;
  }
  const at::ScalarType numbers = type == 7 ? at::kFloat : type == 8 ? at::kDouble : at::kLong;
  std::vector<at::Tensor> host{at::zeros({static_cast<std::int64_t>(count)}, numbers)};
  test::copy_from_device(host[0].mutable_data_ptr(), from, host[0].nbytes());
  stand_in().group->sum(host);
  test::copy_to_device(to, host[0].const_data_ptr(), host[0].nbytes());
  return 0;
}
Result asynchronous_error(Communicator, Result* error) {
  *error = stand_in().task == "nccl-dies" ? remote_error : 0;
  if (stand_in().task != "nccl-silent")
    c10::impl::VirtualGuardImpl(test::fake_device().type()).synchronizeDevice(0);
  return 0;
}
Result end(Communicator) { return 0; }
const char* error_text(Result result) { return result == refused ? "refused" : "remote process exited"; }

// Connects the devices as the task says: "device" not, "nccl-none" in one process only.
void connect(ProcessGroup& group, const std::string& task, int victim) {
  if (task == "device") return;
  stand_in() = {&group, task, victim};
  static constexpr NcclFunctions functions{get_unique_id, init_rank, all_reduce, asynchronous_error,
                                           end,           end,       error_text};
  const at::Tensor tensor = at::zeros({1}, at::TensorOptions(test::fake_device()));
  const bool has = task != "nccl-none" || group.rank() == 0;
  fmt::print("way {}\n", group.connect_devices_of(tensor, has ? &functions : nullptr));
}

// The same kinds of tensors on a device, and how often the host waited for it.
void exchange_on_device(ProcessGroup& group, const std::string& task, int victim) {
  connect(group, task, victim);
  const double rank = group.rank();
  const auto on_device = at::TensorOptions(at::kFloat).device(test::fake_device());
  std::vector<at::Tensor> tensors{
      at::full({2, 3}, rank + 0.1, on_device), at::full({3, 2}, rank + 1, on_device.dtype(at::kDouble)).t(),
      at::full({2}, rank + 1, on_device.dtype(at::kBFloat16)),
      at::full({3}, (std::int64_t{1} << 40) + group.rank(), on_device.dtype(at::kLong)),
      at::full({4}, rank + 2)};
  for (int i = 0; i < 50; ++i) tensors.push_back(at::full({1}, rank + i, on_device));
  const test::DeviceCounter counter;
  group.sum(tensors);
  fmt::print("waits {}\ncopies {}\n", counter.counts().waits(), counter.counts().copies_to_cpu);
  for (const at::Tensor& tensor : tensors) print("sum", tensor);
  group.barrier();
}

// Plain gradient descent on a batch of ten, of which each process takes its share.
void descend(ProcessGroup& group) {
  constexpr std::int64_t batch = 10;
  const at::Tensor x = at::sin(at::arange(batch * 4, at::kFloat)).view({batch, 4});
  const at::Tensor y = at::linspace(-1, 1, batch);
  at::Tensor weight = at::zeros({4});
  weight.set_requires_grad(true);
  const ItemRange own = share_of(batch, group.rank(), group.size());
  double loss_sum = 0;
  for (int step = 0; step < 50; ++step) {
    const at::Tensor error =
        at::matmul(x.slice(0, own.first, own.end()), weight) - y.slice(0, own.first, own.end());
    const at::Tensor loss = (error * error).sum() / static_cast<double>(batch);
    loss.backward();
    std::vector<at::Tensor> gradients{weight.grad()};
    group.sum(gradients);
    std::vector<double> losses{loss.item<double>()};
    group.sum(losses);
    loss_sum += losses[0];
    const at::NoGradGuard no_gradients;
    weight.sub_(gradients[0], 0.3);
    weight.mutable_grad() = at::Tensor();
  }
  print("weight", weight);
  fmt::print("loss {:a}\n", loss_sum);
}

// Steps without end, until this process or another has had enough.
void go_on(ProcessGroup& group, int victim, int signal) {
  std::vector<at::Tensor> list{at::full({100'000}, 1.0)};
  for (int step = 0;; ++step) {
    if (step == 5 && group.rank() == victim) std::raise(signal);
    list[0].fill_(1.0);
    group.sum(list);
  }
}

int run(const std::string& task, int victim) {
  ProcessGroupOptions options;
  options.connect = std::chrono::seconds(task == "wait" ? 4 : 120);
  options.answer = std::chrono::seconds(task == "stop" || task == "nccl-silent" ? 3 : 120);
  if (task == "silent") options.silence = std::chrono::seconds(3);
  ProcessGroup group(world_from_environment(), options);
  if (task == "exchange") exchange(group);
  if (task == "device" || task.starts_with("nccl")) exchange_on_device(group, task, victim);
  if (task == "descend") descend(group);
  if (task == "die") go_on(group, victim, SIGKILL);
  if (task == "stop" || task == "silent") go_on(group, victim, SIGSTOP);
  if (task == "leave" && group.rank() != victim) go_on(group, -1, 0);
  if (task == "pipe") {
    std::raise(SIGPIPE); // as a write does to one who has gone
    group.barrier();
  }
  if (task == "again") {
    try {
      go_on(group, victim, SIGKILL);
    } catch (const Error&) {
      group.barrier();
    }
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? std::stoi(argv[2]) : -1);
  } catch (const UsageError& error) {
    fmt::print("usage {}\n", error.what());
  } catch (const Error& error) {
    fmt::print("error {}\n", error.what());
  } catch (const std::exception& error) {
    fmt::print("other {}\n", error.what());
  }
  return failed;
}
