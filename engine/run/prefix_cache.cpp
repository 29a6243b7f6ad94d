#include "engine/run/prefix_cache.h"

#include <utility>

namespace hydrascope {

std::optional<CachedHidden> PrefixCache::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.value;
}

void PrefixCache::insert(const std::string& key, CachedHidden value) {
  erase(key);
  const std::size_t size = value.hidden.nbytes();
  if (size > limit_) return;
  while (bytes_ + size > limit_) erase(std::string(uses_.back()));
  uses_.push_front(key);
  entries_.emplace(key, Entry{std::move(value), uses_.begin()});
  bytes_ += size;
}

void PrefixCache::erase(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  bytes_ -= found->second.value.hidden.nbytes();
  uses_.erase(found->second.use);
  entries_.erase(found);
}

} // namespace hydrascope
