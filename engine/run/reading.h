// How quantities are read off a run: a Reading is planned with the run, receives each layer that it taps and
// writes its result when the pass is finished.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/run/pass.h"
#include "engine/run/quantity.h"
#include "engine/run/run.h"
#include "engine/run/target.h"

namespace hydrascope {

// The bounds that keys are checked against.
struct RunShape {
  int layers = 0, heads = 0;
  std::int64_t tokens = 0;
};
// Throws UsageError unless 0 ≤ value < limit: "layer 12: there are 12 layers".
void check_below(const char* subject, std::int64_t value, std::int64_t limit, const char* what);

// What readings keep between runs, one object per type; the runner owns it.
class ReadingCaches {
public:
  template <typename Cache>
  Cache& get() {
    std::shared_ptr<void>& held = caches_[std::type_index(typeid(Cache))];
    if (!held) held = std::make_shared<Cache>();
    return *static_cast<Cache*>(held.get());
  }
  void clear() { caches_.clear(); }

private:
  std::unordered_map<std::type_index, std::shared_ptr<void>> caches_;
};

// The run while its readings are planned.
struct PlanContext {
  const RunRequest& request;
  const Pass& own;                             // with the schedule's kernels
  const std::function<const Pass&()>& teacher; // softmax in every layer; planned at the first call
  ReadingCaches& caches;

  const Pass& pass(bool teacher_forced) const { return teacher_forced ? teacher() : own; }
  // A kernel in one layer of the pass, with the run's seed; nullopt: the pass's kernel of that layer.
  LayerKernel kernel(bool teacher_forced, int layer, const std::optional<KernelSpec>& spec) const;
};

struct RunControl {
  std::stop_token stop;
  std::function<void()> block_done; // counts a block towards the run's progress
};

// A tapped layer: its input as constants.
struct LayerTap {
  int layer = 0;
  const Pass& pass;
  AttentionInput input;
  const std::stop_token& stop;

  const LayerKernel& kernel() const { return pass.layers[static_cast<std::size_t>(layer)]; }
  at::Tensor output_weight() const { return pass.model.model->attention_output_weight(layer); } // W_o
};

// What readings take to the host: numbers on the CPU at once, from a device all in one copy at the end, so
// that the host waits once. The quantities of a pass share one; a table that reads while the pass goes on has
// its own.
class HostCopies {
public:
  // `take` receives the tensor's numbers as float32 in its shape, on the CPU before this returns.
  void add(const at::Tensor& tensor, std::function<void(Array)> take);
  // Calls `work` when everything that was added before has been taken.
  void then(std::function<void()> work);
  // Copies what is left, through pinned memory from a GPU. Throws c10::Error of the device.
  void finish();

private:
  struct Waiting {
    at::Tensor tensor; // float32, contiguous, on a device; undefined: only `take` is called
    std::function<void(Array)> take;
  };
  std::vector<Waiting> waiting_;
};

// A finished pass. Gradients, taps, output and logits are those of the schedule's own pass.
struct FinishedPass {
  const RunRequest& request;
  const RunResult& result; // layers, target and query are set
  const Pass& pass;
  const PassOutcome& outcome;
  const at::Tensor& logits; // (1,C) or (1,N,V); undefined if no reading needs them
  const CheckedTarget& target;
  const at::Tensor& other; // the mean-pooled second sentence of a similarity, (1,D), or undefined
  const std::map<int, AttentionTap>& taps;    // of the layers that need gradients …
  const std::map<int, at::Tensor>& gradients; // … and the target's there, (1,H,N,d)
  RunControl control;
  HostCopies& copies; // the results of the pass come with it
};

class Reading {
public:
  Reading() = default;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  virtual ~Reading() = default;

  // Whether it reads the pass with softmax in every layer instead of the schedule's own.
  virtual bool teacher_forced() const { return false; }
  // What it needs from the pass besides taps.
  virtual bool needs_gradient(int /*layer*/) const { return false; }
  virtual bool needs_hidden() const { return false; }
  virtual bool needs_logits() const { return false; }
  // The number of blocks that it runs in passes of its own.
  virtual int extra_blocks(const Pass& /*pass*/) const { return 0; }
  // Appends the kernels that it runs besides the pass's own.
  virtual void add_kernels(std::vector<const LayerKernel*>& /*kernels*/) const {}

