#include "engine/training/tasks/from_scratch.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"
#include "engine/base/version.h"
#include "engine/models/transformer/model.h"
#include "engine/run/pass.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/data/pathfinder.h"
#include "engine/training/tasks/evaluate.h"
#include "engine/training/tasks/finetuning.h"
#include "engine/training/tasks/new_model.h"

namespace hydrascope {
namespace training {
namespace {

namespace fs = std::filesystem;

bool reads_texts(const ScratchTask task) {
  return task != ScratchTask::pixels && task != ScratchTask::patches && task != ScratchTask::pathfinder;
}

const fs::path& only_data(const ScratchRequest& request, const char* what) {
  if (request.data.size() != 1)
    throw UsageError("--data", request.data.empty() ? "is missing" : "names several where one is taken",
                     std::string("name ") + what);
  return request.data.front();
}

std::vector<std::string> labels_of_table(const ScratchRequest& request) {
  std::set<std::string> labels;
  for (const auto& file : {only_data(request, "a tab-separated table"), request.validation})
    if (!file.empty())
      for (const LabelledText& text :
           read_labelled_texts(file, request.columns, request.header, request.limit))
        labels.insert(text.label);
  return {labels.begin(), labels.end()};
}

// The data of a task, its classes and its tokenizer, which is written.
struct Material {
  FinetuneRequest request; // data, columns and the like
  NewModel model;
  fs::path test; // generated data of the same kind
};

void add_texts(const ScratchRequest& request, const fs::path& folder, Material& material) {
  if (request.data.empty()) throw UsageError("--data", "is missing", "name text files");
  FinetuneRequest& own = material.request;
  own.objective = Objective::next_token;
  own.data = request.data;
  own.validation = request.validation;
  own.chunk = {0, request.tokens};
  own.limit = request.limit;
  material.model.family = "gpt2";
  material.model.positions = request.tokens;
  if (request.tokenizer.empty()) {
    material.model.vocabulary = write_byte_tokenizer(folder);
    material.model.begin_token = material.model.end_token = 0;
    return;
  }
  const CopiedTokenizer copied = copy_tokenizer(request.tokenizer, folder);
  material.model.vocabulary = copied.vocabulary;
  material.model.begin_token = copied.begin_token;
  material.model.end_token = copied.end_token;
}

void add_listops(const ScratchRequest& request, const fs::path& folder, Material& material) {
  const ListOpsFiles files = listops_files({.least = request.tokens / 4, .most = request.tokens},
                                           request.sequences, request.settings.execution.seed);
  FinetuneRequest& own = material.request;
  own.data = {files.training};
  own.validation = files.validation;
  material.test = files.test;
  for (int digit = 0; digit < 10; ++digit) material.model.labels.push_back(std::to_string(digit));
  material.model.vocabulary = write_listops_tokenizer(folder);
}

void add_table(const ScratchRequest& request, const fs::path& folder, Material& material) {
  FinetuneRequest& own = material.request;
  own.data = {only_data(request, "a tab-separated table")};
  own.validation = request.validation;
  own.columns = request.columns;
  own.header = request.header;
  own.limit = request.limit;
  if (request.task == ScratchTask::byte_pairs && own.columns.pair == 0)
    throw UsageError("--pair-column", "is missing", "name the column of the second texts");
  if (request.task == ScratchTask::bytes) own.columns.pair = 0;
  material.model.labels = labels_of_table(request);
  material.model.vocabulary = write_byte_classifier_tokenizer(folder);
}

void add_pictures(const ScratchRequest& request, Material& material) {
  FinetuneRequest& own = material.request;
  own.data = {only_data(request, "a folder with a sub-folder of pictures per class")};
  own.validation = request.validation;
  own.images_per_class = request.limit;
  material.model.labels = class_folders(own.data.front());
}

void add_pathfinder(const ScratchRequest& request, Material& material) {
  FinetuneRequest& own = material.request;
  material.model.labels = {pathfinder_labels.begin(), pathfinder_labels.end()};
  if (!request.data.empty()) return add_pictures(request, material);
  const PathfinderFolders folders =
      pathfinder_folders({.side = request.side}, request.sequences.training, request.sequences.validation,
                         request.sequences.test, request.settings.execution.seed);
  own.data = {folders.training};
  own.validation = folders.validation;
  own.generated = true;
  material.test = folders.test;
}

Material material_of(const ScratchRequest& request, const fs::path& folder) {
  Material material;
  NewModel& model = material.model;
  model.layers = request.layers;
  model.heads = request.heads;
  model.width = request.width;
  model.intermediate = request.intermediate;
  if (reads_texts(request.task)) {
    const int texts = request.task == ScratchTask::byte_pairs ? 2 : 1;
    model.family = "bert";
    model.positions = texts * request.tokens + 1 + texts; // [CLS], and [SEP] after each text
  } else {
    model.family = "vit";
    model.side = request.side;
    model.patch = request.patch;
    model.grey = request.task != ScratchTask::patches;
  }
  switch (request.task) {
    case ScratchTask::next_token: add_texts(request, folder, material); break;
    case ScratchTask::listops: add_listops(request, folder, material); break;
    case ScratchTask::bytes:
    case ScratchTask::byte_pairs: add_table(request, folder, material); break;
    case ScratchTask::pixels:
    case ScratchTask::patches: add_pictures(request, material); break;
    case ScratchTask::pathfinder: add_pathfinder(request, material); break;
  }
  if (model.family != "gpt2" && model.labels.size() < 2)
    throw UsageError("--data", "has fewer than two classes", "name other data");
  return material;
}

// Everything is trained.
void set_up(const ScratchRequest& request, const fs::path& folder, FinetuneRequest& own) {
  own.settings = request.settings;
  own.settings.model_folder = folder;
  own.settings.adapters = {.automatic = false, .files = {}};
  own.schedule = request.schedule;
  own.trained = TrainedParts{};
  own.trained->layers.resize(static_cast<std::size_t>(request.layers));
  std::iota(own.trained->layers.begin(), own.trained->layers.end(), 0);
  own.trained->embeddings = true;
  own.whole_model = true;
  own.warmup = request.warmup;
  own.weight_decay = request.weight_decay;
  const bool augmented = request.task == ScratchTask::patches;
  own.copies = augmented ? 0 : 1; // 0: a new version in each step
  if (!augmented) own.label_smoothing = 0;
}

void check(const ScratchRequest& request) {
  const auto require = [](const bool ok, const char* option, const char* reason) {
    if (!ok) throw UsageError(option, reason, "see hydrascope train --help");
  };
  require(request.layers >= 1 && request.heads >= 1, "--layers and --heads", "must be 1 or more");
  require(request.width >= request.heads && request.intermediate >= 1, "--width and --mlp",
          "must be 1 or more, the width at least as much as the heads");
  require(request.tokens >= 4, "--chunk", "must be 4 or more");
  require(request.side >= 4 && request.side <= 1024, "--image-size", "must lie between 4 and 1,024");
  require(request.patch >= 1 && request.side % request.patch == 0, "--patch-size",
          "must be 1 or more, and divide the pixels of --image-size");
  check_sequences({request.sequences.training, request.sequences.validation, request.sequences.test},
                  "train");
  require(request.weight_decay >= 0, "--weight-decay", "must not be below 0");
  require(request.warmup >= 0 && request.warmup <= 1, "--warmup", "must lie between 0 and 1");
  parse_schedule(request.schedule, request.layers);
  if (request.settings.output.empty()) throw UsageError("--output", "is missing", "name the model's folder");
  if (fs::exists(request.settings.output))
    throw UsageError("--output " + request.settings.output.string(), "exists already",
                     "name another folder, or remove it");
  check_settings(request.settings);
}

// The kernels' trained parameters as an adapter of the new model; an empty path if they have none.
fs::path write_kernels(const ScratchRequest& request, const fs::path& folder, const FinetuneTask& task,
                       const TrainingOutcome& outcome, const std::string& hash_of_data) {
  NamedTensors maps;
  for (const auto& [name, value] : task.leaves())
    if (name.starts_with("kernel.")) maps[name] = value;
  if (maps.empty()) return {};
  AdapterRecord record;
  record.role = "schedule";
  record.base = {sha256_of_file(folder / "model.safetensors")};
  for (int layer = 0; const KernelSpec& kernel : task.prepared().schedule.layers)
    record.layers.push_back({layer++, kernel});
  record.data = "trained with the model from random weights";
  record.data_hash = hash_of_data;
  record.steps = outcome.held_out.step;
  record.loss = outcome.final_loss;
  record.command = request.settings.command;
  const fs::path file = fs::path("adapters") / "kernels.safetensors";
  write_adapter(folder / file, maps, record);
  return file;
}

ScratchOutcome train(const ScratchRequest& asked, const TrainingObserver& observer,
                     const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  ScratchRequest request = asked;
  fs::path& output = request.settings.output;
  if (!output.has_filename()) output = output.parent_path(); // "model/"
  check(request);
  if (output.has_parent_path()) create_folders(output.parent_path());
  TemporaryFolder staging(output);
  Material material = material_of(request, staging.path());
  write_new_model(staging.path(), material.model, request.settings.execution.seed);
  set_up(request, staging.path(), material.request);

  const auto models = make_model_store();
  const auto task = make_finetuning(material.request, observer, stop, *models);
  ScratchOutcome result;
  result.training.stopped = task->stopped();
  for (const auto& note : task->notes()) report_note(observer, note);
  if (!task->stopped())
    result.training = run_training(*task, material.request.settings, task->notes(), observer, stop);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (result.training.stopped) return result;

  const Model& model = *task->prepared().model;
  TensorMap parameters;
  for (const std::string& name : model.parameter_names()) parameters[name] = model.parameter(name);
  for (const auto& [name, value] : task->leaves()) {
    result.parameters += value.numel();
    if (!name.starts_with("kernel.")) parameters[name] = value;
  }
  const std::string hash_of_data = data_hash(material.request.data);
  write_weights(staging.path(), material.model.family, parameters,
                {{"program", fmt::format("hydrascope {}", version)}, {"data_hash", hash_of_data}});
  const fs::path kernels = write_kernels(request, staging.path(), *task, result.training, hash_of_data);
  staging.commit();
  std::error_code stays;
  std::filesystem::remove(checkpoint_path(output), stays);
  result.folder = output;
  if (!kernels.empty()) result.adapter = output / kernels;
  if (!material.test.empty()) {
    EvaluateRequest test;
    test.model_folder = output;
    test.schedule = material.request.schedule;
    test.data = material.test;
    test.execution = request.settings.execution;
    test.execution.dtype = "float32";
    const EvaluateOutcome tested = evaluate(test, {}, stop);
    result.test_accuracy = tested.top1;
    result.test_constant = tested.constant_answer;
  }
  return result;
}

} // namespace
} // namespace training

const std::vector<ScratchPreset>& scratch_presets() {
  using enum ScratchTask;
  // Shapes and settings: Zhang et al. (2024), B.4, for GPT-2; Touvron et al. (2021), table 9, for DeiT-B,
  // with fewer augmentations; the configurations of the Long Range Arena, with warm-up and cosine in place of
  // the inverse root, whose peaks are 1.6e-3 (ListOps) and 5.6e-4 (texts).
  static const std::vector<ScratchPreset> presets{
      {"gpt2-wt103", "GPT-2 (125M) on running text, as on WikiText-103", next_token, 12, 12, 768, 3072, 1024,
       0, 1, 8, 6e-4, 0.01, 0.02, 5},
      {"deit-b", "DeiT-B on a folder of classes, patches of augmented pictures", patches, 12, 12, 768, 3072,
       4, 224, 16, 1024, 1e-3, 0.05, 5.0 / 300, 300},
      {"lra-listops", "ListOps: the value of nested MIN, MAX, MED and SM", listops, 6, 8, 512, 2048, 2000, 0,
       1, 32, 5e-4, 0.1, 0.2, 2},
      {"lra-image", "grey pictures of a folder of classes, a pixel a token", pixels, 1, 1, 32, 64, 4, 32, 1,
       256, 5e-4, 0, 0.005, 200},
      {"lra-text", "the bytes of a labelled table of texts", bytes, 4, 4, 256, 1024, 4000, 0, 1, 32, 5e-4,
       0.1, 0.4, 25},
      {"lra-retrieval", "the bytes of a labelled table of pairs of texts", byte_pairs, 4, 4, 128, 512, 4000,
       0, 1, 32, 5e-4, 0.1, 0.4, 1},
      {"lra-pathfinder", "whether a dashed path connects two dots", pathfinder, 1, 4, 128, 128, 4, 32, 1, 512,
       1e-3, 0, 0.005, 200}};
  return presets;
}

const ScratchPreset& scratch_preset(const std::string& name) {
  const auto& presets = scratch_presets();
  const auto found = std::ranges::find_if(presets, [&](const auto& preset) { return preset.name == name; });
  if (found != presets.end()) return *found;
  std::vector<std::string> names;
  for (const ScratchPreset& preset : presets) names.emplace_back(preset.name);
  throw UsageError("--preset " + name, "is none of them", fmt::format("use {}", fmt::join(names, ", ")));
}

ScratchRequest scratch_request(const ScratchPreset& preset) {
  ScratchRequest request;
  request.task = preset.task;
  request.layers = preset.layers;
  request.heads = preset.heads;
  request.width = preset.width;
  request.intermediate = preset.intermediate;
  request.tokens = preset.tokens;
  request.side = preset.side > 0 ? preset.side : request.side;
  request.patch = preset.patch;
  request.settings.batch = preset.batch;
  request.settings.learning_rate = preset.learning_rate;
  request.settings.epochs = preset.epochs;
  request.settings.validation_share = 0.1;
  request.weight_decay = preset.weight_decay;
  request.warmup = preset.warmup;
  if (preset.task == ScratchTask::pathfinder) request.sequences = {160'000, 20'000, 20'000};
  return request;
}

ScratchOutcome train_from_scratch(const ScratchRequest& request, const TrainingObserver& observer,
                                  const std::stop_token& stop) {
  return training::with_errors_of("train", request.settings.execution.device,
                                  [&] { return training::train(request, observer, stop); });
}

} // namespace hydrascope
