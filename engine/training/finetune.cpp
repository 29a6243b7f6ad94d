#include "engine/training/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/plain/error.h"
#include "engine/plain/paths.h"
#include "engine/runtime/execution.h"
#include "engine/training/adapter_file.h"
#include "engine/training/autocast.h"
#include "engine/training/checkpoint.h"
#include "engine/training/feature_cache.h"
#include "engine/training/random.h"
#include "engine/training/trained_parameters.h"

namespace hydrascope {
namespace training {
namespace {

constexpr double gradient_clip = 1.0;

struct Held {
  ImageFolder pictures;
  Features features;
  std::vector<std::int64_t> usable; // pictures that could be read
};

struct Measured {
  double loss = 0, accuracy = 0;
};

class Finetuning {
public:
  Finetuning(const FinetuneRequest& request, const TrainingObserver& observer, const std::stop_token& stop)
      : request_(request),
        observer_(observer),
        stop_(stop),
        threads_(request.execution.threads),
        bfloat16_(use_bfloat16(request.execution.dtype)),
        prepared_(prepare_model(request.model_folder, request.adapters, request.schedule, request.execution,
                                true)) {
    if (prepared_.model->info().input != InputKind::image)
      throw UsageError("--model", "finetune takes a model for images", "distill takes text models, too");
    check(request.epochs >= 1 && request.batch >= 1 && request.copies >= 1, "--epochs, --batch and --copies",
          "must be 1 or more");
    check(request.learning_rate > 0, "--learning-rate", "must be above 0");
    check(request.validation_share > 0 && request.validation_share < 1, "--validation-share",
          "must lie in 0…1");
    layers_ = layers_to_train(request.trained_layers, prepared_.schedule);
    const auto labels =
        request.labels.empty() ? std::map<std::string, std::string>{} : read_labels(request.labels);
    plan_ = plan_classes(request.classes, class_folders(request.data), prepared_.classes, labels);
    if (!plan_.note.empty()) note(plan_.note);
    train_.pictures = list_image_folder(request.data, plan_.folders, request.images_per_class);
    validation_.pictures = request.validation.empty()
                               ? split_off(train_.pictures, request.validation_share, request.execution.seed)
                               : list_image_folder(request.validation, plan_.folders, 0);
  }

  TrainingOutcome run() {
    if (!features(train_, request_.copies) || !features(validation_, 1)) return stopped();
    input_.layout = train_.features.layout;
    leaves_ = make_leaves(prepared_, layers_, request_.train_head, plan_);
    optimizer_ = std::make_unique<Optimizer>(leaves_, request_.weight_decay);
    const auto file = checkpoint_path(request_.output);
    if (request_.output.has_parent_path()) std::filesystem::create_directories(request_.output.parent_path());
    if (request_.resume)
      restore(load_checkpoint(file, configuration()));
    else
      save(file); // from here on there is always a good state on disk
    const RunnableModel model = runnable(prepared_, leaves_, plan_);
    while (state_.step < total_steps()) {
      if (!epoch(model, file)) return stopped();
      const Measured measured = validate();
      state_.best = measured.accuracy;
      last_validation_ = measured;
      report("validate", steps_per_epoch(), 0);
      final_loss_ = state_.epoch_loss / static_cast<double>(steps_per_epoch());
      if (state_.step < total_steps()) {
        state_.epoch_loss = 0;
        save(file);
      }
    }
    return finish(file);
  }

private:
  static void check(const bool ok, const char* option, const char* reason) {
    if (!ok) throw UsageError(option, reason, "see finetune --help");
  }

  bool features(Held& held, const int copies) {
    FeatureRequest wanted;
    wanted.layer = layers_.front();
    wanted.image_size = image_size();
    wanted.copies = copies;
    wanted.seed = request_.execution.seed;
    wanted.bfloat16 = bfloat16_;
    held.features = cached_features(prepared_, held.pictures, wanted, observer_, stop_);
    if (!held.features.complete) return false;
    for (std::size_t i = 0; i < held.features.usable.size(); ++i)
      if (held.features.usable[i]) held.usable.push_back(static_cast<std::int64_t>(i));
    state_.notes.insert(state_.notes.end(), held.features.notes.begin(), held.features.notes.end());
    return true;
  }

  int image_size() const {
    return request_.execution.image_size.value_or(prepared_.model->info().image_size);
  }
  std::int64_t steps_per_epoch() const {
    return (static_cast<std::int64_t>(train_.usable.size()) + request_.batch - 1) / request_.batch;
  }
  std::int64_t total_steps() const { return steps_per_epoch() * request_.epochs; }

