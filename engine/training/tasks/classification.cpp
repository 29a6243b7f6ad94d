// Fine-tuning of a classifier, on pictures or texts.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/transformer/encoder_layer.h"
#include "engine/run/run.h"
#include "engine/training/data/class_counts.h"
#include "engine/training/data/epoch_batches.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/finetuning.h"
#include "engine/training/tasks/frozen_features.h"
#include "engine/training/tasks/labelled_data.h"

namespace hydrascope::training {
namespace {

class Classification final : public FinetuneTask {
public:
  Classification(const FinetuneRequest& request, const TrainingObserver& observer, std::stop_token stop,
                 ModelStore& models)
      : FinetuneTask(request, std::move(stop), models),
        pictures_(prepared_.model->info().input == InputKind::image),
        data_(make_labelled_data(prepared_, request, first_, products_, observer, stop_)) {
    if (!data_) return;
    if (data_->plan().new_head && prepared_.classes.size() == 1)
      throw UsageError("--objective", "the model's classifier predicts a number, not classes",
                       "add --objective regression, or start from the bare model with --no-adapter");
    batches_.emplace(data_->items(Part::training), settings_.batch, settings_.execution.seed,
                     [this](const std::int64_t item) { return data_->length(Part::training, item); });
    leaves_ = make_leaves(prepared_, parts_, data_->plan(), request_.low_rank, settings_.execution.seed);
    model_ = runnable_with(leaves_, data_->plan());
    if (distils()) prepare_teacher(models, observer);
  }

  bool stopped() const override { return data_ == nullptr; } // while the features were computed
  const std::vector<std::string>& notes() const override { return data_->notes(); }
  std::int64_t steps_per_epoch() const override { return batches_->steps_per_epoch(); }
  std::int64_t items_of_step(const std::int64_t step) override { return std::ssize(batches_->of_step(step)); }

  std::string configuration() const override {
    return fmt::format("finetune of {}, {}, {} + {} {}, {}, mixup {}{}", model_text(), data_->configuration(),
                       data_->items(Part::training), data_->items(Part::held_out), data_->items_name(),
                       steps_text(), request_.mixup, distillation_text());
  }

  at::Tensor loss(const std::int64_t step, const Gradients& gradients) override {
    const Items& items = batches_->of_step(step);
    const bool mixes = request_.mixup > 0 && pictures_;
    const std::vector<Items> parts = own_parts(items, settings_);
    // Each picture is mixed with the one at the same distance from the end of the batch.
    std::vector<Items> others;
    if (mixes) others = own_parts({items.rbegin(), items.rend()}, settings_);
    at::Tensor shown = at::zeros({1}, at::TensorOptions(at::kDouble).device(placement_.device));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor sum = loss_of(parts[i], mixes ? others[i] : Items(), static_cast<std::uint64_t>(step));
      const at::Tensor part = sum / static_cast<double>(items.size());
      gradients.add(part);
      shown += part.detach().to(at::kDouble);
    }
    return shown;
  }

  HeldOut validate() override {
    const at::NoGradGuard no_gradients;
    const RunnableModel model = runnable(prepared_, constant_weights(), data_->plan());
    const Autocast autocast(placement_.device, products_);
    ClassCounts counts(data_->plan().classes.size());
    double loss = 0;
    const auto length = [&](const std::int64_t item) { return data_->length(Part::held_out, item); };
    visit_held_out(data_->items(Part::held_out), length, [&](const Items& whole) {
      const auto items = own_share(whole, settings_.group);
      if (items.empty()) return;
      const LabelledBatch batch = data_->batch(Part::held_out, items, 0);
      const at::Tensor logits = model.logits(batch.hidden, batch.input, first_);
      const at::Tensor labels = labels_of(Part::held_out, items);
      const at::Tensor sum = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
      // The loss and the likeliest classes in one copy from the device.
      const at::Tensor read =
          at::cat({sum.to(at::kDouble).view(1), logits.argmax(1).to(at::kDouble)}).to(at::kCPU);
      const auto* numbers = read.const_data_ptr<double>();
      loss += *numbers++;
      for (const std::int64_t item : items) {
        const std::int64_t best = std::llround(*numbers++);
        counts.add(data_->label(Part::held_out, item), std::span(&best, 1));
      }
    });
    combine(counts, loss);
    HeldOut held_out;
    held_out.loss = loss / static_cast<double>(std::max<std::int64_t>(1, counts.items));
    held_out.accuracy = top1(counts);
    held_out.constant_answer = constant_answer(counts);
    if (counts.actual.size() == 2) {
      held_out.matthews = matthews_correlation(counts);
      held_out.f1 = f1_of_class(counts, 1);
    }
    return held_out;
  }

