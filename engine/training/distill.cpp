#include "engine/training/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/runtime/execution.h"
#include "engine/runtime/softmax_run.h"
#include "engine/training/adapter_file.h"
#include "engine/training/checkpoint.h"
#include "engine/training/distill_data.h"
#include "engine/training/random.h"

namespace hydrascope {
namespace training {
namespace {

// Inside logarithms, as kernels.md clamps for the divergence.
constexpr double smallest_weight = 1e-12;

// The model's q and k of every layer with softmax everywhere.
std::vector<AttentionInput> teacher(const Model& model, const ModelInput& input) {
  std::vector<AttentionInput> inputs;
  visit_softmax_run(model, input, [&](int, const AttentionInput& layer) { inputs.push_back(layer); });
  return inputs;
}

struct LayerLoss {
  at::Tensor cross_entropy; // (H), mean over real rows
  at::Tensor entropy;       // (H), softmax's own: the difference is the divergence
};

LayerLoss layer_loss(const AttentionInput& input, const Kernel& softmax, const Kernel& kernel,
                     const KernelParameters& parameters) {
  at::Tensor wanted;
  {
    const at::NoGradGuard no_gradients;
    wanted = softmax.weights(input, {});
  }
  const at::Tensor weights = kernel.weights(input, parameters);
  // Rows of padding are 0 in `wanted` and add nothing; they are not counted either.
  const at::Tensor rows = input.mask.defined()
                              ? input.mask.sum().to(at::kFloat)
                              : at::scalar_tensor(wanted.size(0) * wanted.size(2), at::kFloat);
  const auto over_rows = [&](const at::Tensor& product) { return product.sum({0, 2, 3}) / rows; };
  return {-over_rows(wanted * weights.clamp_min(smallest_weight).log()),
          -over_rows(wanted * wanted.clamp_min(smallest_weight).log())};
}

struct Held {
  double loss = 0, divergence = 0;
};

class Distillation {
public:
  Distillation(const DistillRequest& request, const TrainingObserver& observer, const std::stop_token& stop)
      : request_(request),
        observer_(observer),
        stop_(stop),
        threads_(request.execution.threads),
        kernel_(checked_kernel(request.kernel)),
        softmax_(make_kernel({})),
        prepared_(prepare_model(request.model_folder, request.adapters, {}, request.execution, true)) {
    if (request.epochs < 1 || request.batch < 1 || request.learning_rate <= 0 ||
        request.validation_share <= 0 || request.validation_share >= 1)
      throw UsageError("distill",
                       "epochs, batch and learning rate must be above 0, the held-out share within 0…1",
                       "see distill --help");
    data_ = make_distill_data(prepared_, request);
    state_.notes = data_->notes();
    for (const auto& note : state_.notes) tell(note);
    split();
    for (int layer = 0; layer < prepared_.model->info().layers; ++layer) {
      const auto& info = prepared_.model->info();
      for (const auto& [name, value] :
           kernel_->initial_parameters(info.heads, info.width / info.heads, layer))
        leaves_[kernel_parameter_name(layer, *kernel_, name)] =
            value.detach().to(at::kFloat).clone().requires_grad_(true);
    }
    optimizer_ = std::make_unique<Optimizer>(leaves_, 0.0);
  }

  TrainingOutcome run() {
    const auto file = checkpoint_path(request_.output);
    if (request_.output.has_parent_path()) std::filesystem::create_directories(request_.output.parent_path());
    if (request_.resume) {
      restore(load_checkpoint(file, configuration()), file);
    } else {
      const Held held = validate();
      state_.initial_divergence = held.divergence;
      state_.best = held.loss;
      last_ = held;
      report("validate", 0, 0);
      save(file);
    }
    while (state_.step < total_steps()) {
      if (!epoch(file)) return outcome(true);
      last_ = validate();
      report("validate", steps_per_epoch(), 0);
      const bool better = last_.loss < state_.best;
      if (better) {
        state_.best = last_.loss;
        state_.best_step = state_.step;
        state_.best_parameters.clear();
        for (const auto& [name, value] : leaves_) state_.best_parameters[name] = value.detach().clone();
      }
      state_.epoch_loss = 0;
      state_.epoch_layers.clear();
      if (!better) break; // early stopping
      if (state_.step < total_steps()) save(file);
    }
    return finish(file);
  }

private:
  static std::unique_ptr<Kernel> checked_kernel(const KernelSpec& spec) {
    if (spec.name == "t2r")
      throw UsageError("--kernel t2r", "its maps are trained with the task only, by finetune",
                       "t2r-hh is the same map trained by distillation");
    const KernelInfo& info = kernel_info(spec.name);
    if (!info.trainable || !info.normalised)
      throw UsageError("--kernel " + spec.name, "has no feature maps that distillation could train",
                       "try --kernel hedgehog");
    return make_kernel(spec);
  }

