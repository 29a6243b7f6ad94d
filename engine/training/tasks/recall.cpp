#include "engine/training/tasks/recall.h"

#include <algorithm>
#include <chrono>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/run.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/tasks/recall_model.h"

namespace hydrascope {
namespace training {
namespace {

// The sequences of the training, validation or test part.
struct Sequences {
  at::Tensor tokens;                               // (S,N) int64
  std::vector<std::vector<std::int64_t>> recalled; // of each, as RecallSequence
};

Sequences sequences(const RecallTask& task, const std::uint64_t seed, const RecallPart part,
                    const int count) {
  Sequences result;
  result.tokens = at::empty({count, task.tokens}, at::kLong);
  auto* token = result.tokens.mutable_data_ptr<std::int64_t>();
  for (int index = 0; index < count; ++index) {
    RecallSequence sequence = recall_sequence(task, seed, part, index);
    token = std::ranges::copy(sequence.tokens, token).out;
    result.recalled.push_back(std::move(sequence.recalled));
  }
  return result;
}

// The tokens that the model reads, and the positions at which it predicts the next token; on its device.
struct Batch {
  at::Tensor tokens;    // (B,N−1)
  at::Tensor positions; // (P), over the B·(N−1) tokens
  at::Tensor targets;   // (P)
};

Batch batch_of(const Sequences& sequences, const std::vector<std::int64_t>& items, const bool all_values,
               const at::Device device) {
  const at::Tensor whole = at::index_select(sequences.tokens, 0, at::tensor(items));
  const std::int64_t read = whole.size(1) - 1;
  std::vector<std::int64_t> positions, targets;
  for (std::size_t row = 0; row < items.size(); ++row) {
    const auto& recalled = sequences.recalled[static_cast<std::size_t>(items[row])];
    const auto first = static_cast<std::int64_t>(row);
    for (std::size_t i = all_values ? 0 : recalled.size() - 1; i < recalled.size(); ++i) {
      positions.push_back(first * read + recalled[i] - 1);
      targets.push_back(first * (read + 1) + recalled[i]);
    }
  }
  return {whole.slice(1, 0, read).to(device), at::tensor(positions).to(device),
          at::index_select(whole.flatten(), 0, at::tensor(targets)).to(device)};
}

// Visits the items 0 … count − 1 in pieces, which limits the memory of a layer.
template <typename Visit>
void in_pieces(const std::int64_t count, const Visit& visit) {
  constexpr std::int64_t piece = 100;
  for (std::int64_t first = 0; first < count; first += piece) {
    std::vector<std::int64_t> items;
    for (std::int64_t item = first; item < std::min(count, first + piece); ++item) items.push_back(item);
    visit(items);
  }
}

class Recall final : public TrainingTask {
public:
  Recall(const RecallRequest& request, std::stop_token stop)
      : request_(request),
        stop_(std::move(stop)),
        threads_(request.settings.execution.threads),
        device_(training_placement(request.settings.execution).device),
        model_(request, seed(), device_),
        training_(part(RecallPart::training, request.task.training)),
        validation_(part(RecallPart::validation, request.task.validation)) {}

  const NamedTensors& leaves() const override { return model_.leaves(); }
  std::string configuration() const override { return recall_configuration(request_); }
  std::int64_t steps_per_epoch() const override {
    return ceil_divide(request_.task.training, request_.settings.batch);
  }
  std::int64_t items_of_step(const std::int64_t step) override {
    const std::int64_t batch = request_.settings.batch;
    return std::min(batch, request_.task.training - step % steps_per_epoch() * batch);
  }
  double learning_rate(const std::int64_t step, const std::int64_t total) const override {
    const double peak = request_.settings.learning_rate;
    if (request_.cosine) return warmup_cosine(peak, step, request_.warmup, total);
    return peak * std::min(1.0, static_cast<double>(step + 1) / std::max(1, request_.warmup));
  }
  double weight_decay() const override { return request_.weight_decay; }
  double clip_norm() const override { return 1; }

