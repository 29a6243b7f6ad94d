// The loop that every training runs: steps, validation, early stopping, checkpoints, live adapters. What is
// learnt, and from what, is a TrainingTask.
#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/loop/adapter_file.h"
#include "engine/training/loop/checkpoint.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

struct StepLoss {
  // Scalar, to be minimised. With several processes it is the part of this one's items, so that the sum over
  // processes is the loss of the global batch; undefined where it has none.
  at::Tensor loss;
  // [0] the loss as it is shown, then what describe() tells; parts that add up over processes, too.
  std::vector<double> shown;
};

// One training: its parameters, data and loss. Everything random in it is a function of the seed and the
// step.
class TrainingTask {
public:
  virtual ~TrainingTask() = default;

  virtual const NamedTensors& leaves() const = 0; // require gradients
  // What a resumed run must share with the one that was stopped, in words.
  virtual std::string configuration() const = 0;
  virtual std::int64_t steps_per_epoch() const = 0;
  virtual double learning_rate(std::int64_t step, std::int64_t total) const = 0;
  virtual double weight_decay() const { return 0; }
  virtual double clip_norm() const { return 0; } // 0: gradients are not clipped

  // Of step 0 … total−1, counted over all epochs.
  virtual StepLoss loss(std::int64_t step) = 0;
  // Of the whole held-out data: several processes measure a part each and sum.
  virtual HeldOut validate() = 0;
  virtual double merit(const HeldOut& held_out) const = 0; // higher is better
  // Of states with as many right answers the one with the lower loss is better.
  bool is_better(const HeldOut& one, const HeldOut& other) const;
  // Takes into the best state so far what is better in the leaves as they are. Returns whether anything was.
  // By default all of them or nothing.
  virtual bool keep_better(const HeldOut& held_out, HeldOut& best, NamedTensors& best_parameters) const;
  // Whether there is something to write where nothing has become better than the start.
  virtual bool start_is_result() const { return true; }
  // Fills in what the shown values of a step mean beside the loss.
  virtual void describe(const std::vector<double>& shown, TrainingProgress& progress) const = 0;
  // What an adapter holds of parameters that were trained: by default just them.
  virtual NamedTensors stored(NamedTensors trained) const { return trained; }
  // The metadata of the adapter; nothing where there is no adapter to write.
  virtual std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const = 0;
};

// Throws Error (disk full, a loss or gradients that are not finite: the last good checkpoint stays and is
// named; nothing better than the start), and what the task throws. `notes` are what preparing the data had to
// tell.
TrainingOutcome run_training(TrainingTask& task, const TrainingSettings& settings,
                             const std::vector<std::string>& notes, const TrainingObserver& observer,
                             const std::stop_token& stop);

// Throws UsageError naming the option: epochs and batch below 1, learning rate not above 0, …
void check_settings(const TrainingSettings& settings);

// The items of a batch that this process computes; all of them alone.
std::vector<std::int64_t> own_share(const std::vector<std::int64_t>& items, ProcessGroup* group);
// Value by value over the processes, in place.
void sum_over(ProcessGroup* group, std::span<double> values);

// Tells a note before the loop runs.
void tell(const TrainingObserver& observer, const std::string& note);

} // namespace hydrascope::training
