// Heads that a run silences: their part of the attention's output is 0 before W_o. Plain header.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// A head of the model, both counted from 0.
struct HeadIndex {
  int layer = 0;
  int head = 0;

  auto operator<=>(const HeadIndex&) const = default;
};

// `3:0,3:5,7`: head 0 and head 5 of layer 3, and all heads of layer 7; ascending, each once. Throws
// UsageError naming the part that is not understood or does not exist.
std::vector<HeadIndex> parse_muted_heads(std::string_view text, int layers, int heads);
// The inverse: a layer with all of its `heads` muted is written as its number alone.
std::string muted_heads_text(std::span<const HeadIndex> muted, int heads);

// Throws UsageError naming the first that the model does not have.
void check_muted_heads(std::span<const HeadIndex> muted, int layers, int heads);
// The heads of each layer, ascending, each once.
std::vector<std::vector<int>> muted_by_layer(std::span<const HeadIndex> muted, int layers);

} // namespace hydrascope