  HeldOutMeasure measure() const override { return HeldOutMeasure::accuracy; }
  // Of two classes one is often rare: a constant answer then has a high accuracy, but no correlation.
  double merit(const HeldOut& held_out) const override {
    return data_->plan().classes.size() == 2 ? held_out.matthews : held_out.accuracy;
  }

  NamedTensors stored(NamedTensors trained) const override {
    return with_given_maps(weights_of(std::move(trained)));
  }

  std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const override {
    if (request_.whole_model) return std::nullopt;
    AdapterRecord record = record_of(stored(leaves_), data_->summary(), state, held_out);
    if (pictures_) {
      record.image_size = settings_.execution.image_size.value_or(prepared_.model->info().image_size);
      record.tokens = data_->length(Part::training, 0);
    }
    record.classes = data_->plan().classes;
    record.accuracy = fmt::format("held-out top-1 {:.4f} of {} {}", held_out.accuracy,
                                  data_->items(Part::held_out), data_->items_name());
    if (record.classes.size() == 2)
      record.accuracy += fmt::format(", Matthews {:.4f}, F1 {:.4f}", held_out.matthews, held_out.f1);
    return record;
  }

private:
  std::string distillation_text() const {
    if (!distils()) return "";
    return fmt::format(", distillation alpha {}, tau {}, hidden {}{}", request_.distillation_alpha,
                       request_.distillation_tau, request_.distillation_hidden,
                       teacher_data_ ? ", softmax below the trained layers" : "");
  }

  bool distils() const { return request_.distillation_alpha > 0 || request_.distillation_hidden > 0; }

  // The model trained with softmax, without adapters that were trained through other kernels. It has its own
  // states below the first trained layer where they differ.
  void prepare_teacher(ModelStore& models, const TrainingObserver& observer) {
    AdapterChoice with_softmax{.automatic = false, .files = {}};
    for (const AppliedAdapter& adapter : prepared_.adapters)
      if (adapter.info.role == "tail") with_softmax.files.push_back(adapter.info.path);
    softmax_ =
        prepare_model(models, settings_.model_folder, with_softmax, ScheduleText{"sdpa"}, placement_, true);
    const bool same_classes =
        std::ranges::equal(softmax_.classes, prepared_.classes,
                           [](const auto& a, const auto& b) { return a.id == b.id && a.label == b.label; });
    if (data_->plan().new_head || !softmax_.model->info().has_classifier ||
        (request_.distillation_alpha > 0 && !same_classes))
      throw UsageError("--distillation-alpha", "the model has no classifier for these classes to learn from",
                       "fine-tune it with softmax first, and build on that adapter");
    if (request_.distillation_alpha > 0 && softmax_.model->info().independent_labels)
      throw UsageError("--distillation-alpha", "the model's labels are independent, not the classes of one",
                       "fine-tune it with softmax first, and build on that adapter");
    NamedTensors matrices;
    for (const std::string& name : softmax_.model->parameter_names())
      if (layer_of_parameter(name) >= first_) matrices[name] = softmax_.model->parameter(name);
    teacher_ = runnable(softmax_, matrices_in(products_, matrices), data_->plan());
    if (!is_converted_below()) return;
    softmax_.classes = prepared_.classes; // the same items
    FinetuneRequest request = request_;   // of the same size
    auto& size = request.settings.execution.image_size;
    if (const ModelInfo& info = prepared_.model->info(); info.input == InputKind::image)
      size = size.value_or(info.image_size);
    // The notes about the items were already reported.
    const auto without_notes = [&](const TrainingProgress& progress) {
      if (observer && progress.note.empty()) observer(progress);
    };
    teacher_data_ = make_labelled_data(softmax_, request, first_, products_, without_notes, stop_);
    if (!teacher_data_) data_.reset(); // stopped
  }

  // Whether what enters the first trained layer differs from what enters that layer of the teacher: layers
  // below run through other kernels, or adapters that the teacher does not have changed these.
  bool is_converted_below() const {
    if (parts_.embeddings) return false; // both begin with the input
    const auto& layers = prepared_.schedule.layers;
    return std::any_of(layers.begin(), layers.begin() + first_,
                       [](const KernelSpec& kernel) { return !kernel_info(kernel).exact_softmax; }) ||
           std::ranges::any_of(prepared_.adapters, [&](const AppliedAdapter& adapter) {
             return adapter.info.role != "tail" && changes_weights_below(first_, adapter.parts);
           });
  }

