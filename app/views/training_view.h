// How far a training is, and that as it is drawn and told. Plain header.
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

// A training's loss and, of a distillation, the KL of each layer, by step. However many steps there are, no
// more than `most_points` are kept: neighbours are averaged.
class TrainingCurves {
public:
  static constexpr std::size_t most_points = 1024;

  // `divergences`: of each layer, in nats; as many every time.
  void add(std::int64_t step, double loss, std::span<const double> divergences);

  const std::vector<double>& steps() const { return steps_; } // the last of those averaged
  const std::vector<double>& loss() const { return loss_; }
  const std::vector<std::vector<double>>& layers() const { return layers_; }

private:
  void halve();

  std::int64_t stride_ = 1; // steps a point
  std::int64_t summed_ = 0; // steps in the sums that are no point yet
  double loss_sum_ = 0;
  std::vector<double> layer_sums_;
  std::vector<double> steps_, loss_;
  std::vector<std::vector<double>> layers_;
};

enum class TrainingState { none, running, stopping, finished, stopped, failed };

// What has to be decided before a training starts.
enum class TrainingQuestion { none, replace_output, found_checkpoint };

struct TrainingReport {
  TrainingState state = TrainingState::none;
  TrainingQuestion question = TrainingQuestion::none;
  bool paused = false;  // by the user
  bool waiting = false; // between two steps: none passes before it goes on
  // What was started.
  TrainingKind kind = TrainingKind::distill;
  InputKind input = InputKind::image;
  KernelSpec kernel;
  std::string model; // its name
  std::filesystem::path output;
  // What has come of it.
  TrainingProgress progress; // the newest
  TrainingCurves curves;
  std::vector<HeldOut> held_out; // in order; of step 0, if it is there, before training
  std::vector<std::string> notes;
  std::string problem;     // why it failed
  TrainingOutcome outcome; // finished and stopped
  // The files that give the model in training, in order of application; empty before there is one. Once it
  // has finished the last of them is the output.
  std::vector<std::filesystem::path> adapter;
  std::int64_t adapter_step = 0;

  bool active() const { return state == TrainingState::running || state == TrainingState::stopping; }
};

// "4:05" or "1:04:05".
std::string duration_text(double seconds);
// "distilling hedgehog into bert-base"
std::string training_title(const TrainingReport& report);
// "epoch 2 of 5, step 120 of 176, 31.2 items/s, 4:05 left"; while it is not between two steps, what it does.
std::string training_progress_text(const TrainingReport& report);
double training_share(const TrainingReport& report); // of all steps, 0…1
// What came of it; empty as long as it is under way.
std::string training_result_text(const TrainingReport& report);

// Loss by step beside the KL of each layer (distillation) or the held-out accuracy (fine-tuning); held-out
// numbers are points. No panels before the first step.
Figure training_figure(const TrainingReport& report);

} // namespace hydrascope::app
