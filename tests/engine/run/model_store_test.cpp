// One store for all jobs: a model is loaded once, whoever asks for it.
#include "engine/run/model_store.h"

#include <atomic>
#include <barrier>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/measure/teacher_forced.h"
#include "engine/models/transformer/model.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/runner.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/tasks/evaluate.h"
#include "tests/engine/run/read_result.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using testing::make_toy_model;
using testing::ToyFolder;

// A store of models from files that counts how often it loads one.
struct CountedStore {
  std::shared_ptr<std::atomic<int>> loads = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<ModelStore> models =
      make_model_store({[count = loads](const std::filesystem::path& folder) {
                          ++*count;
                          return load_model(folder);
                        },
                        [] { return std::vector<AdapterInfo>(); }});
};

void together(const std::vector<std::function<void()>>& jobs) {
  std::barrier begin(static_cast<std::ptrdiff_t>(jobs.size()));
  std::vector<std::jthread> threads;
  for (const auto& job : jobs)
    threads.emplace_back([&begin, &job] {
      begin.arrive_and_wait();
      job();
    });
}

TEST(ModelStore, JobsOnOneModelFromSeveralThreadsLoadItOnce) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const std::filesystem::path texts = folder / "texts.txt";
  std::ofstream(texts) << "the cat sat on a mat\n";
  const CountedStore store;
  RunRequest run;
  run.model_folder = model;
  run.input = TextInput{"the cat sat on a mat", std::nullopt};
  TeacherForcedRequest measure;
  measure.model_folder = model;
  measure.data = {texts};
  measure.kernels = parse_kernel_list("elu");
  together({[&] { EXPECT_EQ(Runner(0, store.models).run(run)->layers.size(), 2U); },
            [&] { EXPECT_EQ(Runner(0, store.models).run(run)->layers.size(), 2U); },
            [&] { EXPECT_EQ(measure_teacher_forced(measure, {}, {}, store.models).measures.size(), 1U); },
            [&] { training::prepare_model(*store.models, model, {}, {}, {}, true); }});
  EXPECT_EQ(*store.loads, 1);
}

TEST(ModelStore, GivesEveryJobTheSameModel) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const CountedStore store;
  const auto base = store.models->base(model);
  const Schedule softmax{std::vector<KernelSpec>(2)};
  EXPECT_EQ(store.models->apply(model, {}, softmax, Placement{}).model, base);
  EXPECT_EQ(training::prepare_model(*store.models, model, {}, {}, {}, false).model, base);
  const auto half = store.models->apply(model, {}, softmax, {c10::kCPU, c10::kBFloat16}).model;
  EXPECT_NE(half, base);
  EXPECT_EQ(store.models->apply(model, {}, softmax, {c10::kCPU, c10::kBFloat16}).model, half);
}

TEST(ModelStore, WhatCouldNotBeLoadedIsTriedAgain) {
  const ToyFolder folder;
  const CountedStore store;
  EXPECT_THROW(store.models->base(folder / "bert"), Error);
  const std::filesystem::path model = make_toy_model(folder, "bert");
  EXPECT_NE(store.models->base(model), nullptr);
  EXPECT_THROW(store.models->base(folder / "none"), Error);
  EXPECT_EQ(*store.loads, 3);
}

void rename_label(const std::filesystem::path& model) {
  std::string text = read_text_file(model / "config.json");
  text.replace(text.find("\"maybe\""), 7, "\"perhaps\"");
  write_file_atomically(model / "config.json", text);
}

// As where the script that has written them runs again.
TEST(ModelStore, AModelWhoseFilesHaveChangedIsLoadedAgain) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const CountedStore store;
  const Schedule softmax{std::vector<KernelSpec>(2)};
  const Placement half{c10::kCPU, c10::kBFloat16};
  const std::weak_ptr<const Model> before = store.models->base(model);
  const std::weak_ptr<const Model> placed_before = store.models->apply(model, {}, softmax, half).model;
  const auto listed_before = store.models->available(model, *before.lock());
  EXPECT_EQ(before.lock()->info().labels.at(1), "maybe");
  EXPECT_EQ(before.lock()->info().stamp, model_stamp(model));
  for (const char* other : {"notes.md", "tail.safetensors", "figure.json"})
    std::ofstream(model / other) << "not read";
  EXPECT_EQ(store.models->base(model), before.lock());

  rename_label(model);
  EXPECT_EQ(store.models->base(model)->info().labels.at(1), "perhaps");
  EXPECT_TRUE(before.expired());
  EXPECT_EQ(store.models->apply(model, {}, softmax, half).model->info().labels.at(1), "perhaps");
  EXPECT_TRUE(placed_before.expired());
  EXPECT_NE(store.models->available(model, *store.models->base(model)), listed_before);
  EXPECT_EQ(*store.loads, 2);
}

