// Softmax over a window of nearby tokens: w × w patches and all prefix tokens, or w tokens of text (Hydra
// paper, table 4 and section 4.4).
#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nonzero.h>
#include <fmt/format.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/cache_decoding.h"
#include "engine/attention/softmax/softmax_family.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr std::int64_t image_window = 14, text_window = 64;

// One axis of the grid; text has one, the rank among the real tokens. (B or 1, N) int64.
struct Axis {
  at::Tensor place;       // of each token; −1 for prefix tokens
  at::Tensor first, last; // [first, last): the places that each query attends to
};

Axis axis_of(const at::Tensor& place, const at::Tensor& extent, std::int64_t window, bool blocks) {
  const at::Tensor width = extent.clamp_max(window);
  const at::Tensor first = blocks ? place.div(window, "floor") * window
                                  : at::minimum((place - window / 2).clamp_min(0), extent - width);
  at::Tensor last = blocks ? first + window : first + width;
  // Prefix tokens attend to all, themselves included.
  const at::Tensor prefix = place < 0;
  return {place, first.masked_fill(prefix, -1), last.masked_fill(prefix, 1LL << 60)};
}

std::vector<Axis> axes_of(const AttentionInput& input, const at::Tensor& mask, std::int64_t window,
                          bool blocks) {
  const auto options = input.q.options().dtype(at::kLong);
  const std::int64_t tokens = input.q.size(2);
  const auto [prefix, rows, columns] = input.layout;
  if (rows == 0) {
    const at::Tensor place = mask.defined() ? (at::cumsum(mask, 1, at::kLong) - 1).clamp_min(0)
                                            : at::arange(tokens, options).unsqueeze(0);
    // Causal: the last `window` tokens, however many are to come.
    if (input.causal && !blocks) return {{place, (place - (window - 1)).clamp_min(0), place + 1}};
    const at::Tensor extent =
        mask.defined() ? mask.sum(1, true).clamp_min(1) : at::full({1, 1}, tokens, options);
    return {axis_of(place, extent, window, blocks)};
  }
  const at::Tensor before = at::full({1, prefix}, -1, options);
  const at::Tensor patches = at::arange(rows * columns, options).unsqueeze(0);
  return {axis_of(at::cat({before, patches.div(columns, "floor")}, 1), at::full({1, 1}, rows, options),
                  window, blocks),
          axis_of(at::cat({before, patches.remainder(columns)}, 1), at::full({1, 1}, columns, options),
                  window, blocks)};
}

// Which of `keys` (K) are in the windows of the queries `rows` (R): (B or 1, 1, R, K).
at::Tensor within_window(const std::vector<Axis>& axes, const at::Tensor& rows, const at::Tensor& keys) {
  at::Tensor seen;
  for (const Axis& axis : axes) {
    const at::Tensor place = axis.place.index_select(1, keys).unsqueeze(1);
    const at::Tensor near = (place >= axis.first.index_select(1, rows).unsqueeze(2))
                                .logical_and(place < axis.last.index_select(1, rows).unsqueeze(2));
    seen = seen.defined() ? seen.logical_and(near) : near;
  }
  const at::Tensor prefix = axes.front().place.index_select(1, keys).unsqueeze(1) < 0;
  return seen.logical_or(prefix).unsqueeze(1);
}

// The keys (K) that are in the window of any of the queries [first, last) along the first axis.
at::Tensor keys_near(const std::vector<Axis>& axes, std::int64_t first, std::int64_t last) {
  const Axis& axis = axes.front();
  const at::Tensor low = axis.first.slice(1, first, last).amin(1, true);
  const at::Tensor high = axis.last.slice(1, first, last).amax(1, true);
  const at::Tensor near = (axis.place >= low).logical_and(axis.place < high).logical_or(axis.place < 0);
  return at::nonzero(near.any(0)).squeeze(1);
}

class LocalWindow final : public SoftmaxFamily {
public:
  explicit LocalWindow(KernelSpec kernel_spec)
      : SoftmaxFamily(std::move(kernel_spec)), window_(positive_parameter(spec(), "w")) {
    const auto mode = spec().parameters.find("mode");
    if (mode == spec().parameters.end()) return;
    blocks_ = mode->second == "blocks";
    if (!blocks_ && mode->second != "sliding")
      throw UsageError(spec().text(), fmt::format("there is no mode \"{}\"", mode->second),
                       "write local-window:mode=sliding or local-window:mode=blocks");
  }

