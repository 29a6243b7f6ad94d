// Lists of kernels with their parameters; what each kernel says of an input, and of its own written form.
#include "engine/attention/interface/kernel.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    for (const KernelSpec& spec : parse_kernel_list(fuzz::text_of(data, size))) {
      fuzz::must_accept([&] {
        if (parse_kernel_spec(spec.text()) != spec) std::abort();
      });
      const AttentionShape shape{.heads = 2, .tokens = 9, .head_width = 4, .layout = {1, 2, 4}};
      const auto kernel = find_entry(spec.name)->make(spec);
      if (kernel->plan(shape).support.ok) kernel->cost(shape);
      kernel_info(spec);
    }
  });
}
