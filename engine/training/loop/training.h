// Attention distillation and fine-tuning of chosen layers. Plain header.
//
// Both write a checkpoint beside the output every minute and when stopped, and continue from it bit for bit
// on the same machine with the same number of threads: everything random is a function of the seed and the
// step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/models/model_info.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"
#include "engine/training/data/augmentation.h"
#include "engine/training/data/labelled_files.h"

namespace hydrascope {

namespace training {
class ProcessGroup;
}

// What a training measures on held-out data beside its loss.
enum class HeldOutMeasure { divergence, perplexity, accuracy, correlation };

// The result of a validation on held-out data; 0 for what does not apply.
struct HeldOut {
  HeldOutMeasure measure = HeldOutMeasure::accuracy;
  std::int64_t step = 0; // after so many steps
  double loss = 0;
  double perplexity = 0;      // next-token training: exp of the loss
  double divergence = 0;      // distillation: mean KL(softmax ‖ kernel) in nats
  double accuracy = 0;        // fine-tuning: top-1, from 0 to 1
  double constant_answer = 0; // the top-1 of always answering the commonest class
  double matthews = 0;        // two classes: Matthews' correlation, −1 … 1
  double f1 = 0;              // two classes: F1 of the second class
  double pearson = 0;         // regression, engine/measure/correlation.h, −1 … 1
  double spearman = 0;
  // Distillation: the loss of each head, layer by layer; `loss` is their mean.
  std::vector<double> head_losses = {};
};

struct TrainingProgress {
  std::string phase;                // "features", "train", "validate"
  int epoch = 0, epochs = 0;        // epoch counts from 1; 0 while features are computed
  std::int64_t step = 0, steps = 0; // of this epoch and phase
  std::int64_t total_step = 0;      // over all epochs
  double loss = 0;                  // running mean of the epoch's training loss
  double step_loss = 0;             // of this step alone
  double divergence = 0;            // distillation: this step's mean KL(softmax ‖ kernel) in nats
  HeldOut held_out;                 // the last validation
  double items_per_second = 0;
  double seconds_left = 0;       // at this rate
  std::vector<double> per_layer; // distillation: this step's mean KL of each layer, in nats
  std::vector<double> per_head;  // the same of each head, layer after layer
  std::filesystem::path live;    // the newest adapter of the current state (TrainingSettings::live_seconds)
  std::int64_t live_step = 0;    // the step after which it was written; 0: none yet
  std::string note;              // a message for the user ("skipped FILE: …"), reported once; else empty
};
// Called on the training's thread after every step; the training continues when it returns.
using TrainingObserver = std::function<void(const TrainingProgress&)>;

struct TrainingOutcome {
  AdapterInfo adapter;   // empty if stopped
  double final_loss = 0; // training loss, mean of the last epoch
  HeldOut before;        // before the first step
  HeldOut held_out;      // of the written state: the best one that was validated
  std::int64_t steps = 0;
  std::vector<std::pair<std::int64_t, double>> curve; // step, training loss
  std::vector<HeldOut> validations;                   // in order
  std::vector<std::string> notes;                     // skipped files and the like
  bool stopped = false;                               // a checkpoint was written, no adapter
};
// Of the last state, whether it was the best or not; before the training without any validation since.
inline const HeldOut& last_validation(const TrainingOutcome& outcome) {
  return outcome.validations.empty() ? outcome.before : outcome.validations.back();
}

// The most that a training accepts. More would take weeks or not fit in memory.
inline constexpr int most_copies = 1000;         // versions of each picture
inline constexpr int most_sequences = 1'000'000; // of each kind that are generated

// The settings that all trainings have.
struct TrainingSettings {
  std::filesystem::path model_folder = {};
  AdapterChoice adapters = {}; // automatic: the model's own tail, if one is bundled
  int epochs = 1;              // at most
  int batch = 8;
  int accumulate = 1; // parts in which a batch is run, one after another: less memory, the same gradients
  double learning_rate = 1e-2;
  double validation_share = 0.05; // of the items, held out
  int validate_every = 0;         // steps; 0: after every epoch only
  int patience = 0;               // stop after so many epochs without a better validation; 0: never
  ExecutionOptions execution = {};
  std::filesystem::path output = {}; // adapter file, with checkpoints in OUTPUT.checkpoint; empty: neither
  std::filesystem::path curve = {};  // CSV of every step's loss, which the caller writes; may be empty
  bool resume = false;
  double checkpoint_seconds = 60;
  double live_seconds =
      0; // > 0: interval at which the current state is written as an adapter, live_path(output)
  std::string command = {}; // for the metadata
  // Several processes that train together, each on its share of every batch; null: one process. Rank 0 alone
  // writes files.
  training::ProcessGroup* group = nullptr;
};

// OUTPUT.checkpoint and STEM.live.safetensors beside the output.
std::filesystem::path checkpoint_path(const std::filesystem::path& output);
std::filesystem::path live_path(const std::filesystem::path& output);

// Whether distillation can train the kernel's feature maps; t2r's are trained with the task only.
bool can_be_distilled(const KernelInfo& kernel);

// Plain texts are joined and cut to `most` tokens, or, with `least`, to random lengths from `least` to
// `most`. 0 and 0: a text per line.
struct ChunkLengths {
  int least = 0, most = 0;
};

// Distillation of softmax's weights into a kernel's trainable maps (Hedgehog paper, A.3; definitions in
// kernels.md). The model is frozen and teacher-forced; the loss is the soft cross-entropy between the
// kernel's weights and softmax's on the same q and k, mean over real rows, summed over heads and layers
// (reported as the mean over heads and layers, in nats).
struct DistillRequest {
  TrainingSettings settings{.epochs = 2, .patience = 1};
  KernelSpec kernel;                       // hedgehog
  std::vector<std::filesystem::path> data; // text: files with a text per line, or *.tsv; images: folders
  int column = 0;                          // of *.tsv files, from 1; 0: whole lines
  int pair_column = 0;                     // of *.tsv files, the second texts of pairs; 0: none
  bool header = false;                     // the first line of *.tsv files is skipped
  ChunkLengths chunk;                      // plain texts
  int limit = 0;                           // items of each file; 0: all
  // Versions of each training picture: itself, then random crops (training::augmented_copy); texts: 1.
  int copies = 1;
  // Whether the learning rate decays to 0 along a cosine; in the paper it is constant.
  bool cosine = false;
  // An adapter whose maps the training starts from, in place of the kernel's initial ones: of this kernel or
  // of another whose maps have the same names and shapes (hedgehog's for hedgehog-softmax); empty: none.
  std::filesystem::path start;
};

// Throws Error, UsageError (kernel without trainable maps, t2r, no data, copies of texts, maps to start from
// of another shape).
TrainingOutcome distill(const DistillRequest& request, const TrainingObserver& observer = {},
                        const std::stop_token& stop = {},
                        const std::shared_ptr<ModelStore>& models = make_model_store());

// What a fine-tuning trains for.
enum class Objective {
  by_model,       // next_token for decoders, else classification
  classification, // the class of a picture, a text or a pair of texts
  regression,     // the number that is the label of a text or a pair of texts
  next_token      // each token of running text, or of an answer, from those before it
};
Objective objective_for(Objective asked, const ModelInfo& model);

// Low-rank updates in place of whole weights (LoRA, Hu et al. 2022): W + (alpha / rank)·B·A. The Hedgehog
// paper's numbers for its large models (A.3).
struct LowRank {
  int rank = 8;
  double alpha = 16;
};

// Which parameters a fine-tuning changes.
struct TrainedParts {
  std::vector<int> layers = {}; // whole blocks
  // Of these layers the attention alone: W_q, W_k, W_v, W_o and the kernel's own parameters.
  std::vector<int> attention = {};
  bool head =
      true; // classifier, pooler and the final norm; of a decoder that norm and its own output weights
  bool embeddings = false;
};

// Fine-tuning of chosen layers and the classifier, on a labelled table of texts or on an image folder with a
// sub-folder per class. Of pictures the input of the first trained layer is computed once and cached on disk
// in float16. Regression has one output and the mean squared error of labels standardised by the mean and the
// standard deviation of the training data's; the best state is that with the highest mean of Pearson's and
// Spearman's correlation, and the adapter holds the scale, so that a model with it predicts in the labels'
// unit. Decoders learn to go on with running text, or with the answers of a table of prompts.
struct FinetuneRequest {
  TrainingSettings settings{.epochs = 5, .batch = 64, .learning_rate = 3e-4, .validation_share = 0.1};
  ScheduleChoice schedule;
  Objective objective = Objective::by_model;
  // Classification: one folder with a sub-folder per class, pictures at any depth below it, or one *.tsv.
  // Next token: texts, or tables of prompts and answers.
  std::vector<std::filesystem::path> data;
  std::filesystem::path validation; // the same, held out; empty: a share of the data
  LabelledColumns columns;          // of tables; `text` is that of prompts, too
  bool header = false;              // the first line of tables is skipped
  // Next token: the pieces of running text; of tables the greatest length of prompt and answer together.
  ChunkLengths chunk;
  int answer_column = 0;              // of tables, from 1: its tokens alone are in the loss; 0: running text
  std::string prompt_template = "{}"; // PromptTable::layout
  std::filesystem::path labels;       // TSV: sub-folder name, label; may be empty
  std::vector<std::string> classes;   // to use; empty: those the classifier knows, or all
  bool generated = false;             // the data are made from the seed: the times of their files say nothing
  // The result is a whole model, which the caller takes from the task: no adapter is written.
  bool whole_model = false;
  // Default: the layers that the schedule replaces, or the last four, and the head; of decoders those that it
  // replaces, or all.
  std::optional<TrainedParts> trained;
  // Trains of these layers only W_q, W_k, W_v and W_o, by such updates, and the kernel's own parameters.
  std::optional<LowRank> low_rank;
  int images_per_class = 0; // 0: all
  int limit = 0;            // of a table's lines; 0: all
  // Cached versions of a training picture: itself, then augmented ones. 0: no cache; every step makes a new
  // version and runs it through the frozen layers.
  int copies = 2;
  training::Augmentation augmentation;
  double warmup =
      0.05; // share of the steps over which the learning rate rises to its peak; then a cosine to 0
  double weight_decay = 0.05;
  double label_smoothing = 0.1;
  double mixup = 0.0; // α of the Beta distribution by which features of two pictures are mixed; 0: none
  // Soft distillation (DeiT, Touvron et al. 2021, Eq. 2) from the model trained with softmax (in every layer,
  // with adapters of role tail alone): the loss is (1 − α) times the labels' and α times
  // τ²·KL(teacher ‖ student) of softmax(logits / τ), in nats.
  double distillation_alpha = 0; // 0: labels alone
  double distillation_tau = 3;
  // Weight of the distance between hidden states in the loss (TinyBERT, Jiao et al. 2020, Eq. 8): the mean
  // squared difference of the outputs of the trained blocks but the last from the teacher's, each token
  // normalised to mean 0 and variance 1 (LayerNorm), without padding. It carries far more information per
  // item than logits.
  double distillation_hidden = 0;
  // Share of a training picture's patches that a step drops at random (PatchDropout, Liu et al. 2022); not
  // for kernels whose weights depend on the tokens' positions.
  double patch_dropout = 0;
};
// The settings of next-token training: without label smoothing, weight decay 0.01 (Hedgehog paper, B.5).
FinetuneRequest next_token_request();

// The execution's dtype: float32, bfloat16 or, on a GPU, float16 (autocast: matrix products in this type;
// parameters, norms and loss in float32), or auto (bfloat16 where the device multiplies it natively).

// Throws Error, UsageError (layers out of range, classes the classifier does not know, no items, options that
// the objective does not have).
TrainingOutcome finetune(const FinetuneRequest& request, const TrainingObserver& observer = {},
                         const std::stop_token& stop = {},
                         const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
