// bfloat16 for matrix products on the CPU, as torch.autocast does it: parameters, norms and losses stay
// float32.
#pragma once

#include <string_view>

namespace hydrascope::training {

// True where the CPU multiplies bfloat16 natively (AVX512-BF16): there it is about three times as fast.
bool has_fast_bfloat16();

// "float32" → false, "bfloat16" → true, "auto" → has_fast_bfloat16(). Throws UsageError for anything else.
bool use_bfloat16(std::string_view dtype);

// For the life of the object, on this thread.
class Autocast {
public:
  explicit Autocast(bool enabled);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

private:
  bool enabled_;
  bool before_;
};

} // namespace hydrascope::training
