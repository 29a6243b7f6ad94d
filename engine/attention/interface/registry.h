// The registry behind kernel_infos() and make_kernel(). Only kernels and registry.cpp include this.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

struct RegistryEntry {
  KernelInfo info;
  std::vector<std::string> aliases;
  // Reads the spec's parameters; throws UsageError for a value that makes no sense.
  std::function<std::unique_ptr<Kernel>(const KernelSpec&)> make;
};

// All entries in their fixed order.
const std::vector<RegistryEntry>& registry();

// The entry of this name or alias; null if there is none.
const RegistryEntry* find_entry(std::string_view name);

} // namespace hydrascope
