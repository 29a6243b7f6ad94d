#include "engine/training/loop/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/temporary.h"
#include "engine/training/data/sampling.h"
#include "engine/training/distributed/process_group.h"
#include "engine/training/loop/step_gradients.h"

namespace hydrascope {

std::filesystem::path checkpoint_path(const std::filesystem::path& output) {
  return std::filesystem::path(output).concat(".checkpoint");
}

std::filesystem::path live_path(const std::filesystem::path& output) {
  std::filesystem::path live = output;
  return live.replace_extension(".live" + output.extension().string());
}

namespace training {
namespace {

NamedTensors copy_of(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, value] : tensors) copy[name] = value.detach().clone();
  return copy;
}

// A number that is not finite: the state on disk is better than the one that led to it.
class NotFinite : public Error {
  using Error::Error;
};

class Loop {
public:
  Loop(TrainingTask& task, const TrainingSettings& settings, const std::vector<std::string>& notes,
       const TrainingObserver& observer, const std::stop_token& stop)
      : task_(task),
        settings_(settings),
        observer_(observer),
        stop_(stop),
        group_(settings.group != nullptr && !settings.group->alone() ? settings.group : nullptr),
        file_(settings.output.empty() ? std::filesystem::path() : checkpoint_path(settings.output)),
        optimizer_(task.leaves(), task.weight_decay()),
        device_(task.leaves().begin()->second.device()),
        gradients_(task, optimizer_, group_, stop),
        checkpoint_due_(settings.checkpoint_seconds),
        live_due_(settings.live_seconds) {
    state_.notes = notes;
  }

  TrainingOutcome run() {
    if (settings_.output.has_parent_path()) create_folders(settings_.output.parent_path());
    if (group_ != nullptr) {
      const std::string way = group_->connect_devices_of(task_.leaves().begin()->second);
      if (!device_.is_cpu()) report_note(observer_, "gradients are summed by " + way);
    }
    if (settings_.resume) {
      restore(load_checkpoint(file_, task_.configuration()));
    } else {
      state_.validation_due = true;
    }
    while (!ended()) {
      if (stop_requested()) {
        save();
        return outcome(true);
      }
      try {
        if (state_.validation_due)
          validate();
        else
          step();
      } catch (const NotFinite&) {
        throw;
      } catch (const Error&) {
        // The state is that of the last whole step: the end of another process loses nothing.
        if (group_ != nullptr) save();
        throw;
      }
    }
    return finish();
  }

private:
  std::int64_t total() const { return task_.steps_per_epoch() * settings_.epochs; }
  bool ended() const {
    if (state_.validation_due) return false;
    return state_.step >= total() || (settings_.patience > 0 && state_.worse >= settings_.patience);
  }
  // The number of the last step within its epoch.
  std::int64_t step_of_epoch() const {
    const std::int64_t count = task_.steps_per_epoch();
    return state_.step == 0 ? 0 : (state_.step - 1) % count + 1;
  }

  // Several processes stop after the same step, that in which a stop of the first of them was requested.
  bool stop_requested() const {
    return group_ == nullptr ? stop_.stop_requested() : gradients_.agreed_to_stop();
  }

  void step() {
    const auto begin = std::chrono::steady_clock::now();
    const auto [shown, norms] = gradients_.compute(state_.step, state_.loss_scale);
    if (!std::isfinite(shown.front())) fail(state_.step + 1, "the loss is not a number");
    if (!std::isfinite(optimizer_.step(task_.learning_rate(state_.step, total()), task_.clip_norm(), norms)))
      fail(state_.step + 1, "the gradients are not finite");
    if (step_of_epoch() == task_.steps_per_epoch()) state_.sums.clear(); // a new epoch begins
    items_here_ += task_.items_of_step(state_.step);
    ++state_.step;
    ++steps_here_;
    state_.sums.resize(shown.size());
    for (std::size_t i = 0; i < shown.size(); ++i) state_.sums[i] += shown[i];
    state_.curve.emplace_back(state_.step, shown.front());
    seconds_here_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    report("train", shown);
    state_.validation_due =
        epoch_ends() || (settings_.validate_every > 0 && state_.step % settings_.validate_every == 0);
    if (!state_.validation_due) write_what_is_due();
  }

  bool epoch_ends() const { return step_of_epoch() == task_.steps_per_epoch(); }

  void write_what_is_due() {
    if (settings_.live_seconds > 0 && writes() && live_due_.due()) write_live();
    if (epoch_ends() ? !ended() : checkpoint_due_.due()) save();
  }

