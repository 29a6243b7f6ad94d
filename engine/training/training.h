// Training inside the program: attention distillation and fine-tuning of chosen layers. Plain header.
//
// Both write a checkpoint beside the output every minute and when stopped, and go on from it bit for bit when
// resumed on the same machine with the same number of threads: whatever is random is a function of the seed
// and the step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/attention/schedule.h"
#include "engine/models/model_info.h"
#include "engine/runtime/run.h"

namespace hydrascope {

struct TrainingProgress {
  std::string phase;                // "features", "train", "validate"
  int epoch = 0, epochs = 0;        // epoch counts from 1; 0 while features are computed
  std::int64_t step = 0, steps = 0; // of this epoch and phase
  double loss = 0;                  // running mean of the epoch's training loss
  double validation_loss = 0;       // of the last validation; 0 before it
  double accuracy = 0;              // held-out top-1 (fine-tuning), from 0 to 1; 0 before it
  double divergence = 0;            // held-out KL(softmax ‖ kernel) in nats (distillation); 0 before it
  double items_per_second = 0;
  std::vector<double> per_layer; // distillation: running mean of the loss per layer
  std::string note; // something the user should know, told once ("skipped FILE: …"); else empty
};
using TrainingObserver = std::function<void(const TrainingProgress&)>;

struct TrainingOutcome {
  AdapterInfo adapter;           // empty if stopped
  double final_loss = 0;         // distillation: held-out; fine-tuning: training loss of the last epoch
  double validation_loss = 0;    // held-out
  double accuracy = 0;           // held-out top-1, from 0 to 1
  double divergence = 0;         // held-out KL(softmax ‖ kernel) in nats (distillation)
  double initial_divergence = 0; // the same before training
  std::int64_t steps = 0;
  std::vector<std::pair<std::int64_t, double>> curve; // step, training loss
  std::vector<std::string> notes;                     // skipped files and the like
  bool stopped = false;                               // a checkpoint was written, no adapter
};

// Distillation of softmax weights into a kernel's trainable maps (Hedgehog paper, A.3; definitions in
// kernels.md): model frozen, teacher-forced, soft cross-entropy between the kernel's weights and softmax's on
// the same q, k, mean over real rows, summed over heads and layers (what is reported is the mean over heads
// and layers, in nats).
struct DistillRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters; // automatic: the model's own tail, if one is bundled
  KernelSpec kernel;      // hedgehog
  std::vector<std::filesystem::path>
      data;            // text: a text a line, or column `column` of a *.tsv; images: folders
  int column = 0;      // of *.tsv files, from 1; 0: whole lines
  bool header = false; // the first line of *.tsv files is skipped
  int chunk = 0;       // text: lines joined and cut to this many tokens; 0: a line each
  int limit = 0;       // items of each file; 0: all
  int epochs = 2;
  int batch = 8;
  double learning_rate = 1e-2;
  double validation_share = 0.05;
  ExecutionOptions execution;   // device auto or cpu
  std::filesystem::path output; // adapter file; checkpoints go beside it as OUTPUT.checkpoint
  bool resume = false;
  std::string command; // for the metadata
};

// Throws Error, UsageError (kernel without trainable maps, t2r, no data).
TrainingOutcome distill(const DistillRequest& request, const TrainingObserver& observer = {},
                        const std::stop_token& stop = {});

// Fine-tuning of chosen layers and the classifier on an image folder (a class per sub-folder). What enters
// the first trained layer is computed once and cached on disk in float16.
struct FinetuneRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters; // automatic: the model's own tail, if one is bundled
  ScheduleText schedule;
  std::filesystem::path data;       // a sub-folder per class, PNG or JPEG at any depth below it
  std::filesystem::path validation; // the same, held out; empty: `validation_share` of the data
  std::filesystem::path labels;     // TSV: sub-folder name, label; may be empty
  std::vector<std::string> classes; // sub-folders to use; empty: those the classifier knows, or all
  std::vector<int> trained_layers;  // empty: those the schedule replaces, or the last four
  bool train_head = true;           // classifier and the final LayerNorm
  int images_per_class = 0;         // 0: all
  int copies =
      2; // cached versions of a training image: the picture itself, then random crops, every other mirrored
  int epochs = 5;
  int batch = 64;
  double learning_rate = 3e-4; // peak; linear warm-up over the first twentieth, then a cosine to zero
  double weight_decay = 0.05;
  double label_smoothing = 0.1;
  double mixup = 0.0; // α of the Beta distribution by which cached features of two images are mixed; 0: none
  double validation_share = 0.1;
  // device auto or cpu; dtype float32, bfloat16 (autocast: matrix products in bfloat16, parameters, norms and
  // loss in float32) or auto (bfloat16 where the CPU multiplies it natively).
  ExecutionOptions execution;
  std::filesystem::path output; // adapter file; checkpoints go beside it as OUTPUT.checkpoint
  bool resume = false;
  std::string command; // for the metadata
};

// Throws Error, UsageError (layers out of range, classes the classifier does not know, no images).
TrainingOutcome finetune(const FinetuneRequest& request, const TrainingObserver& observer = {},
                         const std::stop_token& stop = {});

} // namespace hydrascope
