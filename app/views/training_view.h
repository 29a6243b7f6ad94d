// The progress of a training, as figures and text. Plain header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/training/loop/options.h"

namespace hydrascope::app {

// The loss of a training and, for a distillation, the KL of each layer, by step. At most `most_points` are
// kept: neighbours are averaged.
class TrainingCurves {
public:
  static constexpr std::size_t most_points = 1024;

  // `divergences`: in nats, one per layer; another number of them begins new curves.
  void add(std::int64_t step, double loss, std::span<const double> divergences);

  const std::vector<double>& steps() const { return steps_; } // the last step of each point
  const std::vector<double>& loss() const { return loss_; }
  const std::vector<std::vector<double>>& layers() const { return layers_; }

private:
  void halve();

  std::int64_t stride_ = 1; // steps per point
  std::int64_t summed_ = 0; // steps in the sums below
  double loss_sum_ = 0;
  std::vector<double> layer_sums_;
  std::vector<double> steps_, loss_;
  std::vector<std::vector<double>> layers_;
};

enum class TrainingState { none, running, stopping, finished, stopped, failed };

// What the user has to decide before a training starts.
enum class TrainingQuestion { none, replace_output, found_checkpoint };

struct TrainingReport {
  TrainingState state = TrainingState::none;
  TrainingQuestion question = TrainingQuestion::none;
  bool paused = false;  // by the user
  bool waiting = false; // paused between two steps
  // The training that was started.
  TrainingKind kind = TrainingKind::distill;
  InputKind input = InputKind::image;
  KernelSpec kernel;
  std::string model; // name
  std::filesystem::path output;
  // Its results so far.
  TrainingProgress progress; // the newest
  TrainingCurves curves;
  std::vector<HeldOut> held_out; // by step; step 0 is before training
  std::vector<std::string> notes;
  std::string problem;     // why it failed
  TrainingOutcome outcome; // if finished or stopped
  double seconds = 0;      // from the start to the end, without the user's pauses; if finished or stopped
  // The adapters that give the model in training, in the order of application; empty before there is one.
  // After the end the last of them is the output.
  std::vector<std::filesystem::path> adapter;
  std::int64_t adapter_step = 0;

  bool active() const { return state == TrainingState::running || state == TrainingState::stopping; }
};

// "4:05" or "1:04:05".
std::string duration_text(double seconds);
// "distilling hedgehog into bert-base"
std::string training_title(const TrainingReport& report);
// "epoch 2 of 5, step 120 of 176, 31.2 items/s, 4:05 left", or the phase before the first step.
std::string training_progress_text(const TrainingReport& report);
double training_share(const TrainingReport& report); // of all steps, 0…1
// "KL from softmax 0.840 → 0.070 nats in 11 s": what a finished training has gained.
std::string training_gain_text(const TrainingReport& report);
// Empty until the training has ended.
std::string training_result_text(const TrainingReport& report);

// Loss by step, and the KL of each layer (distillation) or the held-out accuracy (fine-tuning); held-out
// numbers are points. No panels before the first step.
Figure training_figure(const TrainingReport& report);

} // namespace hydrascope::app
