// Fine-tuning of a decoder: the next token of running text, or of the answers to prompts.
#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/transformer/encoder_layer.h"
#include "engine/run/run.h"
#include "engine/training/data/epoch_batches.h"
#include "engine/training/loop/autocast.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/finetuning.h"
#include "engine/training/tasks/frozen_features.h"
#include "engine/training/tasks/next_token_data.h"

namespace hydrascope::training {
namespace {

// Tokens whose logits are computed and differentiated together: those of all tokens would be N·V numbers.
constexpr std::int64_t tokens_with_logits = 256;

class NextTokenTuning final : public FinetuneTask {
public:
  NextTokenTuning(const FinetuneRequest& request, std::stop_token stop, ModelStore& models)
      : FinetuneTask(request, std::move(stop), models),
        front_(prepared_, first_, products_),
        data_(prepared_, request),
        batches_(data_.items(Part::training), settings_.batch, settings_.execution.seed,
                 [this](const std::int64_t item) { return data_.length(Part::training, item); }) {
    leaves_ = make_leaves(prepared_, parts_, {}, request.low_rank, settings_.execution.seed);
    if (leaves_.empty())
      throw UsageError("--train-layers", "names nothing that the model has to train", "name some layers");
    find_frozen();
    if (!request_.low_rank) model_ = with_frozen(weights_of(leaves_));
  }

  const std::vector<std::string>& notes() const override { return data_.notes(); }
  std::int64_t steps_per_epoch() const override { return batches_.steps_per_epoch(); }
  std::int64_t items_of_step(const std::int64_t step) override { return std::ssize(batches_.of_step(step)); }

  std::string configuration() const override {
    return fmt::format("next tokens of {}, {}, {} held out, {}", model_text(), data_.configuration(),
                       data_.items(Part::held_out), steps_text());
  }

  at::Tensor loss(const std::int64_t step, const Gradients& gradients) override {
    const Items& items = batches_.of_step(step);
    const auto scored = static_cast<double>(data_.scored(Part::training, items));
    at::Tensor shown = at::zeros({1}, at::TensorOptions(at::kDouble).device(placement_.device));
    for (const Items& part : own_parts(items, settings_)) {
      if (request_.low_rank)
        model_ = with_frozen(weights_of(leaves_)); // each part frees the graph of the updates
      shown +=
          loss_of(model_, data_.batch(Part::training, part), scored, request_.label_smoothing, &gradients);
    }
    return shown;
  }

  HeldOut validate() override {
    const at::NoGradGuard no_gradients;
    const RunnableModel model = with_frozen(constant_weights());
    Items all(static_cast<std::size_t>(data_.items(Part::held_out)));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const auto scored = static_cast<double>(data_.scored(Part::held_out, all));
    const auto length = [&](const std::int64_t item) { return data_.length(Part::held_out, item); };
    at::Tensor sum = at::zeros({1}, at::TensorOptions(at::kDouble).device(placement_.device));
    visit_held_out(data_.items(Part::held_out), length, [&](const Items& whole) {
      for (const Items& part : own_parts(whole, settings_))
        sum += loss_of(model, data_.batch(Part::held_out, part), scored, 0, nullptr);
    });
    HeldOut held_out;
    held_out.loss = sum.item<double>();
    sum_over(settings_.group, std::span(&held_out.loss, 1));
    return held_out;
  }

  HeldOutMeasure measure() const override { return HeldOutMeasure::perplexity; }
  double merit(const HeldOut& held_out) const override { return -held_out.loss; }

  NamedTensors stored(NamedTensors trained) const override { return with_given_maps(std::move(trained)); }

  std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const override {
    if (request_.whole_model) return std::nullopt;
    AdapterRecord record = record_of(stored(leaves_), data_.summary(), state, held_out);
    record.accuracy = fmt::format("held-out perplexity {:.4g}, {:.4g} before training", held_out.perplexity,
                                  state.before.perplexity);
    if (request_.low_rank) record.low_rank_alpha = request_.low_rank->alpha;
    return record;
  }

private:
  // The matrices of the trained blocks that stay as they are, in the type of products: autocast would convert
  // them in every step.
  void find_frozen() {
    NamedTensors parameters;
    for (const std::string& name : prepared_.model->parameter_names())
      if (layer_of_parameter(name) >= first_) parameters[name] = prepared_.model->parameter(name);
    for (const auto& [name, value] : weights_of(leaves_)) parameters.erase(name);
    frozen_ = matrices_in(products_, parameters);
  }

  RunnableModel with_frozen(NamedTensors weights) const {
    weights.insert(frozen_.begin(), frozen_.end());
    return runnable(prepared_, weights, {});
  }

  // The cross-entropy of the batch's targets, summed, over `scored`: (1) float64. With `gradients` its own
  // are added. The graph is cut before the logits, and those of some tokens after others are made and
  // differentiated.
  at::Tensor loss_of(const RunnableModel& model, const NextTokenBatch& batch, const double scored,
                     const double smoothing, const Gradients* const gradients) const {
    at::Tensor hidden;
    {
      const Autocast autocast(placement_.device, products_);
      const at::Tensor start = parts_.embeddings ? at::Tensor() : front_.through({}, batch.input);
      hidden = model.output(start, batch.input, first_); // (P,D)
    }
    at::Tensor sum = at::zeros({1}, at::TensorOptions(at::kDouble).device(hidden.device()));
    std::vector<at::Tensor> reached;
    for (std::int64_t first = 0; first < hidden.size(0); first += tokens_with_logits) {
      const std::int64_t end = std::min(hidden.size(0), first + tokens_with_logits);
      const at::Tensor piece = hidden.slice(0, first, end).detach();
      piece.requires_grad_(gradients != nullptr && hidden.requires_grad());
      at::Tensor logits;
      {
        const Autocast autocast(placement_.device, products_);
        logits = model.pass.model.model->logits(piece, {}).to(at::kFloat);
      }
      const at::Tensor loss = at::cross_entropy_loss(logits, batch.targets.slice(0, first, end), {},
                                                     at::Reduction::Sum, -100, smoothing) /
                              scored;
      sum += loss.detach().to(at::kDouble);
      if (gradients == nullptr) continue;
      gradients->add(loss);
      if (piece.grad().defined()) reached.push_back(piece.grad());
    }
    if (!reached.empty()) gradients->through(hidden, at::cat(reached));
    return sum;
  }

  FrozenFront front_;
  NextTokenData data_;
  NamedTensors frozen_;
  RunnableModel model_; // with the leaves
  EpochBatches batches_;
};

} // namespace

std::unique_ptr<FinetuneTask> make_next_token_tuning(const FinetuneRequest& request,
                                                     const std::stop_token& stop, ModelStore& models) {
  return std::make_unique<NextTokenTuning>(request, stop, models);
}

} // namespace hydrascope::training
