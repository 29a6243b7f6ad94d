// A stack of its own for a fiber. Not swapcontext(), which also asks the operating system for the signal
// mask: most of the time of an emulated kernel would go there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef __x86_64__
  #include <ucontext.h>
#endif

namespace cuda_emulation {

#ifdef __x86_64__

// Saves the registers that a call preserves and the stack pointer, and takes up the others.
extern "C" void cuda_emulation_switch_stack(void** own_stack_pointer, void* other_stack_pointer);

class StackSwitch {
public:
  // The next switch to this one calls entry() on the stack. It must not return.
  void start(std::byte* const stack, const std::size_t bytes, void (*const entry)()) {
    // Six registers, the address to return to, and an end for what walks the stack.
    void* const frame[] = {
        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, reinterpret_cast<void*>(entry), nullptr};
    const std::size_t end = bytes / 16 * 16; // the stack itself is aligned to 16 bytes
    stack_pointer_ = stack + (end - sizeof frame);
    std::memcpy(stack_pointer_, static_cast<const void*>(&frame), sizeof frame);
  }
  void switch_to(const StackSwitch& other) {
    cuda_emulation_switch_stack(&stack_pointer_, other.stack_pointer_);
  }

private:
  void* stack_pointer_ = nullptr;
};

#else

class StackSwitch {
public:
  void start(std::byte* const stack, const std::size_t bytes, void (*const entry)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
  }
  void switch_to(const StackSwitch& other) { swapcontext(&context_, &other.context_); }

private:
  ucontext_t context_{};
};

#endif

} // namespace cuda_emulation