  // Held-out items, and batches of items of like length.
  void split() {
    const auto order = shuffled(data_->items(), mix({request_.execution.seed, 1}));
    const auto held = std::clamp<std::int64_t>(
        std::llround(request_.validation_share * static_cast<double>(data_->items())), 1, data_->items() - 1);
    std::vector<std::int64_t> held_out(order.begin(), order.begin() + held),
        train(order.begin() + held, order.end());
    validation_ = batches(std::move(held_out));
    train_ = batches(std::move(train));
  }

  std::vector<std::vector<std::int64_t>> batches(std::vector<std::int64_t> items) const {
    std::ranges::stable_sort(items, {}, [&](const std::int64_t item) { return data_->length(item); });
    std::vector<std::vector<std::int64_t>> result;
    const auto size = static_cast<std::size_t>(request_.batch);
    for (std::size_t begin = 0; begin < items.size(); begin += size)
      result.emplace_back(items.begin() + static_cast<std::ptrdiff_t>(begin),
                          items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), begin + size)));
    return result;
  }

  std::int64_t steps_per_epoch() const { return static_cast<std::int64_t>(train_.size()); }
  std::int64_t total_steps() const { return steps_per_epoch() * request_.epochs; }

  std::string configuration() const {
    std::string files;
    for (const auto& file : request_.data) files += file.filename().string() + " ";
    return fmt::format(
        "distill {} of {} over {} on {}({} items, chunk {}, held-out share {}), {} epochs, batch {}, seed {}",
        request_.kernel.text(), prepared_.model->info().name, prepared_.base.substr(0, 12), files,
        data_->items(), request_.chunk, request_.validation_share, request_.epochs, request_.batch,
        request_.execution.seed);
  }

  KernelParameters parameters_of(const int layer) const {
    KernelParameters parameters;
    const std::string prefix = kernel_parameter_name(layer, *kernel_, "");
    for (const auto& [name, value] : leaves_)
      if (name.starts_with(prefix)) parameters[name.substr(prefix.size())] = value;
    return parameters;
  }

