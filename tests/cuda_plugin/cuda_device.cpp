// Tensors of LibTorch on the emulated CUDA devices: host memory, and as few operators as the plug-in calls.
#include <cstring>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "tests/cuda_emulation/emulation.h"

namespace hydrascope {
namespace {

class Allocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(const std::size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void* const data = host.get();
    return {data,
            host.release_context(),
            c10::GetCPUAllocator()->raw_deleter(),
            {c10::kCUDA, static_cast<c10::DeviceIndex>(cuda_emulation::current_device())}};
  }
  void copy_data(void* const to, const void* const from, const std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
Allocator allocator;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device getDevice() const override {
    return {c10::kCUDA, static_cast<c10::DeviceIndex>(cuda_emulation::current_device())};
  }
  c10::Device exchangeDevice(const c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(const c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(const c10::Device device) const noexcept override {
    if (device.has_index()) cuda_emulation::current_device() = static_cast<unsigned char>(device.index());
  }
  c10::Stream getStream(const c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(const c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

constexpr c10::DispatchKeySet cuda_keys(c10::DispatchKey::CUDA);

at::Tensor empty(const at::IntArrayRef sizes, const std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, const std::optional<at::Device> device, std::optional<bool>,
                 const std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, &allocator, cuda_keys, c10::dtype_or_default(type), format);
}
at::Tensor empty_strided(const at::IntArrayRef sizes, const at::IntArrayRef strides,
                         const std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         const std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, &allocator, cuda_keys,
                                           c10::dtype_or_default(type));
}

// The same memory as a tensor of the CPU's.
at::Tensor on_host(const at::Tensor& x) {
  if (x.is_cpu()) return x;
  return at::from_blob(x.data_ptr(), x.sizes(), x.strides(), x.options().device(at::kCPU));
}
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor& join(const at::ITensorListRef& parts, const std::int64_t dimension, at::Tensor& out) {
  std::vector<at::Tensor> on_cpu;
  for (const at::Tensor& part : parts) on_cpu.push_back(on_host(part));
  at::Tensor whole = on_host(out);
  at::cat_out(whole, on_cpu, dimension);
  return out;
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("cat.out", &join);
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy);
  library.impl("_local_scalar_dense", [](const at::Tensor& x) { return on_host(x).item(); });
  library.impl("as_strided", [](const at::Tensor& x, const at::IntArrayRef sizes,
                                const at::IntArrayRef strides, const std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(x, sizes, strides, offset);
  });
  library.impl("view",
               [](const at::Tensor& x, const at::IntArrayRef sizes) { return at::native::view(x, sizes); });
  library.impl("_reshape_alias",
               [](const at::Tensor& x, const at::IntArrayRef sizes, const at::IntArrayRef strides) {
                 return at::native::_reshape_alias(x, sizes, strides);
               });
}

} // namespace
} // namespace hydrascope