  // What a resumed run must share with the one that was stopped.
  std::string configuration() const {
    return fmt::format(
        "finetune of {} over {}, {}, {} px, layers {}{}, {} + {} pictures of {} classes, {} copies, "
        "{} epochs, batch {}, mixup {}, seed {}, {}",
        prepared_.model->info().name, prepared_.base.substr(0, 12), prepared_.schedule.summary(),
        image_size(), fmt::join(layers_, ","), request_.train_head ? " and head" : "", train_.usable.size(),
        validation_.usable.size(), plan_.folders.size(), request_.copies, request_.epochs, request_.batch,
        request_.mixup, request_.execution.seed, bfloat16_ ? "bfloat16" : "float32");
  }

  void save(const std::filesystem::path& file) {
    state_.configuration = configuration();
    state_.parameters = leaves_;
    state_.moments = optimizer_->state();
    save_checkpoint(file, state_);
    clock_ = {};
  }

  void restore(Checkpoint checkpoint) {
    const at::NoGradGuard no_gradients;
    const std::string subject = checkpoint_path(request_.output).string();
    for (auto& [name, value] : leaves_) {
      const auto saved = checkpoint.parameters.find(name);
      if (saved == checkpoint.parameters.end() || saved->second.sizes() != value.sizes())
        throw BrokenFile(subject, "has no parameter that fits " + name, "start again without --resume");
      value.copy_(saved->second);
    }
    optimizer_->restore(checkpoint.moments, checkpoint.updates, subject);
    state_ = std::move(checkpoint);
  }

  at::Tensor label_of(const Held& held, const std::vector<std::int64_t>& pictures) const {
    std::vector<std::int64_t> labels;
    for (const std::int64_t picture : pictures)
      labels.push_back(plan_.targets[static_cast<std::size_t>(
          held.pictures.images[static_cast<std::size_t>(picture)].label)]);
    return at::tensor(labels, at::kLong);
  }

  // The loss of one batch: which pictures, which copies and what is mixed depend on the seed and the step
  // alone.
  at::Tensor batch_loss(const RunnableModel& model, const std::vector<std::int64_t>& order,
                        const std::int64_t step) {
    const std::uint64_t seed = request_.execution.seed;
    const auto begin = static_cast<std::size_t>((step % steps_per_epoch()) * request_.batch);
    const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(request_.batch));
    std::vector<std::int64_t> pictures, rows;
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t picture = train_.usable[static_cast<std::size_t>(order[i])];
      const auto copy =
          static_cast<std::int64_t>(unit(mix({seed, static_cast<std::uint64_t>(step), i})) * request_.copies);
      pictures.push_back(picture);
      rows.push_back(picture * request_.copies + copy);
    }
    at::Tensor hidden = train_.features.hidden.index_select(0, at::tensor(rows, at::kLong)).to(at::kFloat);
    const at::Tensor labels = label_of(train_, pictures);
    double share = 1;
    if (request_.mixup > 0) {
      share = symmetric_beta(request_.mixup, mix({seed, static_cast<std::uint64_t>(step), 0x6d6978}));
      hidden = hidden * share + hidden.flip(0) * (1 - share);
    }
    at::Tensor logits;
    {
      const Autocast autocast(bfloat16_);
      logits = model.logits(hidden, input_, layers_.front());
    }
    const auto loss = [&](const at::Tensor& target) {
      return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, -100, request_.label_smoothing);
    };
    return share == 1 ? loss(labels) : loss(labels) * share + loss(labels.flip(0)) * (1 - share);
  }