  // Validates the current state, at first the start. A stop cuts it short in a process by itself: it is then
  // still due after resumption.
  void validate() {
    HeldOut held_out = task_.validate();
    if (group_ == nullptr && stop_.stop_requested()) return;
    if (!std::isfinite(held_out.loss)) {
      if (state_.step > 0 && steps_here_ == 0) // this is what it has resumed from
        throw NotFinite(file_.string(), "the held-out loss of the state in it is not a number",
                        "start again without --resume and with a lower --learning-rate");
      if (state_.step > 0) fail(state_.step, "the held-out loss is not a number");
      throw NotFinite("the held-out loss", "is not a number before the first step",
                      "check the model's weights and the data, or use --dtype float32");
    }
    held_out.step = state_.step;
    complete(held_out);
    state_.validation_due = false;
    if (state_.step > 0) {
      record_validation(held_out, epoch_ends());
      write_what_is_due();
      return;
    }
    state_.before = state_.best = held_out; // the best so far is the start
    state_.best_parameters = copy_of(task_.leaves());
    state_.has_best = task_.start_is_result();
    report("validate", {});
    save(); // from here on there is a good state on disk
  }

  void record_validation(const HeldOut& held_out, const bool epoch_ends) {
    if (task_.keep_better(held_out, state_.best, state_.best_parameters)) state_.has_best = true;
    state_.validations.push_back(held_out);
    if (epoch_ends) {
      state_.worse = epoch_was_better() ? 0 : state_.worse + 1;
      state_.epoch_loss = state_.sums.front() / static_cast<double>(task_.steps_per_epoch());
    }
    report("validate", {});
  }

  // Whether any validation of this epoch was better than all before it.
  bool epoch_was_better() const {
    const HeldOut* best = &state_.before;
    bool better = false;
    for (const HeldOut& one : state_.validations) {
      if (!task_.is_better(one, *best)) continue;
      best = &one;
      better = one.step > state_.step - task_.steps_per_epoch();
    }
    return better;
  }

  [[noreturn]] void fail(const std::int64_t number, const char* reason) const {
    const std::string step = fmt::format("step {} of {}", number, total());
    if (file_.empty()) throw NotFinite(step, reason, "use a lower --learning-rate");
    throw NotFinite(step, fmt::format("{}; the last good state is kept in {}", reason, file_.string()),
                    "go on from it with --resume and a lower --learning-rate");
  }

  // Sets what follows from the task and the loss, which checkpoints do not hold: a perplexity may be
  // infinite.
  void complete(HeldOut& held_out) const {
    held_out.measure = task_.measure();
    if (held_out.measure == HeldOutMeasure::perplexity) held_out.perplexity = std::exp(held_out.loss);
  }

  // Whether this process writes files: rank 0, if there is an output.
  bool writes() const { return !file_.empty() && (group_ == nullptr || group_->rank() == 0); }

  void save() {
    if (!writes()) return;
    state_.configuration = task_.configuration();
    state_.parameters = task_.leaves();
    state_.moments = optimizer_.state();
    save_checkpoint(file_, state_);
    checkpoint_due_.reset(); // without the time of writing
  }

  void restore(Checkpoint checkpoint) {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, value] : task_.leaves()) {
      const auto saved = checkpoint.parameters.find(name);
      if (saved == checkpoint.parameters.end() || saved->second.sizes() != value.sizes())
        throw BrokenFile(file_.string(), "has no parameter that fits " + name,
                         "start again without --resume");
      value.copy_(saved->second);
    }
    optimizer_.restore(checkpoint.moments, checkpoint.step, file_.string());
    for (auto& [name, value] : checkpoint.best_parameters) value = value.to(device_);
    state_ = std::move(checkpoint);
    for (HeldOut* const held_out : {&state_.before, &state_.best}) complete(*held_out);
    for (HeldOut& held_out : state_.validations) complete(held_out);
  }

  // The changed parameters; one that never had a gradient is as in the base.
  NamedTensors trained() const {
    NamedTensors result;
    const NamedTensors moments = optimizer_.state();
    for (const auto& [name, value] : task_.leaves())
      if (moments.contains("first_moment." + name)) result[name] = value;
    return task_.stored(std::move(result));
  }

  void write_live() {
    const HeldOut last = state_.validations.empty() ? state_.before : state_.validations.back();
    const auto record = task_.record(state_, last);
    if (!record) return;
    write_adapter(live_path(settings_.output), trained(), *record);
    live_step_ = state_.step;
  }

  void report(const char* phase, const std::vector<double>& shown) const {
    if (!observer_) return;
    TrainingProgress progress;
    const std::int64_t count = task_.steps_per_epoch();
    progress.phase = phase;
    progress.epoch = state_.step == 0 ? 0 : static_cast<int>((state_.step - 1) / count) + 1;
    progress.epochs = settings_.epochs;
    progress.step = step_of_epoch();
    progress.steps = count;
    progress.total_step = state_.step;
    const auto done = static_cast<double>(std::max<std::int64_t>(1, progress.step));
    if (!state_.sums.empty()) progress.loss = state_.sums.front() / done;
    progress.held_out = state_.validations.empty() ? state_.before : state_.validations.back();
    if (steps_here_ > 0) {
      const double each = seconds_here_ / static_cast<double>(steps_here_);
      progress.items_per_second = static_cast<double>(items_here_) / std::max(1e-9, seconds_here_);
      progress.seconds_left = each * static_cast<double>(total() - state_.step);
    }
    if (!shown.empty()) {
      progress.step_loss = shown.front();
      task_.describe(shown, progress);
    }
    if (live_step_ > 0) progress.live = live_path(settings_.output);
    progress.live_step = live_step_;
    observer_(progress);
  }

  TrainingOutcome outcome(const bool stopped) const {
    TrainingOutcome result;
    result.stopped = stopped;
    result.steps = state_.step;
    result.final_loss = state_.epoch_loss;
    result.before = state_.before;
    result.held_out = state_.best;
    result.curve = state_.curve;
    result.validations = state_.validations;
    result.notes = state_.notes;
    return result;
  }

  TrainingOutcome finish() {
    if (!state_.has_best)
      throw Error(settings_.output.string(), "training made the held-out loss no better, nothing was written",
                  "try a lower --learning-rate or more data");
    {
      const at::NoGradGuard no_gradients;
      for (const auto& [name, value] : task_.leaves()) value.copy_(state_.best_parameters.at(name));
    }
    TrainingOutcome result = outcome(false);
    const auto record = task_.record(state_, state_.best);
    std::error_code stays; // what is left over does not make the training fail
    if (writes()) std::filesystem::remove(live_path(settings_.output), stays);
    if (record && writes()) {
      result.adapter = write_adapter(settings_.output, trained(), *record);
      std::filesystem::remove(file_, stays);
    }
    if (group_ != nullptr) group_->barrier();
    return result;
  }

  TrainingTask& task_;
  const TrainingSettings& settings_;
  const TrainingObserver& observer_;
  std::stop_token stop_;
  ProcessGroup* group_; // null with one process
  std::filesystem::path file_;
  Optimizer optimizer_;
  c10::Device device_; // of the parameters
  StepGradients gradients_;
  Checkpoint state_;
  Interval checkpoint_due_, live_due_;
  // Since the start or the last resumption.
  std::int64_t steps_here_ = 0, items_here_ = 0, live_step_ = 0;
  double seconds_here_ = 0;
};

} // namespace

