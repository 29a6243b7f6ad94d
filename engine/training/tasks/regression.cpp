// Fine-tuning to the numbers that label texts or pairs of texts.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/measure/correlation.h"
#include "engine/training/data/epoch_batches.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/finetuning.h"
#include "engine/training/tasks/labelled_data.h"

namespace hydrascope::training {
namespace {

constexpr const char* head_weight = "classifier.weight";
constexpr const char* head_bias = "classifier.bias";

// label = mean + deviation · output
struct LabelScale {
  double mean = 0, deviation = 1;
};

// The mean and the standard deviation of the training data's labels.
LabelScale scale_of(const LabelledData& data, const FinetuneRequest& request) {
  const auto count = static_cast<double>(data.items(Part::training));
  LabelScale scale;
  double squares = 0;
  for (std::int64_t item = 0; item < data.items(Part::training); ++item)
    scale.mean += data.number(Part::training, item) / count;
  for (std::int64_t item = 0; item < data.items(Part::training); ++item)
    squares += std::pow(data.number(Part::training, item) - scale.mean, 2) / count;
  scale.deviation = std::sqrt(squares);
  if (!(scale.deviation > 0))
    throw Error(request.data.front().string(), "all its labels are the same number",
                "name the column of the labels with --label-column");
  return scale;
}

class Regression final : public FinetuneTask {
public:
  Regression(const FinetuneRequest& request, const TrainingObserver& observer, std::stop_token stop,
             ModelStore& models)
      : FinetuneTask(request, std::move(stop), models),
        data_(make_labelled_data(prepared_, request, first_, products_, observer, stop_)),
        scale_(scale_of(*data_, request)) {
    batches_.emplace(data_->items(Part::training), settings_.batch, settings_.execution.seed,
                     [this](const std::int64_t item) { return data_->length(Part::training, item); });
    leaves_ = make_leaves(prepared_, parts_, data_->plan(), request_.low_rank, settings_.execution.seed);
    // The model's own classifier predicts in the labels' unit, the trained one standardised labels.
    trains_head_ = leaves_.contains(head_weight);
    if (trains_head_ && !data_->plan().new_head) {
      leaves_[head_weight] = restarted(leaves_[head_weight] / scale_.deviation);
      leaves_[head_bias] = restarted((leaves_[head_bias] - scale_.mean) / scale_.deviation);
    }
    model_ = runnable_with(leaves_, data_->plan());
  }

  const std::vector<std::string>& notes() const override { return data_->notes(); }
  std::int64_t steps_per_epoch() const override { return batches_->steps_per_epoch(); }
  std::int64_t items_of_step(const std::int64_t step) override { return std::ssize(batches_->of_step(step)); }

  std::string configuration() const override {
    return fmt::format("regression of {}, {}, {} + {} texts, {}", model_text(), data_->configuration(),
                       data_->items(Part::training), data_->items(Part::held_out), steps_text());
  }

  at::Tensor loss(const std::int64_t step, const Gradients& gradients) override {
    const std::vector<std::int64_t>& items = batches_->of_step(step);
    at::Tensor shown = at::zeros({1}, at::TensorOptions(at::kDouble).device(placement_.device));
    for (const auto& part : own_parts(items, settings_)) {
      if (request_.low_rank)
        model_ = runnable_with(leaves_, data_->plan()); // the updated weights differ in every step
      const at::Tensor sum =
          (standardised_outputs(model_, Part::training, part, static_cast<std::uint64_t>(step)) -
           standardised_labels(Part::training, part))
              .square()
              .sum() /
          static_cast<double>(items.size());
      gradients.add(sum);
      shown += sum.detach().to(at::kDouble);
    }
    return shown;
  }

  HeldOut validate() override {
    const at::NoGradGuard no_gradients;
    const RunnableModel model = runnable(prepared_, constant_weights(), data_->plan());
    const auto count = static_cast<std::size_t>(data_->items(Part::held_out));
    // Each process fills in those of its items; the rest stays 0.
    std::vector<double> outputs(count), labels(count);
    const auto length = [&](const std::int64_t item) { return data_->length(Part::held_out, item); };
    visit_held_out(data_->items(Part::held_out), length, [&](const Items& whole) {
      const auto items = own_share(whole, settings_.group);
      if (items.empty()) return;
      const at::Tensor read = standardised_outputs(model, Part::held_out, items, 0).to(at::kCPU, at::kDouble);
      for (std::size_t i = 0; i < items.size(); ++i)
        outputs[static_cast<std::size_t>(items[i])] = read.const_data_ptr<double>()[i];
    });
    if (settings_.group != nullptr) sum_over(settings_.group, outputs);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      labels[i] = standardised(data_->number(Part::held_out, static_cast<std::int64_t>(i)));
      squares += std::pow(outputs[i] - labels[i], 2);
    }
    HeldOut held_out;
    held_out.loss = squares / static_cast<double>(std::max<std::size_t>(1, count));
    held_out.pearson = pearson_correlation(outputs, labels);
    held_out.spearman = spearman_correlation(outputs, labels);
    return held_out;
  }

  HeldOutMeasure measure() const override { return HeldOutMeasure::correlation; }
  // As GLUE has it of STS-B (Wang et al. 2019, section 2.2).
  double merit(const HeldOut& held_out) const override { return (held_out.pearson + held_out.spearman) / 2; }

  NamedTensors stored(NamedTensors trained) const override {
    return with_given_maps(weights_of(std::move(trained)));
  }

  std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const override {
    AdapterRecord record = record_of(stored(leaves_), data_->summary(), state, held_out);
    record.classes = data_->plan().classes;
    if (trains_head_) {
      record.label_mean = scale_.mean;
      record.label_deviation = scale_.deviation;
    }
    record.accuracy = fmt::format("held-out Pearson {:.4f}, Spearman {:.4f} of {} texts", held_out.pearson,
                                  held_out.spearman, data_->items(Part::held_out));
    return record;
  }

private:
  static at::Tensor restarted(const at::Tensor& value) { return value.detach().clone().requires_grad_(true); }

  double standardised(const double label) const { return (label - scale_.mean) / scale_.deviation; }

  at::Tensor standardised_labels(const Part part, const std::vector<std::int64_t>& items) const {
    std::vector<double> labels;
    for (const std::int64_t item : items) labels.push_back(standardised(data_->number(part, item)));
    return at::tensor(labels, at::kDouble).to(placement_.device, at::kFloat);
  }

  // (B) float32
  at::Tensor standardised_outputs(const RunnableModel& model, const Part part,
                                  const std::vector<std::int64_t>& items, const std::uint64_t key) const {
    const LabelledBatch batch = data_->batch(part, items, key);
    at::Tensor outputs;
    {
      const Autocast autocast(placement_.device, products_);
      outputs = model.logits(batch.hidden, batch.input, first_).select(1, 0).to(at::kFloat);
    }
    return trains_head_ ? outputs : (outputs - scale_.mean) / scale_.deviation;
  }

  std::unique_ptr<LabelledData> data_;
  LabelScale scale_;
  bool trains_head_ = false;
  RunnableModel model_; // with the leaves
  std::optional<EpochBatches> batches_;
};

} // namespace

std::unique_ptr<FinetuneTask> make_regression(const FinetuneRequest& request,
                                              const TrainingObserver& observer, const std::stop_token& stop,
                                              ModelStore& models) {
  return std::make_unique<Regression>(request, observer, stop, models);
}

} // namespace hydrascope::training