  // One pass over a batch: the loss summed over heads and layers, and each layer's mean over heads.
  at::Tensor batch_loss(const std::vector<std::int64_t>& items, std::vector<double>& layers,
                        double& entropy) const {
    const ModelInput input = data_->batch(items);
    const auto inputs = teacher(*prepared_.model, input);
    at::Tensor total;
    layers.assign(inputs.size(), 0.0);
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
      const LayerLoss loss =
          layer_loss(inputs[layer], *softmax_, *kernel_, parameters_of(static_cast<int>(layer)));
      const at::Tensor sum = loss.cross_entropy.sum();
      layers[layer] = loss.cross_entropy.mean().item<double>();
      entropy += loss.entropy.mean().item<double>() / static_cast<double>(inputs.size());
      total = total.defined() ? total + sum : sum;
    }
    return total;
  }

  Held validate() const {
    const at::NoGradGuard no_gradients;
    Held sum;
    double items = 0;
    for (const auto& batch : validation_) {
      if (stop_.stop_requested()) break;
      std::vector<double> layers;
      double entropy = 0;
      batch_loss(batch, layers, entropy);
      const auto size = static_cast<double>(batch.size());
      double mean = 0;
      for (const double layer : layers) mean += layer / static_cast<double>(layers.size());
      sum.loss += mean * size;
      sum.divergence += (mean - entropy) * size;
      items += size;
    }
    return items > 0 ? Held{sum.loss / items, sum.divergence / items} : Held{};
  }

  bool epoch(const std::filesystem::path& file) {
    const std::int64_t count = steps_per_epoch(), number = state_.step / count;
    const auto order = shuffled(count, mix({request_.execution.seed, 2, static_cast<std::uint64_t>(number)}));
    const auto begin = std::chrono::steady_clock::now();
    const std::int64_t first = state_.step;
    do {
      if (stop_.stop_requested()) {
        save(file);
        return false;
      }
      const auto& batch =
          train_[static_cast<std::size_t>(order[static_cast<std::size_t>(state_.step % count)])];
      std::vector<double> layers;
      double entropy = 0;
      const at::Tensor loss = batch_loss(batch, layers, entropy);
      if (!std::isfinite(loss.item<double>())) fail(file, "the loss is not a number");
      loss.backward();
      if (!std::isfinite(optimizer_->step(request_.learning_rate, 0.0)))
        fail(file, "the gradients are not finite");
      ++state_.step;
      ++state_.updates;
      state_.epoch_layers.resize(layers.size());
      double mean = 0;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        state_.epoch_layers[i] += layers[i];
        mean += layers[i] / static_cast<double>(layers.size());
      }
      state_.epoch_loss += mean;
      state_.curve.emplace_back(state_.step, mean);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      report("train", state_.step - number * count,
             static_cast<double>((state_.step - first) * request_.batch) / std::max(1e-9, seconds.count()));
      if (state_.step % count != 0 && clock_.due()) save(file);
    } while (state_.step % count != 0);
    return true;
  }

  [[noreturn]] void fail(const std::filesystem::path& file, const std::string& reason) const {
    throw Error(fmt::format("step {} of {}", state_.step + 1, total_steps()),
                fmt::format("{}; the last good state is kept in {}", reason, file.string()),
                "go on from it with --resume and a lower --learning-rate");
  }

  void save(const std::filesystem::path& file) {
    state_.configuration = configuration();
    state_.parameters = leaves_;
    state_.moments = optimizer_->state();
    save_checkpoint(file, state_);
    clock_ = {};
  }

  void restore(Checkpoint checkpoint, const std::filesystem::path& file) {
    const at::NoGradGuard no_gradients;
    for (auto& [name, value] : leaves_) {
      const auto saved = checkpoint.parameters.find(name);
      if (saved == checkpoint.parameters.end() || saved->second.sizes() != value.sizes())
        throw BrokenFile(file.string(), "has no parameter that fits " + name, "start again without --resume");
      value.copy_(saved->second);
    }
    optimizer_->restore(checkpoint.moments, checkpoint.updates, file.string());
    state_ = std::move(checkpoint);
  }

  void tell(const std::string& text) const {
    if (!observer_) return;
    TrainingProgress progress;
    progress.phase = "features";
    progress.note = text;
    observer_(progress);
  }

  void report(const char* phase, const std::int64_t step_of_epoch, const double rate) const {
    if (!observer_) return;
    TrainingProgress progress;
    progress.phase = phase;
    progress.epoch = state_.step == 0 ? 0 : static_cast<int>((state_.step - 1) / steps_per_epoch()) + 1;
    progress.epochs = request_.epochs;
    progress.step = step_of_epoch;
    progress.steps = steps_per_epoch();
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, step_of_epoch));
    progress.loss = state_.epoch_loss / steps;
    for (const double layer : state_.epoch_layers) progress.per_layer.push_back(layer / steps);
    progress.validation_loss = last_.loss;
    progress.divergence = last_.divergence;
    progress.items_per_second = rate;
    observer_(progress);
  }

  TrainingOutcome outcome(const bool stopped) const {
    TrainingOutcome result;
    result.stopped = stopped;
    result.steps = state_.step;
    result.curve = state_.curve;
    result.notes = state_.notes;
    result.initial_divergence = state_.initial_divergence;
    return result;
  }

  TrainingOutcome finish(const std::filesystem::path& file) {
    if (state_.best_step < 0)
      throw Error(request_.output.string(), "training made the held-out loss no better, nothing was written",
                  "try a lower --learning-rate or more data");
    {
      const at::NoGradGuard no_gradients;
      for (auto& [name, value] : leaves_) value.copy_(state_.best_parameters.at(name));
    }
    last_ = validate();
    AdapterRecord record;
    record.role = "maps";
    record.base = prepared_.base;
    const auto& info = prepared_.model->info();
    for (int layer = 0; layer < info.layers; ++layer) record.layers.push_back({layer, request_.kernel});
    if (info.input == InputKind::image) {
      record.image_size = request_.execution.image_size.value_or(info.image_size);
      const auto layout = data_->batch({0}).layout;
      record.tokens = layout.prefix + layout.rows * layout.columns;
    }
    for (const auto& one : request_.data)
      record.data += (record.data.empty() ? "" : ", ") +
                     (one.has_filename() ? one : one.parent_path()).filename().string();
    record.data += fmt::format(" ({} items)", data_->items());
    record.steps = state_.best_step;
    record.loss = last_.loss;
    record.accuracy = fmt::format("held-out KL(softmax ‖ kernel) {:.4f} nats, {:.4f} before training",
                                  last_.divergence, state_.initial_divergence);
    record.command = request_.command;
    TrainingOutcome result = outcome(false);
    result.adapter = write_adapter(request_.output, leaves_, record);
    std::filesystem::remove(file);
    result.final_loss = result.validation_loss = last_.loss;
    result.divergence = last_.divergence;
    return result;
  }

  const DistillRequest& request_;
  const TrainingObserver& observer_;
  std::stop_token stop_;
  ThreadCount threads_;
  std::unique_ptr<Kernel> kernel_, softmax_;
  PreparedModel prepared_;
  std::unique_ptr<DistillData> data_;
  std::vector<std::vector<std::int64_t>> train_, validation_;
  NamedTensors leaves_;
  std::unique_ptr<Optimizer> optimizer_;
  Checkpoint state_;
  CheckpointClock clock_;
  Held last_;
};

} // namespace
} // namespace training

TrainingOutcome distill(const DistillRequest& request, const TrainingObserver& observer,
                        const std::stop_token& stop) {
  try {
    return training::Distillation(request, observer, stop).run();
  } catch (const c10::Error& error) {
    throw Error("distill", error.what_without_backtrace(), "report this with the command");
  }
}

} // namespace hydrascope
