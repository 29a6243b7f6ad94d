#include "app/document/adapter_chain.h"

#include <algorithm>

#include "engine/models/model_info.h"

namespace hydrascope::app {

std::vector<std::filesystem::path> adapter_chain(const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& others) {
  std::vector<AdapterInfo> known = bundled_adapters();
  for (const std::filesystem::path& other : others) known.push_back(read_adapter_info(other));
  std::vector<std::filesystem::path> files;
  for (AdapterInfo adapter = read_adapter_info(file);;) {
    files.insert(files.begin(), adapter.path);
    const auto base = std::ranges::find(known, adapter.base, &AdapterInfo::hash);
    if (base == known.end() || files.size() > known.size()) return files;
    adapter = *base;
  }
}

} // namespace hydrascope::app