  Plan plan(const AttentionShape& shape) const override {
    const auto [prefix, rows, columns] = shape.layout;
    if (rows > 0 && prefix + rows * columns != shape.tokens)
      return {{.ok = false,
               .reason = fmt::format("{} tokens are not {} prefix tokens and {} × {} patches", shape.tokens,
                                     prefix, rows, columns)},
              {}};
    return SoftmaxFamily::plan(shape);
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [prefix, rows, columns] = shape.layout;
    const std::int64_t side = window(shape.layout);
    const std::int64_t keys =
        rows > 0 ? prefix + std::min(side, rows) * std::min(side, columns) : std::min(side, shape.tokens);
    return {.multiply_accumulates = 2 * static_cast<double>(shape.batch) * static_cast<double>(shape.tokens) *
                                    static_cast<double>(keys) * model_width(shape),
            .bytes = bytes_moved(shape)};
  }

protected:
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters&) const override {
    return make_cache_decoding(*this, shape.heads, {window(shape.layout), blocks_}, shape);
  }

  AttentionOutput compute(Path path, const AttentionInput& input, const KernelParameters&) const override {
    if (path == Path::at_once) return {.out = run_through_weights(input)};
    const at::Tensor mask = real_mask(input);
    const std::vector<Axis> axes = windows(input, mask);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const auto prepared = [&](const at::Tensor& x) { return select_tokens(x, mask).to(type); };
    const double scale = 1.0 / std::sqrt(static_cast<double>(input.q.size(3)));
    const at::Tensor q = prepared(input.q) * scale, k = prepared(input.k), v = prepared(input.v);
    at::Tensor out = at::empty_like(input.q);
    const std::int64_t tokens = input.q.size(2);
    // Prefix tokens attend to all tokens: they get a tile of their own, so that the other tiles stay narrow.
    std::int64_t first = 0;
    while (first < tokens) {
      const std::int64_t last =
          first < input.layout.prefix ? input.layout.prefix : std::min(tokens, first + tile_tokens(input));
      const at::Tensor rows = at::arange(first, last, mask_options(input));
      const at::Tensor keys = keys_near(axes, first, last);
      const at::Tensor part = attend_rows(q.slice(2, first, last), k.index_select(2, keys),
                                          v.index_select(2, keys), visible(input, mask, axes, rows, keys));
      out.slice(2, first, last).copy_(part);
      first = last;
    }
    return {.out = select_tokens(out, mask)};
  }

  at::Tensor allowed(const AttentionInput& input, const at::Tensor& mask,
                     const at::Tensor& rows) const override {
    const at::Tensor keys = at::arange(input.q.size(2), mask_options(input));
    return visible(input, mask, windows(input, mask), rows, keys);
  }

private:
  static at::TensorOptions mask_options(const AttentionInput& input) {
    return input.q.options().dtype(at::kLong);
  }
  // Whole rows of the grid, or as many tokens of text: enough for an efficient matrix product.
  static std::int64_t tile_tokens(const AttentionInput& input) {
    const std::int64_t columns = std::max<std::int64_t>(1, input.layout.columns);
    return columns * std::max<std::int64_t>(1, 64 / columns);
  }

  std::int64_t window(const TokenLayout& layout) const {
    return window_.value_or(layout.rows > 0 ? image_window : text_window);
  }
  std::vector<Axis> windows(const AttentionInput& input, const at::Tensor& mask) const {
    return axes_of(input, mask, window(input.layout), blocks_);
  }

  static at::Tensor visible(const AttentionInput& input, const at::Tensor& mask,
                            const std::vector<Axis>& axes, const at::Tensor& rows, const at::Tensor& keys) {
    at::Tensor seen = within_window(axes, rows, keys);
    if (mask.defined()) seen = seen.logical_and(mask.index_select(1, keys).unsqueeze(1).unsqueeze(1));
    if (input.causal) seen = seen.logical_and(keys <= rows.unsqueeze(1));
    // A real query is in its own window; a masked one also gets a key, so that its row is not empty.
    return seen.logical_or(keys == rows.unsqueeze(1));
  }

  std::optional<std::int64_t> window_;
  bool blocks_ = false;
};

ParameterInfo window_info() {
  return {.name = "w",
          .kind = ParameterInfo::Kind::number,
          .meaning = "side of the window in patches; text: its tokens, of decoders the last ones",
          .initial = "14 for images, 64 for text",
          .range = [](const LayerShape& shape) {
            if (shape.rows == 0)
              return ParameterRange{.least = 1, .most = shape.tokens, .initial = text_window};
            return ParameterRange{
                .least = 1, .most = std::max(shape.rows, shape.columns), .initial = image_window};
          }};
}

} // namespace

RegistryEntry local_window_kernel() {
  KernelInfo info =
      softmax_info("local-window", "softmax over w × w near patches and the prefix tokens; text: w tokens");
  info.family = KernelFamily::window;
  info.complexity = "O(N w² D)";
  info.positional = true;
  info.source = "Bolya et al. (2022), table 4 and section 4.4";
  info.parameters = {
      window_info(),
      choice_info("mode", "windows that move with the query, or that tile the input", {"sliding", "blocks"})};
  return {info, {}, [](const KernelSpec& spec) { return std::make_unique<LocalWindow>(spec); }};
}

} // namespace hydrascope
