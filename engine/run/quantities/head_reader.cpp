#include "engine/run/quantities/head_reader.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include "engine/attention/interface/cross_attention.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kRowTileBytes = std::int64_t{32} << 20;

const Kernel& softmax_reference() {
  static const std::shared_ptr<const Kernel> kernel = make_kernel(KernelSpec{});
  return *kernel;
}

// The same for inputs like this one.
const Kernel& softmax_reference(const AttentionInput& input) {
  static const std::shared_ptr<const Kernel> cross = for_cross_attention(make_kernel(KernelSpec{}));
  return input.queries > 0 ? *cross : softmax_reference();
}

bool is_softmax(const LayerKernel& kernel) { return kernel.kernel->spec() == softmax_reference().spec(); }

} // namespace

RowTile::RowTile(const AttentionInput& input, const at::Tensor& queries, std::int64_t first, std::int64_t end)
    : input_(input) {
  rows_ = at::arange(first, end, input_.q.options().dtype(at::kLong));
  real_rows_ = take_mask(queries, rows_);
  count_ = queries.defined() ? real_rows_.sum(1, true).to(at::kDouble)
                             : at::full({input_.q.size(0), 1}, static_cast<double>(end - first),
                                        input_.q.options().dtype(at::kDouble));
}

const at::Tensor& RowTile::visible() {
  if (!visible_) visible_ = visible_keys(input_, rows_);
  return *visible_;
}

const at::Tensor& RowTile::softmax() {
  if (!softmax_.defined()) softmax_ = softmax_reference(input_).weights(input_, {}, rows_);
  return softmax_;
}

const RankedRows& RowTile::scores(std::int64_t heads) {
  const auto known = scores_.find(heads);
  if (known != scores_.end()) return known->second;
  const at::Tensor values = attention_scores(input_, rows_, heads);
  return scores_.emplace(heads, rank_rows(values, visible())).first->second;
}

at::Tensor mean_over_rows(const at::Tensor& values, const at::Tensor& real_rows) {
  if (!real_rows.defined()) return values.mean(-1, false, at::kDouble);
  const at::Tensor real = real_rows.to(at::kBool).unsqueeze(1);
  // A masked row may hold NaN: select, do not multiply.
  const at::Tensor kept = at::where(real, values.to(at::kDouble), 0.0);
  return kept.sum(-1) / real.sum(-1);
}

void RowMean::add_sum(const at::Tensor& sum, const at::Tensor& rows) {
  sum_ = sum_.defined() ? sum_ + sum : sum;
  count_ = count_.defined() ? count_ + rows : rows;
}

void RowMean::add_mean(const at::Tensor& mean, const at::Tensor& rows) {
  add_sum(at::where(rows > 0, mean * rows, 0.0), rows); // without rows the mean is NaN
}

at::Tensor RowMean::value() const { return sum_.defined() ? sum_ / count_ : at::Tensor(); }

const at::Tensor& LayerOutputs::softmax() {
  if (!softmax_.defined()) softmax_ = softmax_reference(input_).run(input_, {}).out;
  return softmax_;
}

const at::Tensor& LayerOutputs::kernel() {
  if (out_.defined()) return out_;
  if (is_softmax(kernel_)) return out_ = softmax();
  const AttentionOutput output = kernel_.kernel->run(input_, kernel_.parameters);
  zero_denominators_ = output.zero_denominators;
  return out_ = kernel_.kernel->finish(output.out, query_mask(input_), kernel_.parameters);
}

std::vector<KernelHeadValues> read_heads(std::span<const HeadQuantity* const> quantities,
                                         const AttentionInput& input, std::span<const LayerKernel> kernels) {
  std::vector<std::vector<std::unique_ptr<HeadReader>>> readers(kernels.size());
  std::vector<bool> reads_weights(kernels.size());
  std::int64_t most_heads = 1;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    most_heads = std::max(most_heads, kernels[i].kernel->weight_heads(shape_of(input)));
    for (const HeadQuantity* quantity : quantities) {
      auto reader = quantity->reader(kernels[i].kernel->info());
      if (reader && reader->reads_weights()) reads_weights[i] = true;
      readers[i].push_back(std::move(reader));
    }
  }

  const at::Tensor queries = query_mask(input);
  const std::int64_t tokens = input.q.size(2);
  const std::int64_t row_bytes =
      input.q.size(0) * most_heads * tokens * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t step = std::clamp<std::int64_t>(kRowTileBytes / row_bytes, 1, tokens);
  const bool any = std::ranges::find(reads_weights, true) != reads_weights.end();
  for (std::int64_t first = 0; any && first < tokens; first += step) {
    RowTile tile(input, queries, first, std::min(tokens, first + step));
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (!reads_weights[i]) continue;
      const LayerKernel& kernel = kernels[i];
      const at::Tensor weights =
          is_softmax(kernel) ? tile.softmax() : kernel.kernel->weights(input, kernel.parameters, tile.rows());
      for (const auto& reader : readers[i])
        if (reader && reader->reads_weights()) reader->add(tile, weights);
    }
  }

  std::vector<KernelHeadValues> read(kernels.size());
  at::Tensor softmax;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    LayerOutputs outputs(input, softmax, kernels[i]);
    for (const auto& reader : readers[i])
      read[i].values.push_back(reader ? reader->finish(outputs) : HeadValues{});
    read[i].zero_denominators = outputs.zero_denominators();
  }
  return read;
}

} // namespace hydrascope
