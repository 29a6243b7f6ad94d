// Hidden states by what they were computed from, so that a run starts at the first layer whose input is not
// known.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// A hidden state and how the block that made it ran.
struct CachedHidden {
  at::Tensor hidden; // (B,N,D), never written to
  std::string path;
  std::int64_t zero_denominators = 0;
};

// Least recently used goes first once more than `limit` bytes are held.
class PrefixCache {
public:
  explicit PrefixCache(std::size_t limit) : limit_(limit) {}

  std::optional<CachedHidden> find(const std::string& key);
  void insert(const std::string& key, CachedHidden value);

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return entries_.size(); }

private:
  struct Entry {
    CachedHidden value;
    std::list<std::string>::iterator use;
  };
  void erase(const std::string& key);

  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<std::string> uses_; // most recent first
  std::unordered_map<std::string, Entry> entries_;
};

} // namespace hydrascope
