// Reads the numbers of heads off a layer: in tiles of query rows, so that no N×N weights exist at once, and
// for several kernels together, which share softmax's weights and ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/run/pass.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {

// Some query rows of a layer, and what all kernels share there; computed on first use.
class RowTile {
public:
  // Rows first … end−1. `queries`: query_mask() of the input.
  RowTile(const AttentionInput& input, const at::Tensor& queries, std::int64_t first, std::int64_t end);

  const AttentionInput& input() const { return input_; }
  const at::Tensor& rows() const { return rows_; }           // (R) int64, on the input's device
  const at::Tensor& real_rows() const { return real_rows_; } // (B,R) bool or undefined: all
  const at::Tensor& count() const { return count_; }         // (B,1) float64, number of real rows

  const at::Tensor& visible(); // visible_keys() of these rows, (B,1,R,N) bool or undefined: all
  const at::Tensor& softmax(); // softmax's weights, (B,H,R,N)
  // Ranks of q·k/√d with the features split into this many heads.
  const RankedRows& scores(std::int64_t heads);

private:
  const AttentionInput& input_;
  at::Tensor rows_, real_rows_, count_, softmax_;
  std::optional<at::Tensor> visible_;
  std::map<std::int64_t, RankedRows> scores_; // by number of heads
};

// (B,H,R) → (B,H): the mean over real rows (B,R), bool or undefined: all. Sums in double.
at::Tensor mean_over_rows(const at::Tensor& values, const at::Tensor& real_rows);

// A mean over rows that are added tile by tile: (B,h), undefined before the first.
class RowMean {
public:
  void add_sum(const at::Tensor& sum, const at::Tensor& rows); // over this many rows (B,1)
  void add_mean(const at::Tensor& mean, const at::Tensor& rows);
  at::Tensor value() const;

private:
  at::Tensor sum_, count_;
};

// A layer's outputs as W_o receives them, (B,H,N,d); computed on first use.
class LayerOutputs {
public:
  LayerOutputs(const AttentionInput& input, at::Tensor& softmax, const LayerKernel& kernel)
      : input_(input), softmax_(softmax), kernel_(kernel) {}
  const at::Tensor& softmax();
  const at::Tensor& kernel();
  const RowCount& zero_denominators() const { return zero_denominators_; } // rows set to 0 in kernel()

private:
  const AttentionInput& input_;
  at::Tensor& softmax_; // shared by the layer's kernels
  const LayerKernel& kernel_;
  at::Tensor out_;
  RowCount zero_denominators_;
};

struct HeadValues {
  at::Tensor values;        // (B,h) float64, of several parts (B,h,P); undefined: no number for this kernel
  double clamped_share = 0; // share of the visible keys' weights that were raised to a floor
};

// Reads one quantity of one kernel off one layer.
class HeadReader {
public:
  virtual ~HeadReader() = default;
  virtual bool reads_weights() const { return true; } // whether add() is called
  // Called with each tile in order; the kernel's weights are (B,h,R,N), h its own number of heads.
  virtual void add(RowTile& /*tile*/, const at::Tensor& /*weights*/) {}
  virtual HeadValues finish(LayerOutputs& outputs) = 0;
};

struct HeadQuantity {
  HeadQuantityInfo info;
  // A reader for this kernel; null where the quantity is undefined for it.
  std::unique_ptr<HeadReader> (*reader)(const KernelInfo& kernel) = nullptr;
};
const std::vector<HeadQuantity>& head_quantities();
// Throws UsageError naming the known ones.
const HeadQuantity& head_quantity(std::string_view name);

struct KernelHeadValues {
  std::vector<HeadValues> values; // by quantity
  RowCount zero_denominators;     // of the kernel's output, if a quantity used it
};
// One entry per kernel. Throws as the kernels do.
std::vector<KernelHeadValues> read_heads(std::span<const HeadQuantity* const> quantities,
                                         const AttentionInput& input, std::span<const LayerKernel> kernels);

} // namespace hydrascope
