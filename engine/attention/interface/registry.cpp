#include "engine/attention/interface/registry.h"

#include <algorithm>

// The kernels in the order in which people see them: one line each, defined in the file of its family.
#define HYDRASCOPE_KERNELS(KERNEL)     \
  KERNEL(softmax_kernel)               \
  KERNEL(sdpa_kernel)                  \
  KERNEL(flash_kernel)                 \
  KERNEL(local_window_kernel)          \
  KERNEL(linear_cosine_kernel)         \
  KERNEL(hydra_cosine_kernel)          \
  KERNEL(hydra_tanh_l2_kernel)         \
  KERNEL(hydra_mean_kernel)            \
  KERNEL(hydra_cosine_ln_kernel)       \
  KERNEL(hydra_tanh_l2_ln_kernel)      \
  KERNEL(hydra_tanh_softmax_kernel)    \
  KERNEL(hydra_sigmoid_softmax_kernel) \
  KERNEL(hydra_l1_kernel)              \
  KERNEL(poly_nl_kernel)               \
  KERNEL(elu_kernel)                   \
  KERNEL(relu_kernel)                  \
  KERNEL(t2r_kernel)                   \
  KERNEL(t2r_hh_kernel)                \
  KERNEL(performer_kernel)             \
  KERNEL(cosformer_kernel)             \
  KERNEL(exp_t1_kernel)                \
  KERNEL(exp_t2_kernel)                \
  KERNEL(taylor_kernel)                \
  KERNEL(hedgehog_kernel)              \
  KERNEL(hedgehog_softmax_kernel)      \
  KERNEL(hedgehog_untrained_kernel)

namespace hydrascope {

#define HYDRASCOPE_DECLARE(function) RegistryEntry function();
HYDRASCOPE_KERNELS(HYDRASCOPE_DECLARE)
#undef HYDRASCOPE_DECLARE

const std::vector<RegistryEntry>& registry() {
#define HYDRASCOPE_ENTRY(function) function(),
  static const std::vector<RegistryEntry> entries = {HYDRASCOPE_KERNELS(HYDRASCOPE_ENTRY)};
#undef HYDRASCOPE_ENTRY
  return entries;
}

const RegistryEntry* find_entry(std::string_view name) {
  const auto found = std::ranges::find_if(registry(), [&](const RegistryEntry& entry) {
    return entry.info.name == name || std::ranges::find(entry.aliases, name) != entry.aliases.end();
  });
  return found == registry().end() ? nullptr : &*found;
}

std::unique_ptr<Kernel> make_kernel(const KernelSpec& spec) {
  const RegistryEntry* entry = find_entry(kernel_info(spec.name).name);
  return entry->make(spec);
}

} // namespace hydrascope