TEST(ModelStore, WhoHasReadTheBaseGoesOnWithTheSameVersion) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const CountedStore store;
  const auto base = store.models->base(model);
  rename_label(model);
  const Schedule softmax{std::vector<KernelSpec>(2)};
  EXPECT_EQ(store.models->apply(model, base, {}, softmax, Placement{}).model, base);
  EXPECT_EQ(*store.loads, 1);
  EXPECT_EQ(store.models->apply(model, {}, softmax, Placement{}).model->info().labels.at(1), "perhaps");
}

// Their hash is that of the weights.
TEST(ModelStore, OneRunnerTellsModelsWithTheSameWeightsApart) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const auto changed = [&](const char* name, const std::string& file, const auto& change) {
    std::filesystem::copy(model, folder / name);
    std::string text = read_text_file(model / file);
    change(text);
    write_file_atomically(folder / name / file, text);
    return folder / name;
  };
  const auto other_config = changed(
      "config", "config.json", [](std::string& text) { text.replace(text.find("\"gelu\""), 6, "\"relu\""); });
  const auto other_tokenizer = changed("tokenizer", "vocab.txt", [](std::string& text) {
    const std::size_t at = text.find("\ncat\n");
    text.replace(at + 1, 3, "tac");
  });
  Runner runner;
  std::vector<std::vector<float>> states;
  for (const std::filesystem::path& one : {model, other_config, other_tokenizer}) {
    RunRequest request;
    request.model_folder = one;
    request.input = TextInput{"the cat sat on a mat", std::nullopt};
    request.quantities = {HiddenStatesKey{}};
    states.push_back(test::read(*runner.run(request), HiddenStatesKey{}).back().values);
    EXPECT_EQ(states.back(), test::read(*Runner().run(request), HiddenStatesKey{}).back().values) << one;
  }
  EXPECT_NE(states[0], states[1]);
  EXPECT_NE(states[0], states[2]);
}

// Writes into the file, as an editor or a failing disk does; renaming would leave the mapped one alone.
void overwrite(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(ModelStore, AFileThatVanishesWhileItIsMappedIsAnError) {
  const ToyFolder folder;
  const std::filesystem::path model = make_toy_model(folder, "bert");
  const std::filesystem::path weights = model / "model.safetensors";
  const CountedStore store;
  Runner runner(default_cache_bytes, store.models);
  RunRequest request;
  request.model_folder = model;
  request.input = TextInput{"the cat sat on a mat", std::nullopt};
  request.execution.device = "cpu"; // elsewhere the parameters are copies
  const auto whole = Runner().run(request);

  const std::string bytes = read_text_file(weights);
  std::string message;
  try {
    runner.run(request, {},
               [&](int /*done*/, int /*total*/) { overwrite(weights, ""); }); // between two blocks
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("put the file back"), std::string::npos) << message;
  EXPECT_THROW(runner.run(request), Error); // it is still empty

  overwrite(weights, bytes);
  const auto again = runner.run(request);
  EXPECT_EQ(*store.loads, 3);
  EXPECT_EQ(again->layers.size(), whole->layers.size());
}

TEST(AdapterParts, AreReadOffTensorNames) {
  const AdapterParts tail =
      adapter_parts({"encoder.layer.10.norm1.weight", "encoder.layer.11.mlp.fc1.bias", "layernorm.weight",
                     "classifier.weight", "kernel.3.hedgehog.key_map.bias"});
  EXPECT_FALSE(tail.embeddings);
  EXPECT_THAT(tail.layers, ::testing::ElementsAre(10, 11));
  EXPECT_THAT(tail.maps.at(3), ::testing::ElementsAre("hedgehog.key_map.bias"));
  EXPECT_TRUE(adapter_parts({"embeddings.cls_token"}).embeddings);
  EXPECT_TRUE(adapter_parts({"something.unknown"}).embeddings);
}

} // namespace
} // namespace hydrascope