  // The loss of some items of a step's batch, summed over them; with `others`, of which there are as many,
  // mixed with these.
  at::Tensor loss_of(const Items& items, const Items& others, const std::uint64_t step) {
    const std::uint64_t seed = settings_.execution.seed, key = mix({seed, 3, step});
    const at::Tensor labels = labels_of(Part::training, items);
    at::Tensor other_labels;
    double share = 1;
    if (!others.empty()) {
      share = symmetric_beta(request_.mixup, mix({seed, 4, step}));
      other_labels = labels_of(Part::training, others);
    }
    const auto batch_of = [&](const LabelledData& data) {
      LabelledBatch batch = data.batch(Part::training, items, key);
      if (!others.empty())
        batch.hidden = batch.hidden * share + data.batch(Part::training, others, key).hidden * (1 - share);
      return batch;
    };
    const LabelledBatch batch = batch_of(*data_);
    if (request_.low_rank)
      model_ = runnable_with(leaves_, data_->plan()); // the updated weights differ in every step
    const Outputs outputs = outputs_of(model_, batch);
    const auto of = [&](const at::Tensor& target) {
      return at::cross_entropy_loss(outputs.logits, target, {}, at::Reduction::Sum, -100,
                                    request_.label_smoothing);
    };
    const at::Tensor sum =
        other_labels.defined() ? of(labels) * share + of(other_labels) * (1 - share) : of(labels);
    if (!distils()) return sum;
    return with_teacher(sum, outputs, teacher_data_ ? batch_of(*teacher_data_) : batch);
  }

  struct Outputs {
    at::Tensor logits;              // (B,C)
    std::vector<at::Tensor> states; // of blocks first_ to the last but one, (B,N,D), if they are in the loss
  };
  Outputs outputs_of(const RunnableModel& model, const LabelledBatch& batch) const {
    const Autocast autocast(placement_.device, products_);
    Outputs outputs;
    outputs.logits = model.logits(batch.hidden, batch.input, first_,
                                  request_.distillation_hidden > 0 ? &outputs.states : nullptr);
    return outputs;
  }

  // The loss by labels and by the teacher, summed over the batch, which is the teacher's.
  at::Tensor with_teacher(const at::Tensor& by_labels, const Outputs& outputs,
                          const LabelledBatch& batch) const {
    Outputs teacher;
    {
      const at::NoGradGuard no_gradients;
      teacher = outputs_of(teacher_, batch);
    }
    const double alpha = request_.distillation_alpha, tau = request_.distillation_tau;
    at::Tensor sum = by_labels * (1 - alpha);
    if (alpha > 0)
      sum = sum + at::kl_div(at::log_softmax(outputs.logits / tau, 1),
                             at::log_softmax(teacher.logits / tau, 1), at::Reduction::Sum, true) *
                      (alpha * tau * tau);
    for (std::size_t i = 0; i < outputs.states.size(); ++i)
      sum = sum + distance(outputs.states[i], teacher.states[i], batch.input.mask) *
                      (request_.distillation_hidden / static_cast<double>(outputs.states.size()));
    return sum;
  }

  // The distance of hidden states (B,N,D), each token normalised: the mean square over an item's tokens and
  // features, summed over items.
  static at::Tensor distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& mask) {
    const auto normalised = [](const at::Tensor& x) {
      return at::layer_norm(x.to(at::kFloat), x.size(2), {}, {}, 1e-6);
    };
    const at::Tensor squares = (normalised(a) - normalised(b)).square().mean(2);
    if (!mask.defined()) return squares.mean(1).sum();
    const at::Tensor counted = mask.to(at::kFloat);
    return ((squares * counted).sum(1) / counted.sum(1)).sum();
  }

  // Sums the counts and the loss over the processes.
  void combine(ClassCounts& counts, double& loss) const {
    if (settings_.group == nullptr) return;
    std::vector<double> values{loss, static_cast<double>(counts.items), static_cast<double>(counts.first),
                               static_cast<double>(counts.among_five)};
    const std::array vectors{&counts.actual, &counts.predicted, &counts.right};
    for (const auto* vector : vectors) values.insert(values.end(), vector->begin(), vector->end());
    sum_over(settings_.group, values);
    loss = values[0];
    auto value = values.begin() + 1;
    const auto next = [&] { return std::llround(*value++); };
    counts.items = next();
    counts.first = next();
    counts.among_five = next();
    for (auto* vector : vectors)
      for (std::int64_t& count : *vector) count = next();
  }

  at::Tensor labels_of(const Part part, const std::vector<std::int64_t>& items) const {
    std::vector<std::int64_t> labels;
    for (const std::int64_t item : items) labels.push_back(data_->label(part, item));
    return at::tensor(labels, at::kLong).to(placement_.device);
  }

  bool pictures_;
  std::unique_ptr<LabelledData> data_;
  RunnableModel model_; // with the leaves
  // With distillation:
  PreparedModel softmax_;
  RunnableModel teacher_;
  std::unique_ptr<LabelledData> teacher_data_; // null: the same as the model's own
  std::optional<EpochBatches> batches_;
};

} // namespace

std::unique_ptr<FinetuneTask> make_classification(const FinetuneRequest& request,
                                                  const TrainingObserver& observer,
                                                  const std::stop_token& stop, ModelStore& models) {
  return std::make_unique<Classification>(request, observer, stop, models);
}

} // namespace hydrascope::training
