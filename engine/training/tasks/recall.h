// Associative recall (Hedgehog paper, section 3.2 and B.1): a small decoder learns from scratch to look up,
// in a sequence of key–value pairs, the value of a key it has seen. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/training/loop/training.h"

namespace hydrascope {

// Sequences of N tokens: N/2 − 1 pairs of a key and its value, drawn with repetition under a key → value map
// that is drawn anew for each sequence, then a key that has occurred, then its value.
struct RecallTask {
  int keys = 20, values = 20; // tokens 0 … keys − 1 and keys … keys + values − 1
  int tokens = 128;           // N, even
  // Sequences. Those of the validation decide when training ends and which state is kept, those of the test
  // are looked at once, at the end.
  int training = 10'000, validation = 1'000, test = 2'000;
};

// A decoder: pre-norm blocks of causal attention and an MLP of 4·D, with rotary position embeddings of q and
// k.
struct RecallModelShape {
  int layers = 4, heads = 4, head_width = 64; // L, H, d; D = H·d
};

enum class RecallPreset {
  paper, // the paper's task and model
  small  // 20 tokens, length 64; two layers, H = 2, d = 32; the loss of all values: minutes on two cores
};

struct RecallRequest {
  TrainingSettings settings; // model_folder, adapters and validation_share mean nothing here; no adapter is
                             // written, OUTPUT.checkpoint is
  KernelSpec kernel;         // of all layers
  RecallTask task;
  RecallModelShape model;
  double weight_decay = 0;
  int warmup = 0;      // steps over which the learning rate rises to its peak
  bool cosine = false; // from there it falls to 0 at the last epoch's end, else it stays
  bool all_values =
      false; // cross-entropy on every value whose key has occurred, else on the last token alone
};
// What a preset stands for, for the kernel `softmax`.
RecallRequest recall_request(RecallPreset preset);

struct RecallOutcome {
  double accuracy = 0; // share of the test sequences whose last token is the likeliest, among all tokens
  double loss = 0;     // cross-entropy of that token in nats
  // Of the attention weights over the test sequences in nats: mean over rows, heads, layers; undefined for
  // signed kernels.
  std::optional<double> entropy;
  std::vector<double> layer_entropies;
  std::int64_t zero_denominators = 0; // rows of the test set that some layer set to 0 (Kernel::run)
  std::int64_t parameters = 0;        // trained numbers
  int epochs = 0;                     // trained
  double seconds = 0;                 // of this sitting, all in all
  std::string configuration;          // what decides the result, in words
  TrainingOutcome training;           // loss curve and validations; `stopped`: there is nothing else
};

// Throws Error, UsageError (a kernel without a causal form, a task or model that cannot be).
RecallOutcome recall(const RecallRequest& request, const TrainingObserver& observer = {},
                     const std::stop_token& stop = {});
// What recall() would put into the outcome's `configuration`.
std::string recall_configuration(const RecallRequest& request);

} // namespace hydrascope
