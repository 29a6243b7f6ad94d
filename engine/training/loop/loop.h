// The training loop: steps, validation, early stopping, checkpoints, live adapters. Parameters, data and loss
// are a TrainingTask's.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/attention/interface/remedies.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training.h"
#include "engine/training/loop/training_files.h"

namespace hydrascope::training {

// Where a task leaves the gradients of a step, part by part, so that the graph of a part is freed before the
// next one is made.
class Gradients {
public:
  // Gradients are those of the loss times `scale`.
  explicit Gradients(double scale) : scale_(scale) {}

  // Adds those of a part of the loss, a scalar; the parts' sum is the loss.
  void add(const at::Tensor& part) const;
  // Adds those that reach the leaves through `output`, whose own gradient is given: from the loss, or from
  // what add() has left in a detached copy of the output, which is scaled already.
  void through(const at::Tensor& output, const at::Tensor& gradient) const;

private:
  double scale_;
};

// The parameters, data and loss of one training. Everything random is a function of the seed and the step.
class TrainingTask {
public:
  virtual ~TrainingTask() = default;

  virtual const NamedTensors& leaves() const = 0; // the trained parameters; they require gradients
  // What a resumed run must have in common with the stopped one, in words.
  virtual std::string configuration() const = 0;
  virtual std::int64_t steps_per_epoch() const = 0;
  virtual std::int64_t items_of_step(std::int64_t step) = 0; // in all processes together
  virtual double learning_rate(std::int64_t step, std::int64_t total) const = 0;
  virtual double weight_decay() const { return 0; }
  virtual double clip_norm() const { return 0; } // 0: gradients are not clipped
  // Whether gradients are those of the loss times a power of two: float16 holds no number below 6e-8 (loss
  // scaling; Micikevicius et al. 2018, section 3.2).
  virtual bool scales_loss() const { return false; }

  // Adds the gradients of the loss of step 0 … total−1, counted over all epochs. Returns (S) float64, on the
  // leaves' device or the CPU: [0] the loss, then the values that describe() interprets. With several
  // processes both are of this process's items, so that the sum over processes is that of the whole batch.
  virtual at::Tensor loss(std::int64_t step, const Gradients& gradients) = 0;
  // Measures on the whole held-out data; several processes measure a part each and sum.
  virtual HeldOut validate() = 0;
  // What validate() measures; the loop stores it in the result, and a perplexity, which follows from the
  // loss.
  virtual HeldOutMeasure measure() const = 0;
  virtual double merit(const HeldOut& held_out) const = 0; // higher is better
  // By merit, and for equal merit by the loss.
  bool is_better(const HeldOut& one, const HeldOut& other) const;
  // Updates the best state with those leaves that are better, and returns whether any were. By default all
  // leaves or none.
  virtual bool keep_better(const HeldOut& held_out, HeldOut& best, NamedTensors& best_parameters) const;
  // Whether the initial state is a result to write if no later one is better.
  virtual bool start_is_result() const { return true; }
  // Sets the progress's values from those that a step shows beside the loss.
  virtual void describe(const std::vector<double>& shown, TrainingProgress& progress) const = 0;
  // The tensors that the adapter stores, made of the trained parameters; by default those.
  virtual NamedTensors stored(NamedTensors trained) const { return trained; }
  // The metadata of the adapter; nullopt if none is written.
  virtual std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const = 0;
};

// Runs the training. The checkpoint is removed when the adapter is written; where the task has none, by the
// caller when it has written its result. `notes`: messages from preparing the data. Throws Error (disk full;
// a loss, also a held-out one, or gradients that are not finite, naming the last good checkpoint, which
// stays; no state better than the initial one), and what the task throws.
TrainingOutcome run_training(TrainingTask& task, const TrainingSettings& settings,
                             const std::vector<std::string>& notes, const TrainingObserver& observer,
                             const std::stop_token& stop);

// with_remedies() for a command that trains or tests on `device`, as on the command line. `memory`: the
// remedy where that of the CPU does not suffice.
template <typename Work>
auto with_errors_of(const char* command, const std::string& device, const Work& work,
                    const char* memory = "use a smaller --batch") {
  return with_remedies({.subject = command,
                        .memory = memory,
                        .device_memory = "use a smaller --batch, or --device cpu",
                        .other = "report this with the command",
                        .device = device},
                       work);
}

// Throws UsageError naming the option for settings out of range.
void check_settings(const TrainingSettings& settings);
// The same for the numbers of generated sequences, of `command`.
void check_sequences(std::initializer_list<int> counts, const char* command);

// The items of a batch that this process computes; all of them without a group.
std::vector<std::int64_t> own_share(const std::vector<std::int64_t>& items, ProcessGroup* group);
// The same in the parts that are run one after another (TrainingSettings::accumulate).
std::vector<std::vector<std::int64_t>> own_parts(const std::vector<std::int64_t>& items,
                                                 const TrainingSettings& settings);
// Sums each value over the processes, in place.
void sum_over(ProcessGroup* group, std::span<double> values);

// Reports a note to the observer.
void report_note(const TrainingObserver& observer, const std::string& note);

} // namespace hydrascope::training
