// Training from random weights: language models, vision transformers and the tasks of the Long Range Arena
// (Tay et al. 2021), with any kernel in any layer. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/training/data/listops.h"
#include "engine/training/loop/training.h"

namespace hydrascope {

// What is trained, and on what.
enum class ScratchTask {
  next_token, // GPT-2's architecture on running text
  listops,    // BERT's on generated expressions: ten classes
  bytes,      // BERT's on the bytes of a labelled table
  byte_pairs, // the same on pairs of texts
  pixels,     // ViT's on grey pictures, a pixel a token
  patches,    // the same on colour pictures in patches, with random crops, mirroring and colours
  pathfinder  // the same on generated pictures of two dots and dashed paths: are the dots connected?
};

struct ScratchPreset {
  const char* name;        // "gpt2-wt103"
  const char* description; // one line
  ScratchTask task;
  int layers, heads, width, intermediate;
  int tokens; // texts: at most, without [CLS] and [SEP]; of pairs of each text
  int side;   // pictures: pixels
  int patch;  // pictures: pixels of the side of a token
  int batch;
  double learning_rate, weight_decay;
  double warmup; // share of the steps
  int epochs;
};
const std::vector<ScratchPreset>& scratch_presets();
// Throws UsageError that names the presets there are.
const ScratchPreset& scratch_preset(const std::string& name);

struct ScratchRequest {
  // `output` is the model's folder, which must not exist; model_folder and adapters are not used. Checkpoints
  // go beside it.
  TrainingSettings settings;
  ScratchTask task = ScratchTask::next_token;
  ScheduleText schedule; // the kernel of each layer
  int layers = 1, heads = 1, width = 64, intermediate = 128;
  int tokens = 128, side = 32, patch = 1; // as in ScratchPreset
  std::vector<std::filesystem::path>
      data;                         // texts, a table, or a folder with a sub-folder of pictures per class
  std::filesystem::path validation; // the same, held out; empty: a share
  LabelledColumns columns;          // of tables
  bool header = false;
  int limit = 0; // of a table's lines or a text's pieces; 0: all
  // Next token: a decoder's folder, whose tokenizer the new model has; empty: one token for each byte.
  std::filesystem::path tokenizer;
  training::ListOpsCounts sequences; // generated expressions, of tokens/4 to `tokens`, or pictures
  double weight_decay = 0, warmup = 0.05;
};
// The preset's settings.
ScratchRequest scratch_request(const ScratchPreset& preset);

struct ScratchOutcome {
  std::filesystem::path folder;  // of the model
  std::filesystem::path adapter; // the kernels' trained parameters, in the folder; empty without any
  std::int64_t parameters = 0;   // trained numbers
  // Of generated data; test_constant is the accuracy of always answering the commonest class.
  std::optional<double> test_accuracy, test_constant;
  double seconds = 0;       // since the start or the last resumption
  TrainingOutcome training; // if `stopped`, there is no model
};

// Throws Error, UsageError (missing data, a folder that exists, a kernel that does not run on the task).
ScratchOutcome train_from_scratch(const ScratchRequest& request, const TrainingObserver& observer = {},
                                  const std::stop_token& stop = {});

} // namespace hydrascope