void Gradients::add(const at::Tensor& part) const { (scale_ == 1 ? part : part * scale_).backward(); }

void Gradients::through(const at::Tensor& output, const at::Tensor& gradient) const {
  if (output.requires_grad()) output.backward(gradient);
}

bool TrainingTask::is_better(const HeldOut& one, const HeldOut& other) const {
  const double first = merit(one), second = merit(other);
  return first > second || (first == second && one.loss < other.loss);
}

bool TrainingTask::keep_better(const HeldOut& held_out, HeldOut& best, NamedTensors& best_parameters) const {
  if (!is_better(held_out, best)) return false;
  best = held_out;
  best_parameters = copy_of(leaves());
  return true;
}

TrainingOutcome run_training(TrainingTask& task, const TrainingSettings& settings,
                             const std::vector<std::string>& notes, const TrainingObserver& observer,
                             const std::stop_token& stop) {
  return Loop(task, settings, notes, observer, stop).run();
}

void check_settings(const TrainingSettings& settings) {
  const auto check = [](const bool ok, const char* option, const char* reason) {
    if (!ok) throw UsageError(option, reason, "see --help");
  };
  check(settings.epochs >= 1 && settings.batch >= 1, "--epochs and --batch", "must be 1 or more");
  check(settings.accumulate >= 1 && settings.accumulate <= settings.batch, "--accumulate",
        "must lie between 1 and --batch");
  check(settings.learning_rate > 0, "--learning-rate", "must be above 0");
  check(settings.validation_share > 0 && settings.validation_share < 1, "--validation-share",
        "must lie in 0…1");
  check(settings.validate_every >= 0 && settings.patience >= 0, "--validate-every and --patience",
        "must not be below 0");
}

void check_sequences(const std::initializer_list<int> counts, const char* const command) {
  for (const int count : counts)
    if (count < 1 || count > most_sequences)
      throw UsageError("--sequences", fmt::format("must lie between 1 and {} of each kind", most_sequences),
                       fmt::format("see hydrascope {} --help", command));
}

std::vector<std::int64_t> own_share(const std::vector<std::int64_t>& items, ProcessGroup* group) {
  if (group == nullptr) return items;
  const ItemRange range = share_of(static_cast<std::int64_t>(items.size()), group->rank(), group->size());
  return {items.begin() + range.first, items.begin() + range.end()};
}

std::vector<std::vector<std::int64_t>> own_parts(const std::vector<std::int64_t>& items,
                                                 const TrainingSettings& settings) {
  return cut(own_share(items, settings.group), ceil_divide(settings.batch, settings.accumulate));
}

void sum_over(ProcessGroup* group, const std::span<double> values) {
  if (group != nullptr) group->sum(values);
}

void report_note(const TrainingObserver& observer, const std::string& note) {
  if (!observer) return;
  TrainingProgress progress;
  progress.phase = "features";
  progress.note = note;
  observer(progress);
}

} // namespace training
} // namespace hydrascope
