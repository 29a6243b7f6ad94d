#include "tests/allocation/failing_allocator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <string_view>

#include <dlfcn.h>
#include <execinfo.h>
#include <jemalloc/jemalloc.h>

namespace {

// A function's own state would be initialised under a lock that allocates.
thread_local std::int64_t counted = -1, failing = hydrascope::test::FailingAllocation::none;
thread_local bool skipped = false; // the one with that number

bool has_name(const void* const code, const std::string_view part) {
  Dl_info info{};
  return dladdr(code, &info) != 0 &&
         ((info.dli_sname != nullptr &&
           std::string_view(info.dli_sname).find(part) != std::string_view::npos) ||
          (info.dli_fname != nullptr &&
           std::string_view(info.dli_fname).find(part) != std::string_view::npos));
}

// What ends a program that runs out of memory and is not ours: oneDNN, in libtorch_cpu, does not check what
// it allocates for its descriptions of operations (tensors are libc10's), JSON values allocate in their
// destructors, the C++ library's directory iterator and LibTorch's autograd (the sizes of a tensor of more
// than five dimensions) in functions that may not throw.
bool is_fatal_elsewhere(const void* const caller) {
  if (has_name(caller, "libtorch_cpu") || has_name(caller, "libgomp") || has_name(caller, "libomp"))
    return true;
  std::array<void*, 16> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + count, [](const void* frame) {
    return has_name(frame, "json_value7destroy") || has_name(frame, "18directory_iterator") ||
           has_name(frame, "13InputMetadata");
  });
}

bool fails(const void* const caller) {
  if (counted < 0) return false;
  const bool chosen = counted == failing;
  ++counted;
  if (!chosen) return false;
  counted = -1; // what looks at the caller may allocate
  const bool fatal = is_fatal_elsewhere(caller);
  counted = failing + 1;
  skipped = fatal;
  return !fatal;
}

void* allocate(const std::size_t size, const int flags, const void* const caller) {
  void* const memory = fails(caller) ? nullptr : mallocx(size == 0 ? 1 : size, flags);
  if (memory == nullptr) errno = ENOMEM;
  return memory;
}

void* allocate_or_throw(const std::size_t size, const int flags, const void* const caller) {
  if (void* const memory = allocate(size, flags, caller)) return memory;
  throw std::bad_alloc();
}

int aligned(const std::size_t alignment) { return MALLOCX_ALIGN(alignment); }

} // namespace

namespace hydrascope::test {

FailingAllocation::FailingAllocation(const std::int64_t number) {
  failing = number;
  skipped = false;
  counted = 0;
}
FailingAllocation::~FailingAllocation() { counted = -1; }
std::int64_t FailingAllocation::allocations() const { return counted; }
bool FailingAllocation::left_out() const { return skipped; }

} // namespace hydrascope::test

// Those of jemalloc's functions that allocate; free() and operator delete are its own.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {
void* malloc(const std::size_t size) { return allocate(size, 0, __builtin_return_address(0)); }
void* calloc(const std::size_t count, const std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  return allocate(bytes, MALLOCX_ZERO, __builtin_return_address(0));
}
void* realloc(void* const memory, const std::size_t size) {
  if (memory == nullptr) return allocate(size, 0, __builtin_return_address(0));
  if (fails(__builtin_return_address(0))) {
    errno = ENOMEM;
    return nullptr;
  }
  return rallocx(memory, size == 0 ? 1 : size, 0);
}
int posix_memalign(void** const result, const std::size_t alignment, const std::size_t size) {
  void* const memory = allocate(size, aligned(alignment), __builtin_return_address(0));
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}
void* aligned_alloc(const std::size_t alignment, const std::size_t size) {
  return allocate(size, aligned(alignment), __builtin_return_address(0));
}
void* memalign(const std::size_t alignment, const std::size_t size) {
  return allocate(size, aligned(alignment), __builtin_return_address(0));
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

void* operator new(const std::size_t size) { return allocate_or_throw(size, 0, __builtin_return_address(0)); }
void* operator new[](const std::size_t size) {
  return allocate_or_throw(size, 0, __builtin_return_address(0));
}
void* operator new(const std::size_t size, const std::align_val_t alignment) {
  return allocate_or_throw(size, aligned(static_cast<std::size_t>(alignment)), __builtin_return_address(0));
}
void* operator new[](const std::size_t size, const std::align_val_t alignment) {
  return allocate_or_throw(size, aligned(static_cast<std::size_t>(alignment)), __builtin_return_address(0));
}
void* operator new(const std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, __builtin_return_address(0));
}
void* operator new[](const std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, __builtin_return_address(0));
}
