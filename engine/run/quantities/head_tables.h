// The tables of a run's heads: which are asked for, how they are filled layer by layer, and what is known
// already.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/run/quantities/head_reader.h"
#include "engine/run/run.h"

namespace hydrascope {

// The quantities asked of this kernel (nullopt: of the schedule's own) and the kernels read teacher-forced;
// each once, in the order asked.
std::vector<const HeadQuantity*> quantities_asked(std::span<const HeadTableAsk> asks,
                                                  const std::optional<KernelSpec>& kernel);
std::vector<KernelSpec> kernels_asked(std::span<const HeadTableAsk> asks);

// One layer of a table: a number for each head and part, in this order. NaN where the quantity is undefined,
// and for a kernel that splits the features into another number of heads than the layer.
struct HeadRow {
  std::vector<float> values;
  double clamped_share = 0; // as HeadValues
};

// Rows by what they were computed from: small, and each costs a whole weight matrix. Emptied when there are
// many.
class HeadRowCache {
public:
  const HeadRow* find(const std::string& key, const HeadQuantity& quantity) const; // null: not known
  void insert(const std::string& key, const HeadQuantity& quantity, HeadRow row);

private:
  std::unordered_map<std::string, HeadRow> rows_;
};

// What is asked of the heads of one kernel per layer, in one pass.
struct HeadTableReading {
  std::vector<const HeadQuantity*> quantities;
  std::vector<LayerKernel> kernels;       // by layer
  std::vector<std::string> keys;          // by layer: what its numbers depend on
  std::vector<std::vector<HeadRow>> rows; // by quantity, by layer; filled

  bool known(std::size_t layer, const HeadRowCache& cache) const;
  void take_known(const HeadRowCache& cache);
  // Reads what is not known off one sequence's q, k, v (B = 1). Throws as the kernel does.
  void read(std::size_t layer, const AttentionInput& input, HeadRowCache& cache);
  // The table of a quantity that was asked for; `ask` names it.
  HeadTable table(const HeadTableAsk& ask) const;
};

} // namespace hydrascope