  at::Tensor loss(const std::int64_t step, const Gradients& gradients) override {
    const std::int64_t count = steps_per_epoch();
    const auto epoch = static_cast<std::uint64_t>(step / count);
    if (order_.empty() || epoch != epoch_) {
      order_ = shuffled(request_.task.training, mix({seed(), 2, epoch}));
      epoch_ = epoch;
    }
    const auto begin = order_.begin() + step % count * request_.settings.batch;
    const auto end = begin + std::min<std::int64_t>(request_.settings.batch, order_.end() - begin);
    const Batch batch = batch_of(training_, {begin, end}, request_.all_values, device_);
    const at::Tensor loss =
        at::cross_entropy_loss(model_.logits(batch.tokens, batch.positions), batch.targets);
    gradients.add(loss);
    return loss.detach().to(at::kDouble).view(1);
  }

  HeldOut validate() override { return held_out(validation_, {}); }
  HeldOutMeasure measure() const override { return HeldOutMeasure::accuracy; }
  double merit(const HeldOut& held_out) const override { return -held_out.loss; }
  void describe(const std::vector<double>&, TrainingProgress&) const override {}
  std::optional<AdapterRecord> record(const Checkpoint&, const HeldOut&) const override {
    return std::nullopt;
  }

  // Measures the current model on the test's sequences. A stop cuts that short: then there is no result.
  void test(RecallOutcome& outcome) const {
    const Sequences sequences = part(RecallPart::test, request_.task.test);
    const KernelInfo& info = model_.kernel(0).kernel->info();
    const bool has_entropy = info.normalised && info.weights_positive;
    // Both stay on the device until all sequences have run.
    RowCount zero_denominators;
    at::Tensor sums = at::zeros({request_.model.layers}, at::TensorOptions(at::kDouble).device(device_));
    const auto visit = [&](const int layer, const AttentionTap& tap) {
      zero_denominators += tap.zero_denominators;
      if (!has_entropy) return;
      const auto& [kernel, parameters, own] = model_.kernel(layer);
      const at::Tensor heads = entropy(kernel->weights(tap.input, parameters)); // (B,H)
      sums.select(0, layer).add_(heads.mean(1).sum());
    };
    const HeldOut result = held_out(sequences, visit);
    outcome.training.stopped = stop_.stop_requested();
    if (outcome.training.stopped) return;
    outcome.zero_denominators = zero_denominators.read();
    outcome.accuracy = result.accuracy;
    outcome.loss = result.loss;
    for (const auto& [name, value] : leaves()) outcome.parameters += value.numel();
    if (!has_entropy) return;
    outcome.entropy = 0;
    const at::Tensor read = sums.to(at::kCPU);
    for (std::int64_t layer = 0; layer < read.numel(); ++layer) {
      outcome.layer_entropies.push_back(read.const_data_ptr<double>()[layer] / request_.task.test);
      *outcome.entropy += outcome.layer_entropies.back() / request_.model.layers;
    }
  }

private:
  std::uint64_t seed() const { return request_.settings.execution.seed; }
  Sequences part(const RecallPart part, const int count) const {
    return sequences(request_.task, seed(), part, count);
  }

  // Of the last token, also with `all_values`.
  HeldOut held_out(const Sequences& sequences, const TapVisitor& visit) const {
    const at::NoGradGuard no_gradients;
    const auto count = static_cast<std::int64_t>(sequences.recalled.size());
    HeldOut result;
    in_pieces(count, [&](const std::vector<std::int64_t>& items) {
      if (stop_.stop_requested()) return;
      const Batch batch = batch_of(sequences, items, false, device_);
      const at::Tensor logits = model_.logits(batch.tokens, batch.positions, visit);
      const at::Tensor right = (at::argmax(logits, 1) == batch.targets).sum();
      const at::Tensor read =
          at::stack({at::cross_entropy_loss(logits, batch.targets).to(at::kDouble), right.to(at::kDouble)})
              .to(at::kCPU);
      result.loss += read.const_data_ptr<double>()[0] * static_cast<double>(items.size());
      result.accuracy += read.const_data_ptr<double>()[1];
    });
    result.loss /= static_cast<double>(count);
    result.accuracy /= static_cast<double>(count);
    return result;
  }

