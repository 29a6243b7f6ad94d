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

// Sequences of N tokens: N/2 − 1 pairs of a key and its value, drawn with repetition under a random key →
// value map of each sequence, then a key that has occurred, then its value.
struct RecallTask {
  int keys = 20, values = 20; // tokens 0 … keys − 1 and keys … keys + values − 1
  int tokens = 128;           // N, even
  // Numbers of sequences. Validation decides the end of the training and the best state; the test is run
  // once, at the end.
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
  TrainingSettings
      settings;      // without model_folder, adapters, validation_share; the only file is OUTPUT.checkpoint
  KernelSpec kernel; // of all layers
  RecallTask task;
  RecallModelShape model;
  double weight_decay = 0;
  int warmup = 0; // steps over which the learning rate rises to its peak
  bool cosine =
      false; // from the peak the learning rate decays to 0 at the end of the last epoch; else it is constant
  bool all_values =
      false; // cross-entropy of every value whose key has occurred; else of the last token alone
};
// The settings of a preset, with the kernel `softmax`.
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
  double seconds = 0;                 // since the start or the last resumption
  std::string configuration;          // everything that determines the result, in words
  TrainingOutcome training;           // loss curve and validations; if `stopped`, nothing else is set
};

// Throws Error, UsageError (a kernel that does not take the sequences, an impossible task or model).
RecallOutcome recall(const RecallRequest& request, const TrainingObserver& observer = {},
                     const std::stop_token& stop = {});
// The outcome's `configuration`.
std::string recall_configuration(const RecallRequest& request);

} // namespace hydrascope
