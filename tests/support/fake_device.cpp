#include "tests/support/fake_device.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "engine/base/process.h"
#include "tests/support/fake_device_memory.h"

namespace hydrascope::test {
namespace {

constexpr auto device_type = c10::DeviceType::PrivateUse1;

struct Counters {
  std::atomic<std::int64_t> numbers_read{0}, copies_to_cpu{0}, copies_to_device{0}, synchronised{0}, paced{0},
      operators{0}, most_ahead{0}, caches_emptied{0}, of_watched_threads{0};
};

Counters& counters() {
  static Counters all;
  return all;
}

// The number of operators that the host knows to be done. The stream is in order.
std::atomic<std::int64_t> done_operators{0};

void all_done() { done_operators = counters().operators.load(); }

thread_local bool watched_thread = false;

void count_for_thread() {
  if (watched_thread) ++counters().of_watched_threads;
}

// While an operator runs on the CPU: its copies are not the program's.
thread_local bool inside_operator = false;

class OperatorScope {
public:
  OperatorScope() : before_(std::exchange(inside_operator, true)) {
    const std::int64_t queued = ++counters().operators;
    const std::int64_t ahead = queued - done_operators;
    if (ahead > counters().most_ahead) counters().most_ahead = ahead;
    count_for_thread();
  }
  ~OperatorScope() { inside_operator = before_; }
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

private:
  bool before_;
};

// A tensor's pages, accessible during the object's lifetime; a tensor of the CPU is left as it is.
class OpenPages {
public:
  explicit OpenPages(const at::Tensor& tensor)
      : pages_(tensor.device().type() == device_type ? tensor.storage().mutable_data() : nullptr) {
    if (pages_ != nullptr) DeviceMemory::instance().open(pages_);
  }
  ~OpenPages() {
    if (pages_ != nullptr) DeviceMemory::instance().close(pages_);
  }
  OpenPages(const OpenPages&) = delete;
  OpenPages& operator=(const OpenPages&) = delete;

private:
  void* pages_;
};

class Allocator final : public c10::DeviceAllocator {
public:
  c10::DataPtr allocate(const std::size_t bytes) override {
    void* const pages = bytes > 0 ? DeviceMemory::instance().allocate(bytes) : nullptr;
    return {pages, pages, release, fake_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "the host cannot copy within the fake device");
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { ++counters().caches_emptied; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto [used, most] = DeviceMemory::instance().used();
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[all].current = stats.reserved_bytes[all].current = static_cast<std::int64_t>(used);
    stats.allocated_bytes[all].peak = stats.reserved_bytes[all].peak = static_cast<std::int64_t>(most);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { DeviceMemory::instance().reset_peak(); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {DeviceMemory::instance().free_bytes(), DeviceMemory::total_bytes};
  }

private:
  static void release(void* const pages) { DeviceMemory::instance().release(pages); }
};

Allocator allocator;
REGISTER_ALLOCATOR(device_type, &allocator)

// The time of the device's one stream: the host's, and what advance_device() has added.
class DeviceTime {
public:
  double now() const {
    const std::chrono::duration<double> host = std::chrono::steady_clock::now().time_since_epoch();
    return host.count() + added_;
  }
  void add(const double seconds) { added_ = added_ + seconds; }
  bool is_done(const double time) const { return time <= done_; }
  // The host waits for everything until now, or until `time`.
  void wait() { done_ = now(); }
  void wait_for(const double time) {
    if (time > done_) done_ = time;
  }

private:
  std::atomic<double> added_{0}, done_{0};
};

DeviceTime& device_time() {
  static DeviceTime time;
  return time;
}

struct Event {
  double time = 0;
  bool keeps_time = false;
  std::int64_t operators = 0; // that were queued before it
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
  c10::DeviceType type() const override { return device_type; }
  c10::Device getDevice() const override { return fake_device(); }
  c10::Device exchangeDevice(c10::Device) const override { return fake_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(const c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(const c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(const c10::Stream stream) const override { return stream; }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** const event, const c10::Stream&, c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {device_time().now(), flag == c10::EventFlag::BACKEND_DEFAULT,
                                    counters().operators};
  }
  void destroyEvent(void* const event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* const event) const override {
    return event == nullptr || device_time().is_done(static_cast<Event*>(event)->time);
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeEvent(void* const event) const override {
    const auto& awaited = *static_cast<Event*>(event);
    if (device_time().is_done(awaited.time)) return;
    if (awaited.operators == counters().operators) return synchronise();
    ++counters().paced;
    device_time().wait_for(awaited.time);
    if (awaited.operators > done_operators) done_operators = awaited.operators;
  }
  void synchronizeStream(const c10::Stream&) const override { synchronise(); }
  void synchronizeDevice(c10::DeviceIndex) const override { synchronise(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  double elapsedTime(void* const begin, void* const end, c10::DeviceIndex) const override {
    const auto& first = *static_cast<Event*>(begin);
    const auto& last = *static_cast<Event*>(end);
    TORCH_CHECK(first.keeps_time && last.keeps_time, "an event without time");
    return 1e3 * (last.time - first.time);
  }

private:
  static void synchronise() {
    ++counters().synchronised;
    device_time().wait();
    all_done();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

class Hooks final : public at::PrivateUse1HooksInterface {
public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Device getDeviceFromPtr(void*) const override { return fake_device(); }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
};

// LibTorch differentiates on one accelerator alone, and takes this one before a GPU.
const bool hooks_registered = [] {
  if (tests_are_on_gpu()) return false;
  static Hooks hooks;
  c10::register_privateuse1_backend("fake");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

constexpr c10::DispatchKeySet device_keys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(const at::IntArrayRef size, const std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 const std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, device_keys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(const at::IntArrayRef size, const at::IntArrayRef stride,
                         const std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, device_keys,
                                           c10::dtype_or_default(type));
}

// The same view of the same pages as a tensor of the CPU; they must be open.
at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const auto entries = static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  return at::from_blob(tensor.storage().mutable_data(), {entries}, tensor.options().device(at::kCPU))
      .as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (from.numel() == 0) return to;
  count_for_thread();
  if (from.is_cpu() && !inside_operator) ++counters().copies_to_device;
  if (to.is_cpu() && !inside_operator) {
    ++counters().copies_to_cpu;
    device_time().wait();
    all_done();
  }
  const OpenPages source(from), target(to);
  on_host(to).copy_(on_host(from));
  return to;
}

// The pages move where they are too few; what they held is lost.
const at::Tensor& resize(const at::Tensor& tensor, const at::IntArrayRef size,
                         std::optional<at::MemoryFormat>) {
  c10::TensorImpl* const implementation = tensor.unsafeGetTensorImpl();
  const std::size_t bytes = at::detail::computeStorageNbytesContiguous(
      size, tensor.itemsize(), static_cast<std::size_t>(tensor.storage_offset()));
  if (tensor.storage().nbytes() < bytes) {
    implementation->unsafe_storage().set_data_ptr_noswap(allocator.allocate(bytes));
    implementation->unsafe_storage().set_nbytes(bytes);
  }
  implementation->set_sizes_contiguous(size);
  return tensor; // NOLINT(bugprone-return-const-ref-from-parameter): the signature is LibTorch's
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar read_number(const at::Tensor& tensor) {
  count_for_thread();
  ++counters().numbers_read;
  device_time().wait();
  all_done();
  const OpenPages pages(tensor);
  return on_host(tensor).item();
}

at::Tensor& set_storage(at::Tensor& tensor, c10::Storage storage, const std::int64_t offset,
                        const at::IntArrayRef size, const at::IntArrayRef stride) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return tensor;
}

// CUDA's rule: all tensors of an operator lie on one device, but for single numbers, and for indices where
// the operator is index or index_put.
void require_device(const at::Tensor& tensor, const std::string& argument, const std::string& name) {
  static const std::set<std::string> takes_indices_of_the_cpu{"aten::index", "aten::index_put",
                                                              "aten::index_put_", "aten::_index_put_impl_"};
  if (!tensor.defined() || tensor.device().type() == device_type) return;
  if (tensor.is_cpu() && tensor.dim() == 0) return;
  if (argument == "indices" && takes_indices_of_the_cpu.contains(name)) return;
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but argument ", argument, " of ", name,
              " is on ", tensor.device(), " and others are on ", fake_device());
}

// Runs the operator on copies on the CPU.
void run_on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* const stack) {
  const OperatorScope scope;
  const auto& arguments = operation.schema().arguments();
  const std::string& name = operation.schema().name();
  const std::size_t first = stack->size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = (*stack)[first + i];
    const std::string& argument = arguments[i].name();
    if (value.isTensor()) {
      require_device(value.toTensor(), argument, name);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) require_device(tensor, argument, name);
    } else if (value.isOptionalTensorList()) {
      for (const auto& tensor : value.toOptionalTensorVector())
        if (tensor) require_device(*tensor, argument, name);
    }
  }
  at::native::cpu_fallback(operation, stack, /*error_on_views=*/true);
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       const at::IntArrayRef stride, const at::IntArrayRef padding,
                       const at::IntArrayRef dilation, const bool transposed,
                       const at::IntArrayRef output_padding, const std::int64_t groups) {
  const OperatorScope scope;
  const bool has_bias = bias && bias->defined();
  require_device(x, "input", "aten::convolution");
  require_device(weight, "weight", "aten::convolution");
  if (has_bias) require_device(*bias, "bias", "aten::convolution");
  const OpenPages x_pages(x), weight_pages(weight), bias_pages(has_bias ? *bias : x);
  return at::convolution(on_host(x), on_host(weight), has_bias ? std::optional(on_host(*bias)) : std::nullopt,
                         stride, padding, dilation, transposed, output_padding, groups)
      .to(fake_device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, const at::IntArrayRef stride,
    const at::IntArrayRef padding, const at::IntArrayRef dilation, const bool transposed,
    const at::IntArrayRef output_padding, const std::int64_t groups, const std::array<bool, 3> wanted) {
  const OperatorScope scope;
  require_device(gradient, "gradient", "aten::convolution_backward");
  require_device(x, "input", "aten::convolution_backward");
  require_device(weight, "weight", "aten::convolution_backward");
  const OpenPages gradient_pages(gradient), x_pages(x), weight_pages(weight);
  const std::array<std::int64_t, 1> bias{weight.size(0)};
  const auto all = at::convolution_backward(on_host(gradient), on_host(x), on_host(weight), bias, stride,
                                            padding, dilation, transposed, output_padding, groups, wanted);
  const auto placed = [](const at::Tensor& result) {
    return result.defined() ? result.to(fake_device()) : result;
  };
  return {placed(std::get<0>(all)), placed(std::get<1>(all)), placed(std::get<2>(all))};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("resize_", &resize);
  library.impl("_local_scalar_dense", &read_number);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("as_strided", [](const at::Tensor& x, at::IntArrayRef size, at::IntArrayRef stride,
                                std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(x, size, stride, offset);
  });
  library.impl("view", [](const at::Tensor& x, at::IntArrayRef size) { return at::native::view(x, size); });
  library.impl("_reshape_alias", [](const at::Tensor& x, at::IntArrayRef size, at::IntArrayRef stride) {
    return at::native::_reshape_alias(x, size, stride);
  });
  library.impl("unfold", [](const at::Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
    return at::native::unfold(x, axis, size, step);
  });
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

DeviceCounts counted() {
  const Counters& all = counters();
  DeviceCounts counts;
  counts.numbers_read = all.numbers_read;
  counts.copies_to_cpu = all.copies_to_cpu;
  counts.copies_to_device = all.copies_to_device;
  counts.synchronised = all.synchronised;
  counts.paced = all.paced;
  counts.operators = all.operators;
  counts.most_ahead = all.most_ahead;
  counts.caches_emptied = all.caches_emptied;
  counts.of_watched_threads = all.of_watched_threads;
  return counts;
}

} // namespace

c10::Device fake_device() { return {device_type, 0}; }

bool tests_are_on_gpu() { return environment("HYDRASCOPE_DEVICE").starts_with("cuda"); }

DeviceCounter::DeviceCounter() : before_(counted()) { counters().most_ahead = 0; }

DeviceCounts DeviceCounter::counts() const {
  DeviceCounts since = counted();
  since.numbers_read -= before_.numbers_read;
  since.copies_to_cpu -= before_.copies_to_cpu;
  since.copies_to_device -= before_.copies_to_device;
  since.synchronised -= before_.synchronised;
  since.paced -= before_.paced;
  since.operators -= before_.operators;
  since.caches_emptied -= before_.caches_emptied;
  since.of_watched_threads -= before_.of_watched_threads;
  return since;
}

DeviceMemoryLimit::DeviceMemoryLimit(const std::size_t bytes) { DeviceMemory::instance().limit_free(bytes); }
DeviceMemoryLimit::~DeviceMemoryLimit() { DeviceMemory::instance().remove_limit(); }

void copy_from_device(void* const to, const void* const data, const std::size_t bytes) {
  DeviceMemory::instance().open(const_cast<void*>(data));
  std::memcpy(to, data, bytes);
  DeviceMemory::instance().close(const_cast<void*>(data));
}

void copy_to_device(void* const data, const void* const from, const std::size_t bytes) {
  DeviceMemory::instance().open(data);
  std::memcpy(data, from, bytes);
  DeviceMemory::instance().close(data);
}

void watch_this_thread(const bool on) { watched_thread = on; }

void advance_device(const double seconds) { device_time().add(seconds); }

} // namespace hydrascope::test
