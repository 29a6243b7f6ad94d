// The last token of an input, in keys that are made before its number is known. Plain header.
#pragma once

#include <cstdint>

namespace hydrascope {

// In place of a token's index: the last token, from which a decoder predicts the next one.
inline constexpr std::int64_t last_token = -1;

// The index among N tokens.
constexpr std::int64_t token_index(std::int64_t token, std::int64_t tokens) {
  return token == last_token ? tokens - 1 : token;
}

} // namespace hydrascope