  // Goes on to the end of the epoch; false if it was stopped, with a checkpoint written.
  bool epoch(const RunnableModel& model, const std::filesystem::path& file) {
    const std::int64_t count = steps_per_epoch(), number = state_.step / count;
    const auto order = shuffled(static_cast<std::int64_t>(train_.usable.size()),
                                mix({request_.execution.seed, static_cast<std::uint64_t>(number)}));
    const auto begin = std::chrono::steady_clock::now();
    const std::int64_t first = state_.step;
    const std::int64_t warmup = std::max<std::int64_t>(1, total_steps() / 20);
    do {
      if (stop_.stop_requested()) {
        save(file);
        return false;
      }
      const at::Tensor loss = batch_loss(model, order, state_.step);
      const double value = loss.item<double>();
      if (!std::isfinite(value)) fail(file, "the loss is not a number");
      loss.backward();
      const double rate = warmup_cosine(request_.learning_rate, state_.step, warmup, total_steps());
      if (!std::isfinite(optimizer_->step(rate, gradient_clip))) fail(file, "the gradients are not finite");
      ++state_.step;
      ++state_.updates;
      state_.epoch_loss += value;
      state_.curve.emplace_back(state_.step, value);
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

  Measured validate() const {
    const at::NoGradGuard no_gradients;
    NamedTensors values;
    for (const auto& [name, value] : leaves_) values[name] = value.detach().clone();
    const RunnableModel model = runnable(prepared_, values, plan_);
    const Autocast autocast(bfloat16_);
    const auto count = static_cast<std::int64_t>(validation_.usable.size());
    Measured sum;
    for (std::int64_t begin = 0; begin < count; begin += request_.batch) {
      const std::int64_t end = std::min<std::int64_t>(count, begin + request_.batch);
      const std::vector<std::int64_t> pictures(validation_.usable.begin() + begin,
                                               validation_.usable.begin() + end);
      const at::Tensor hidden = validation_.features.hidden.index_select(0, at::tensor(pictures, at::kLong));
      const at::Tensor logits = model.logits(hidden.to(at::kFloat), input_, layers_.front());
      const at::Tensor labels = label_of(validation_, pictures);
      sum.loss += at::cross_entropy_loss(logits, labels).item<double>() * static_cast<double>(end - begin);
      sum.accuracy += logits.argmax(1).eq(labels).sum().item<double>();
    }
    const auto items = static_cast<double>(std::max<std::int64_t>(1, count));
    return {sum.loss / items, sum.accuracy / items};
  }

  void note(const std::string& text) {
    state_.notes.push_back(text);
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
    progress.epoch = static_cast<int>((state_.step - 1) / steps_per_epoch()) + 1;
    progress.epochs = request_.epochs;
    progress.step = step_of_epoch;
    progress.steps = steps_per_epoch();
    progress.loss = step_of_epoch > 0 ? state_.epoch_loss / static_cast<double>(step_of_epoch) : 0;
    progress.validation_loss = last_validation_.loss;
    progress.accuracy = last_validation_.accuracy;
    progress.items_per_second = rate;
    observer_(progress);
  }

  TrainingOutcome stopped() const {
    TrainingOutcome outcome;
    outcome.stopped = true;
    outcome.steps = state_.step;
    outcome.curve = state_.curve;
    outcome.notes = state_.notes;
    return outcome;
  }

  TrainingOutcome finish(const std::filesystem::path& file) {
    AdapterRecord record;
    record.role = prepared_.schedule.all_exact_softmax() ? "tail" : "schedule";
    record.base = prepared_.base;
    for (int layer = 0; layer < prepared_.model->info().layers; ++layer) {
      const KernelSpec& spec = prepared_.schedule.layers[static_cast<std::size_t>(layer)];
      const bool trained = std::ranges::find(layers_, layer) != layers_.end();
      if (trained || !kernel_info(spec.name).exact_softmax) record.layers.push_back({layer, spec});
    }
    record.image_size = image_size();
    record.tokens = train_.features.hidden.size(1);
    record.classes = plan_.classes;
    const auto named = request_.data.has_filename() ? request_.data : request_.data.parent_path();
    record.data = fmt::format("{} ({} classes, {} pictures)", named.filename().string(), plan_.folders.size(),
                              train_.usable.size());
    record.steps = state_.step;
    record.loss = final_loss_;
    record.accuracy = fmt::format("held-out top-1 {:.4f} of {} pictures", last_validation_.accuracy,
                                  validation_.usable.size());
    record.command = request_.command;
    NamedTensors trained;
    const NamedTensors moments = optimizer_->state();
    for (const auto& [name, value] : leaves_)
      if (moments.contains("first_moment." + name)) trained[name] = value; // the others are as in the base
    TrainingOutcome outcome = stopped();
    outcome.stopped = false;
    outcome.adapter = write_adapter(request_.output, trained, record);
    std::filesystem::remove(file);
    outcome.final_loss = final_loss_;
    outcome.validation_loss = last_validation_.loss;
    outcome.accuracy = last_validation_.accuracy;
    return outcome;
  }

  const FinetuneRequest& request_;
  const TrainingObserver& observer_;
  std::stop_token stop_;
  ThreadCount threads_;
  bool bfloat16_;
  PreparedModel prepared_;
  std::vector<int> layers_;
  ClassPlan plan_;
  Held train_, validation_;
  ModelInput input_;
  NamedTensors leaves_;
  std::unique_ptr<Optimizer> optimizer_;
  Checkpoint state_;
  CheckpointClock clock_;
  Measured last_validation_;
  double final_loss_ = 0;
};

} // namespace
} // namespace training

TrainingOutcome finetune(const FinetuneRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop) {
  try {
    return training::Finetuning(request, observer, stop).run();
  } catch (const c10::Error& error) {
    throw Error("finetune", error.what_without_backtrace(), "report this with the command");
  }
}

} // namespace hydrascope
