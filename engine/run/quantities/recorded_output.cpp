#include "engine/run/quantities/recorded_output.h"

#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>

#include "engine/attention/interface/tokens.h"
#include "engine/models/capture/capture_model.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

class RecordedOutputReading final : public Reading {
public:
  explicit RecordedOutputReading(std::shared_ptr<const Kernel> softmax) : softmax_(std::move(softmax)) {}

  bool taps(int /*layer*/) const override { return true; }
  void read(const LayerTap& layer) override {
    const at::Tensor recorded = recorded_output(*layer.pass.model.model, layer.layer);
    double difference = std::numeric_limits<double>::quiet_NaN();
    if (recorded.defined()) {
      const at::Tensor out = softmax_->run(layer.input, {}).out;
      difference = select_tokens(out - recorded, query_mask(layer.input)).abs().max().item<double>();
    }
    differences_.push_back(difference);
  }
  void finish(const FinishedPass& /*pass*/, QuantityResults& results) override {
    results.add(RecordedOutputKey{}, std::move(differences_));
  }

private:
  std::shared_ptr<const Kernel> softmax_;
  std::vector<double> differences_;
};

class RecordedOutputQuantity final : public QuantityOf<RecordedOutputKey> {
  std::unique_ptr<Reading> reading(const RecordedOutputKey& /*key*/,
                                   const PlanContext& context) const override {
    return std::make_unique<RecordedOutputReading>(kernel_for(context.own.model.model->info(), KernelSpec{}));
  }
};

} // namespace

const Quantity& quantity_of(const RecordedOutputKey& /*key*/) {
  static const RecordedOutputQuantity quantity;
  return quantity;
}

} // namespace hydrascope
