// The softmax family decoded with a cache of keys and values.
#pragma once

#include <memory>

#include "engine/attention/interface/decoding.h"

namespace hydrascope {

// The tokens that a query attends to: itself and those before it.
struct CacheWindow {
  std::int64_t size = 0; // the last so many; 0: all
  bool blocks = false;   // those of its own block of `size` tokens
};

// `heads`: that the D features are split into. One token reads the cache, several at once run in parallel.
// The kernel has to outlive the state.
std::unique_ptr<DecodingState> make_cache_decoding(const Kernel& kernel, std::int64_t heads,
                                                   const CacheWindow& window, const AttentionShape& shape);

} // namespace hydrascope