  // Called in this order: when the pass is planned; before it runs; for each layer where taps() is true;
  // after the pass.
  virtual void begin(const Pass& /*pass*/) {}
  virtual void run_first(const Pass& /*pass*/, const RunControl& /*control*/) {}
  virtual bool taps(int /*layer*/) const { return false; }
  virtual void read(const LayerTap& /*layer*/) {}
  virtual void finish(const FinishedPass& pass, QuantityResults& results) = 0;
};

using Readings = std::vector<std::unique_ptr<Reading>>;

// A type of quantity: checks its keys, estimates their memory and plans their readings.
class Quantity {
public:
  Quantity() = default;
  Quantity(const Quantity&) = delete;
  Quantity& operator=(const Quantity&) = delete;
  virtual ~Quantity() = default;

  // Throws UsageError for layers, rows, queries and heads that do not exist.
  virtual void check(const QuantityKey& key, const RunShape& shape) const = 0;
  // An upper bound of the bytes needed besides the scores of one layer.
  virtual double bytes(const QuantityKey& key, const ModelInfo& model, std::int64_t tokens) const = 0;
  // Why a capture does not have it; empty: it does.
  virtual std::string missing_in(const QuantityKey& key, const CaptureInfo& capture) const = 0;
  // Whether a kernel runs besides the schedule's; it may fail although the schedule itself runs.
  virtual bool compares(const QuantityKey& key, const Schedule& schedule) const = 0;
  // Appends readings for all keys of this type, given in the order of the request.
  virtual void plan(const QuantityKeys& keys, const PlanContext& context, Readings& readings) const = 0;
};

// A quantity with keys of type K. Each key has its own reading unless plan_all() is overridden.
template <KeyOfQuantity K>
class QuantityOf : public Quantity {
public:
  void check(const QuantityKey& key, const RunShape& shape) const final { check_key(*key.get<K>(), shape); }
  double bytes(const QuantityKey& key, const ModelInfo& model, std::int64_t tokens) const final {
    return key_bytes(*key.get<K>(), model, tokens);
  }
  std::string missing_in(const QuantityKey& key, const CaptureInfo& capture) const final {
    return key_missing_in(*key.get<K>(), capture);
  }
  bool compares(const QuantityKey& key, const Schedule& schedule) const final {
    return key_compares(*key.get<K>(), schedule);
  }
  void plan(const QuantityKeys& keys, const PlanContext& context, Readings& readings) const final {
    plan_all(keys.of<K>(), context, readings);
  }

protected:
  virtual void check_key(const K& /*key*/, const RunShape& /*shape*/) const {}
  virtual double key_bytes(const K& /*key*/, const ModelInfo& /*model*/, std::int64_t /*tokens*/) const {
    return 0;
  }
  virtual std::string key_missing_in(const K& /*key*/, const CaptureInfo& /*capture*/) const { return {}; }
  virtual bool key_compares(const K& /*key*/, const Schedule& /*schedule*/) const { return false; }
  virtual void plan_all(const std::vector<K>& keys, const PlanContext& context, Readings& readings) const {
    for (const K& key : keys) readings.push_back(reading(key, context));
  }
  virtual std::unique_ptr<Reading> reading(const K& /*key*/, const PlanContext& /*context*/) const {
    return nullptr;
  }
};

// Whether `spec` differs from the schedule's kernel of this layer; nullopt stands for that kernel itself.
bool is_another_kernel(const Schedule& schedule, int layer, const std::optional<KernelSpec>& spec);

// Why a capture does not have what only a model can compute.
inline constexpr const char* needs_a_model =
    "it needs the model itself, of which a capture holds attention alone";

// A tensor's numbers as float32 on the CPU, in its shape. Waits for a device.
Array to_array(const at::Tensor& tensor);

} // namespace hydrascope
