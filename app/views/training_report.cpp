#include "app/views/training_report.h"

namespace hydrascope::app {

void TrainingCurves::add(std::int64_t step, double loss, std::span<const double> divergences) {
  if (layers_.size() != divergences.size()) { // the first step, or another training
    *this = {};
    layers_.resize(divergences.size());
    layer_sums_.resize(divergences.size());
  }
  loss_sum_ += loss;
  for (std::size_t layer = 0; layer < divergences.size(); ++layer) layer_sums_[layer] += divergences[layer];
  if (++summed_ < stride_) return;
  const auto count = static_cast<double>(summed_);
  steps_.push_back(static_cast<double>(step));
  loss_.push_back(loss_sum_ / count);
  loss_sum_ = 0;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].push_back(layer_sums_[layer] / count);
    layer_sums_[layer] = 0;
  }
  summed_ = 0;
  if (steps_.size() >= most_points) halve();
}

void TrainingCurves::halve() {
  const auto pairs = [](std::vector<double>& values, bool average) {
    const std::size_t count = values.size() / 2;
    for (std::size_t i = 0; i < count; ++i)
      values[i] = average ? (values[2 * i] + values[2 * i + 1]) / 2 : values[2 * i + 1];
    values.resize(count);
  };
  pairs(steps_, false);
  pairs(loss_, true);
  for (std::vector<double>& layer : layers_) pairs(layer, true);
  stride_ *= 2;
}

} // namespace hydrascope::app
