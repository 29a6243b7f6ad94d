#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/vector_math.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

// The kernels in the order of the user interface: one line each, defined in the file of its family.
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
  KERNEL(relu_squared_kernel)          \
  KERNEL(t2r_kernel)                   \
  KERNEL(t2r_hh_kernel)                \
  KERNEL(performer_kernel)             \
  KERNEL(cosformer_kernel)             \
  KERNEL(exp_t1_kernel)                \
  KERNEL(exp_t2_kernel)                \
  KERNEL(taylor_kernel)                \
  KERNEL(hedgehog_kernel)              \
  KERNEL(hedgehog_exp_kernel)          \
  KERNEL(hedgehog_softmax_kernel)      \
  KERNEL(hedgehog_untrained_kernel)    \
  KERNEL(hedgehog_window_kernel)       \
  KERNEL(based_kernel)                 \
  KERNEL(phi_kernel)

namespace hydrascope {
namespace {

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const RegistryEntry& entry : registry()) names.push_back(entry.info.name);
  return names;
}

const RegistryEntry& entry_or_throw(std::string_view name, std::string_view option) {
  if (const RegistryEntry* entry = find_entry(name)) return *entry;
  const std::vector<std::string> names = known_names();
  if (name.empty())
    throw UsageError(option, "no kernel is named", fmt::format("known: {}", fmt::join(names, ", ")));
  std::vector<std::string> candidates = names;
  for (const RegistryEntry& entry : registry())
    candidates.insert(candidates.end(), entry.aliases.begin(), entry.aliases.end());
  throw UsageError(option, fmt::format("there is no kernel \"{}\"", name),
                   fmt::format("the nearest name is {}; known: {}", nearest_name(name, candidates),
                               fmt::join(names, ", ")));
}

void check_parameter(const RegistryEntry& entry, std::string_view key, std::string_view option) {
  if (entry.info.parameter(key) != nullptr) return;
  std::vector<std::string> accepted;
  for (const ParameterInfo& parameter : entry.info.parameters) accepted.push_back(parameter.name);
  throw UsageError(option, fmt::format("{} has no parameter \"{}\"", entry.info.name, key),
                   accepted.empty() ? fmt::format("{} takes none", entry.info.name)
                                    : fmt::format("it takes {}", fmt::join(accepted, ", ")));
}

} // namespace

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
  resolve_vector_math(); // no model runs without a kernel
  return entry_or_throw(spec.name, "kernel").make(spec);
}

const char* family_name(KernelFamily family) {
  switch (family) {
    case KernelFamily::exact: return "exact";
    case KernelFamily::window: return "window";
    case KernelFamily::hydra: return "Hydra";
    case KernelFamily::normalised_linear: return "normalised linear";
    case KernelFamily::trained: return "learned maps";
    case KernelFamily::own: break;
  }
  return "own";
}

const char* family_summary(KernelFamily family) {
  switch (family) {
    case KernelFamily::exact: return "softmax attention itself, computed in different ways";
    case KernelFamily::window: return "softmax over near tokens only";
    case KernelFamily::hydra: return "linear in N without normalisation, with as many heads as features";
    case KernelFamily::normalised_linear:
      return "linear in N, normalised like softmax, with a fixed feature map";
    case KernelFamily::trained: return "linear in N, with a feature map trained to match softmax";
    case KernelFamily::own: break;
  }
  return "your own kernels";
}

const ParameterInfo* KernelInfo::parameter(std::string_view key) const {
  const auto found = std::ranges::find(parameters, key, &ParameterInfo::name);
  return found == parameters.end() ? nullptr : &*found;
}

std::string KernelSpec::text() const {
  std::string written = name;
  for (char separator = ':'; const auto& [key, value] : parameters) {
    written += fmt::format("{}{}={}", separator, key, value);
    separator = ',';
  }
  return written;
}

std::string KernelSpec::label() const {
  const auto map = parameters.find("map");
  if (name != "phi" || map == parameters.end()) return text();
  return name + " " + map->second.substr(0, map->second.find('@'));
}

const std::vector<KernelInfo>& kernel_infos() {
  static const std::vector<KernelInfo> infos = [] {
    std::vector<KernelInfo> all;
    for (const RegistryEntry& entry : registry()) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

const KernelInfo& kernel_info(std::string_view name) { return entry_or_throw(name, "kernel").info; }

const KernelInfo& kernel_info(const KernelSpec& kernel) {
  const RegistryEntry& entry = entry_or_throw(kernel.name, "kernel");
  if (!entry.info_of || kernel.parameters.empty()) return entry.info;
  // Their number is that of the different specs that have been used.
  static std::mutex mutex;
  static std::map<KernelSpec, std::unique_ptr<const KernelInfo>> known;
  const std::lock_guard lock(mutex);
  auto& info = known[kernel];
  if (!info) info = std::make_unique<const KernelInfo>(entry.info_of(kernel));
  return *info;
}

KernelSpec parse_kernel_spec(std::string_view text, std::string_view option) {
  const std::string_view whole = trimmed(text);
  const std::size_t colon = whole.find(':');
  const RegistryEntry& entry = entry_or_throw(trimmed(whole.substr(0, colon)), option);
  KernelSpec spec{.name = entry.info.name, .parameters = {}};
  if (colon != std::string_view::npos) {
    for (const std::string_view item : split(whole.substr(colon + 1), ',')) {
      const std::size_t equals = item.find('=');
      std::string key{trimmed(item.substr(0, equals))};
      std::string value{equals == std::string_view::npos ? "" : trimmed(item.substr(equals + 1))};
      if (entry.resolve && equals == std::string_view::npos)
        value = std::exchange(key, entry.info.parameters.front().name);
      if (key.empty() || value.empty())
        throw UsageError(option, fmt::format("\"{}\" in \"{}\" is not of the form name=value", item, whole),
                         fmt::format("write {}:name=value,name=value", spec.name));
      check_parameter(entry, key, option);
      if (!spec.parameters.emplace(key, value).second)
        throw UsageError(option, fmt::format("{} is given twice in \"{}\"", key, whole), "give it once");
    }
  }
  // `hedgehog-window:w=64` is `hedgehog-window`, and trained maps of the one are those of the other. The
  // seed's default is the command's --seed.
  std::erase_if(spec.parameters, [&](const auto& given) {
    const ParameterInfo* const parameter = entry.info.parameter(given.first);
    return parameter != nullptr && given.first != "seed" && parameter->initial == given.second;
  });
  if (entry.resolve) spec = entry.resolve(spec);
  entry.make(spec); // rejects invalid values before any model is loaded
  return spec;
}

std::vector<std::string> split_kernel_list(std::string_view text, std::string_view option) {
  std::vector<std::string> items;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view item = trimmed(part);
    // `heads=4` continues `softmax:heads=2`; `softmax:heads=2` itself begins a new kernel.
    const std::size_t equals = item.find('='), colon = item.find(':');
    if (equals != std::string_view::npos && colon > equals) {
      if (items.empty())
        throw UsageError(option, fmt::format("\"{}\" comes before any kernel name", item),
                         "write the kernel first, as in performer:features=128,seed=7");
      items.back() += fmt::format("{}{}", items.back().find(':') == std::string::npos ? ':' : ',', item);
    } else {
      items.emplace_back(item);
    }
  }
  return items;
}

std::vector<KernelSpec> parse_kernel_list(std::string_view text, std::string_view option) {
  std::vector<KernelSpec> specs;
  for (const std::string& item : split_kernel_list(text, option))
    specs.push_back(parse_kernel_spec(item, option));
  return specs;
}

} // namespace hydrascope
