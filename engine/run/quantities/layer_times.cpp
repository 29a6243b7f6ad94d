#include "engine/run/quantities/layer_times.h"

#include "engine/base/error.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

class LayerTimesReading final : public Reading {
public:
  explicit LayerTimesReading(const LayerTimesKey& key) : key_(key) {}

  int extra_blocks(const Pass& pass) const override {
    return (key_.passes + 1) * static_cast<int>(pass.layers.size());
  }

  // Before the run's own pass allocates memory. The first pass packs weights and starts threads.
  void run_first(const Pass& planned, const RunControl& control) override {
    Pass pass = planned;
    pass.tapped.assign(pass.layers.size(), false);
    pass.first_gradient_layer = static_cast<int>(pass.layers.size());
    pass.keep_hidden = false;
    pass.need_output = true;
    PrefixCache no_cache(0);
    for (int turn = 0; turn <= key_.passes; ++turn) {
      const PassOutcome outcome = run_pass(pass, no_cache, control.stop, {}, control.block_done);
      if (turn == 0) continue;
      std::vector<double>& seconds = times_.emplace_back();
      for (const PassBlock& block : outcome.blocks) seconds.push_back(block.seconds);
    }
  }

  void finish(const FinishedPass& /*pass*/, QuantityResults& results) override {
    results.add(key_, std::move(times_));
  }

private:
  LayerTimesKey key_;
  std::vector<std::vector<double>> times_;
};

class LayerTimesQuantity final : public QuantityOf<LayerTimesKey> {
  void check_key(const LayerTimesKey& key, const RunShape& /*shape*/) const override {
    if (key.passes < 1)
      throw UsageError("timed passes", "there cannot be less than one", "ask for 1 or more");
  }
  std::unique_ptr<Reading> reading(const LayerTimesKey& key, const PlanContext& /*context*/) const override {
    return std::make_unique<LayerTimesReading>(key);
  }
};

} // namespace

const Quantity& quantity_of(const LayerTimesKey& /*key*/) {
  static const LayerTimesQuantity quantity;
  return quantity;
}

} // namespace hydrascope