  const RecallRequest& request_;
  std::stop_token stop_;
  ThreadCount threads_;
  at::Device device_;
  RecallModel model_;
  Sequences training_, validation_;
  std::vector<std::int64_t> order_; // of the sequences of epoch_
  std::uint64_t epoch_ = 0;
};

void check(const RecallRequest& request) {
  const auto require = [](const bool ok, const char* option, const char* reason) {
    if (!ok) throw UsageError(option, reason, "see hydrascope recall --help");
  };
  const RecallTask& task = request.task;
  require(task.keys >= 1 && task.values >= 1, "associative recall", "needs at least one key and one value");
  require(task.tokens >= 4 && task.tokens % 2 == 0, "associative recall", "has an even length of at least 4");
  check_sequences({task.training, task.validation, task.test}, "recall");
  const RecallModelShape& model = request.model;
  require(model.layers >= 1 && model.heads >= 1 && model.head_width >= 2 && model.head_width % 2 == 0,
          "associative recall", "needs a layer, a head and an even head width");
  require(request.weight_decay >= 0, "--weight-decay", "must not be below 0");
  require(request.warmup >= 0, "--warmup", "must not be below 0");
  check_settings(request.settings);
}

} // namespace
} // namespace training

RecallRequest recall_request(const RecallPreset preset) {
  RecallRequest request;
  request.settings.epochs = 100;
  request.settings.patience = 10;
  request.settings.batch = 32;
  request.settings.learning_rate = 1e-4;
  if (preset == RecallPreset::paper) return request;
  request.task.keys = request.task.values = 10;
  request.task.tokens = 64;
  request.model = {.layers = 2, .heads = 2, .head_width = 32};
  request.settings.epochs = 12;
  request.settings.patience = 0; // with the decay of the learning rate the last epochs are the best
  request.cosine = true;
  request.settings.learning_rate = 3e-3;
  request.warmup = 100;
  request.all_values = true; // some twenty targets a sequence in place of one
  return request;
}

std::string recall_configuration(const RecallRequest& request) {
  const auto& [keys, values, tokens, training, validation, test] = request.task;
  const auto& [layers, heads, head_width] = request.model;
  const TrainingSettings& settings = request.settings;
  const std::string data = fmt::format("{} keys, {} values, {} tokens, {}+{}+{} sequences", keys, values,
                                       tokens, training, validation, test);
  const std::string rate = fmt::format("learning rate {}{}, {} steps of warm-up", settings.learning_rate,
                                       request.cosine ? " falling to 0" : "", request.warmup);
  return fmt::format(
      "recall by {}: {} layers, {} heads, d = {}; {}; loss of {}; at most {} epochs, patience {}, "
      "batch {}, {}, weight decay {}, seed {}",
      request.kernel.text(), layers, heads, head_width, data,
      request.all_values ? "all values" : "the last token", settings.epochs, settings.patience,
      settings.batch, rate, request.weight_decay, settings.execution.seed);
}

RecallOutcome recall(const RecallRequest& request, const TrainingObserver& observer,
                     const std::stop_token& stop) {
  const auto train_and_test = [&] {
    const auto begin = std::chrono::steady_clock::now();
    training::check(request);
    training::Recall task(request, stop);
    RecallOutcome outcome;
    outcome.configuration = task.configuration();
    outcome.training = training::run_training(task, request.settings, {}, observer, stop);
    outcome.epochs = static_cast<int>(training::ceil_divide(outcome.training.steps, task.steps_per_epoch()));
    if (!outcome.training.stopped) task.test(outcome);
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  };
  return training::with_errors_of("recall", request.settings.execution.device, train_and_test,
                                  "use fewer --sequences or a smaller --batch");
}

} // namespace hydrascope
