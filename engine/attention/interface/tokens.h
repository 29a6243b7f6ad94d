// Tokens as kernels process them: checking the input, number types, masks, blocks, splitting D = H·d features
// into heads, muting heads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// Checks that q, k, v are (B,H,N,d) of one shape and type and the mask is (B,N). Throws UsageError.
void check_input(const AttentionInput& input);

// The type of exponents, norms, sums and denominators: float32 for half types, else the type itself.
at::ScalarType compute_type(at::ScalarType type);

// Converts a token's row on the calling thread. LibTorch would start OpenMP's threads for a long row, and
// these would occupy the cores of the next product; for a short one its dispatch takes longer than the
// conversion.
at::Tensor row_to(const at::Tensor& row, at::ScalarType type);

// q, k, v in compute_type() with masked tokens replaced by 0 (by a select: masked tokens may hold NaN).
struct RealTokens {
  at::Tensor q, k, v; // (B,H,N,d)
  at::Tensor mask;    // as real_mask()
};
RealTokens real_tokens(const AttentionInput& input);

// Whether q, k, v or a parameter needs a gradient. Then nothing may be overwritten.
bool needs_gradient(const AttentionInput& input, const KernelParameters& parameters = {});

// The mask as bool; on the CPU undefined where every token is real.
at::Tensor real_mask(const AttentionInput& input);

// The tokens that ask and those that answer, (B,N) bool or undefined: all. Both as real_mask() but in
// cross-attention.
at::Tensor query_mask(const AttentionInput& input);
at::Tensor key_mask(const AttentionInput& input);

// The tokens [first, last) of one step of a loop over all tokens.
struct TokenBlock {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
// Rows of N×N weights that are computed at once: as many as fit in about 32 MB.
std::int64_t tile_rows(std::int64_t batch_heads, std::int64_t tokens);
// Splits the tokens 0 … tokens − 1 into blocks of about 16 MiB, where a token takes `entries` float32
// numbers: the intermediate results of a block then stay small for any number of tokens.
std::vector<TokenBlock> token_blocks(std::int64_t tokens, std::int64_t entries);

// Whether the D features can be split into the number of heads of `heads=` (nullopt: the model's own).
Support heads_support(std::optional<std::int64_t> heads, const AttentionShape& shape);

// x with masked tokens replaced by 0: x (B,H,N,w) and mask (B,N); unchanged if the mask is undefined.
at::Tensor select_tokens(const at::Tensor& x, const at::Tensor& mask);
// The same for x (B,N,w).
at::Tensor select_rows(const at::Tensor& x, const at::Tensor& mask);

// The rows of the token axis: x (B,H,N,w) and rows (R) int64 → (B,H,R,w); x itself if rows is undefined.
at::Tensor take_tokens(const at::Tensor& x, const at::Tensor& rows);
// The same for a mask (B,N) → (B,R); undefined stays undefined.
at::Tensor take_mask(const at::Tensor& mask, const at::Tensor& rows);
// `rows`, or 0 … tokens − 1 where it is undefined, on the device of `like`.
at::Tensor rows_or_all(const at::Tensor& rows, std::int64_t tokens, const at::Tensor& like);

// (B,H,N,d) → (B,N,D): a view where the heads are views of D-wide rows.
at::Tensor to_rows(const at::Tensor& x);
// (B,N,D) → (B,heads,N,D/heads), a view.
at::Tensor to_heads(const at::Tensor& rows, std::int64_t heads);
// The same D features split into another number of heads.
at::Tensor resplit(const at::Tensor& x, std::int64_t heads);

// Grouped heads. One head of each group of equal ones: x (B,H,N,w) → (B,key_heads,N,w), a view; x itself
// where it has so many. And back: (B,key_heads,N,w) → (B,heads,N,w), each head as often as queries share it,
// x itself where nothing is shared.
at::Tensor one_of_each_group(const at::Tensor& x, std::int64_t key_heads);
at::Tensor for_each_head(const at::Tensor& x, std::int64_t heads);

// finished (B,H,N,d) as Kernel::finish() returns it, with 0 in the d columns of the muted heads of the model,
// also for kernels that split the D features otherwise (Hydra; `heads=`). Gradients with respect to the
// kernel's output are then 0 in a muted head.
at::Tensor without_muted(const at::Tensor& finished, std::span<const int> muted);

// Which of a kernel's `kernel_heads` heads still reach W_o where these of the model's `heads` heads are
// muted: all but those whose columns are all muted.
std::vector<bool> unmuted_heads(std::span<const int> muted, std::int64_t heads, std::int64_t kernel_heads);

} // namespace hydrascope
