// What a model folder can get wrong, and what published checkpoints look like.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "engine/attention/own/allocation_limit.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/linear.h"
#include "engine/models/transformer/model.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

namespace fs = std::filesystem;

class LoadingModels : public testing::Test {
protected:
  explicit LoadingModels(const char* model = "bert") : folder_(scratch_.path() / "model") {
    copy_model(model, folder_);
  }

  void set(const std::string& key, const nlohmann::json& value) const {
    auto config = nlohmann::json::parse(read_text_file(folder_ / "config.json"));
    if (value.is_discarded())
      config.erase(key);
    else
      config[key] = value;
    write_file_atomically(folder_ / "config.json", config.dump());
  }
  template <typename E>
  std::string refusal() const {
    return message_of<E>([&] { load_model(folder_); });
  }
  void expect_refused(const std::string& key, const nlohmann::json& value) const {
    const std::string before = read_text_file(folder_ / "config.json");
    set(key, value);
    const std::string message = refusal<Error>();
    EXPECT_NE(message.find(key), std::string::npos) << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    write_file_atomically(folder_ / "config.json", before);
  }
  // The checkpoint once more, with a change.
  void rewrite(const std::function<void(std::map<std::string, TensorView>&)>& change) const {
    const fs::path file = folder_ / "model.safetensors";
    const SafetensorsFile opened = SafetensorsFile::open(file);
    auto tensors = opened.tensors();
    change(tensors);
    write_safetensors(file, tensors);
  }

  ScratchFolder scratch_;
  fs::path folder_;
};

// GPT-2's weights are transposed, which takes memory.
TEST(LoadingAModel, ThatMemoryDoesNotHoldBlamesNoFile) {
  const AllocationLimit limit(1);
  EXPECT_THROW(load_model(golden_folder() / "decoders/gpt2"), c10::OutOfMemoryError);
}

TEST_F(LoadingModels, AbsurdConfigurationsAreRefused) {
  for (const char* key : {"num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size",
                          "vocab_size", "max_position_embeddings"})
    for (const nlohmann::json& value : {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(1'000'000'000),
                                        nlohmann::json(1e300), nlohmann::json("many"), nlohmann::json(2.5)})
      expect_refused(key, value);
  expect_refused("num_attention_heads", 5); // does not divide 24
  expect_refused("layer_norm_eps", -1);
  expect_refused("hidden_act", "tanhshrink");
  expect_refused("position_embedding_type", "relative_key");
  expect_refused("is_decoder", true);
  expect_refused("id2label", {{"0", "a"}, {"7", "b"}});
}

TEST_F(LoadingModels, ForeignAndBrokenConfigurationsAreToldApart) {
  set("model_type", "mamba");
  EXPECT_NE(refusal<ForeignFile>().find("mamba"), std::string::npos);
  set("model_type", nlohmann::json(nlohmann::json::value_t::discarded));
  EXPECT_NE(refusal<ForeignFile>().find("model_type"), std::string::npos);
  write_file_atomically(folder_ / "config.json", "{\"model_type\":");
  refusal<BrokenFile>();
  write_file_atomically(folder_ / "config.json", "[]");
  refusal<BrokenFile>();
  fs::remove(folder_ / "config.json");
  EXPECT_NE(refusal<Error>().find("config.json"), std::string::npos);
}

TEST_F(LoadingModels, ConfigurationsThatDoNotFitTheWeightsNameTensorsAndShapes) {
  set("hidden_size", 48);
  const std::string wrong = refusal<BrokenFile>();
  EXPECT_NE(wrong.find("instead of"), std::string::npos) << wrong;
  set("hidden_size", 24);
  set("num_hidden_layers", 3);
  const std::string missing = refusal<BrokenFile>();
  EXPECT_NE(missing.find("encoder.layer.2."), std::string::npos) << missing;
  set("num_hidden_layers", 1);
  const auto model = load_model(folder_); // fewer layers: runs, and says what it left
  ASSERT_EQ(model->info().notes.size(), 1U);
  EXPECT_NE(model->info().notes[0].find("encoder.layer.1."), std::string::npos);
}

TEST_F(LoadingModels, MissingTensorsAreNamed) {
  rewrite([](auto& tensors) { tensors.erase("bert.encoder.layer.1.output.dense.weight"); });
  const std::string message = refusal<BrokenFile>();
  EXPECT_NE(message.find("encoder.layer.1.output.dense.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("lacks 1 tensor "), std::string::npos) << message;
}

// What such a tensor does would be missing from every number without a word.
TEST_F(LoadingModels, PartsOfABlockThatAreNotComputedAreRefused) {
  const std::vector<float> ones(24, 1);
  const auto add = [&](const std::string& name) {
    rewrite([&](auto& tensors) { tensors[name] = {ElementType::f32, {24}, std::as_bytes(std::span(ones))}; });
  };
  add("bert.encoder.layer.2.output.scale"); // of a block that does not run
  EXPECT_EQ(load_model(folder_)->info().notes.size(), 1U);
  add("bert.encoder.layer.1.output.scale");
  const std::string message = refusal<ForeignFile>();
  EXPECT_NE(message.find("encoder.layer.1.output.scale"), std::string::npos) << message;
  EXPECT_EQ(message.find("encoder.layer.2."), std::string::npos) << message;
}

TEST(LoadingDecoders, BuffersOfABlockMayBeStored) {
  const ScratchFolder scratch;
  const std::vector<float> ones(48 * 48, 1);
  const auto all = std::as_bytes(std::span(ones));
  const auto notes_with = [&](const char* model, const std::map<std::string, TensorView>& more) {
    const fs::path folder = scratch.path() / model;
    fs::copy(golden_folder() / "decoders" / model, folder, fs::copy_options::recursive);
    const SafetensorsFile opened = SafetensorsFile::open(folder / "model.safetensors");
    auto tensors = opened.tensors();
    tensors.insert(more.begin(), more.end());
    write_safetensors(folder / "model.safetensors", tensors);
    return load_model(folder)->info().notes;
  };
  EXPECT_TRUE(notes_with("gpt2", {{"transformer.h.0.attn.bias", {ElementType::f32, {1, 1, 48, 48}, all}},
                                  {"transformer.h.0.attn.masked_bias",
                                   {ElementType::f32, {}, all.first(sizeof(float))}}})
                  .empty());
  EXPECT_TRUE(notes_with("mistral", {{"model.layers.1.self_attn.rotary_emb.inv_freq",
                                      {ElementType::f32, {4}, all.first(4 * sizeof(float))}}})
                  .empty());
}

class LoadingTimm : public LoadingModels {
protected:
  LoadingTimm() : LoadingModels("timm-deit3") {}
};

TEST_F(LoadingTimm, LayerScaleIsNeededInEveryBlock) {
  EXPECT_TRUE(load_model(folder_)->info().notes.empty());
  rewrite([](auto& tensors) { tensors.erase("blocks.1.ls2.gamma"); });
  EXPECT_NE(refusal<BrokenFile>().find("encoder.layer.1.layer_scale2"), std::string::npos);
}

TEST_F(LoadingTimm, WhatStandsBeforeTheBlocksIsNotLeftOut) {
  const std::vector<float> ones(96, 1);
  const auto all = std::as_bytes(std::span(ones));
  const std::map<std::string, TensorView> parts{
      {"reg_token", {ElementType::f32, {1, 4, 24}, all}},
      {"norm_pre.weight", {ElementType::f32, {24}, all.first(24 * sizeof(float))}}};
  for (const auto& part : parts) {
    rewrite([&](auto& tensors) { tensors.insert(part); });
    EXPECT_NE(refusal<ForeignFile>().find(part.first), std::string::npos);
    rewrite([&](auto& tensors) { tensors.erase(part.first); });
  }
}

TEST_F(LoadingTimm, ArchitecturesSayWhatTheConfigurationLeavesOut) {
  const auto drop_biases = [](auto& tensors) {
    for (const char* block : {"0", "1"}) tensors.erase(std::string("blocks.") + block + ".attn.qkv.bias");
  };
  rewrite(drop_biases);
  EXPECT_NE(refusal<BrokenFile>().find("query.bias"), std::string::npos);
  set("architecture", "vit_base_patch16_224_miil");
  EXPECT_NO_THROW(load_model(folder_));
  set("architecture", "deit3_medium_patch16_224");
  set("model_args", {{"img_size", 12}, {"patch_size", 4}, {"embed_dim", 24}});
  EXPECT_EQ(read_config(folder_).heads, 8);
  EXPECT_EQ(read_config(folder_).layers, 12);
}

TEST_F(LoadingModels, IntegersAreNoWeights) {
  const std::vector<std::int64_t> zeros(24, 0);
  rewrite([&](auto& tensors) {
    tensors["bert.embeddings.LayerNorm.weight"] = {ElementType::i64, {24}, std::as_bytes(std::span(zeros))};
  });
  EXPECT_NE(refusal<BrokenFile>().find("floating-point"), std::string::npos);
}

TEST_F(LoadingModels, TruncatedForeignAndMissingWeights) {
  const fs::path file = folder_ / "model.safetensors";
  const std::string whole = read_text_file(file);
  write_file_atomically(file, std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_NE(refusal<BrokenFile>().find("model.safetensors"), std::string::npos);
  write_file_atomically(file, "PK\x03\x04 this is an archive of another program");
  refusal<ForeignFile>();
  fs::remove(file);
  EXPECT_NE(refusal<Error>().find("model.safetensors"), std::string::npos);
  write_file_atomically(folder_ / "pytorch_model.bin", "x");
  EXPECT_NE(refusal<Error>().find("pytorch_model.bin"), std::string::npos);
}

TEST_F(LoadingModels, ShardsAreReadThroughTheirIndex) {
  const fs::path file = folder_ / "model.safetensors";
  nlohmann::json map;
  {
    const SafetensorsFile opened = SafetensorsFile::open(file);
    std::map<std::string, TensorView> first;
    std::map<std::string, TensorView> second;
    for (const auto& [name, view] : opened.tensors()) {
      const bool early = name.find("layer.0") != std::string::npos;
      (early ? first : second)[name] = view;
      map[name] = early ? "a.safetensors" : "b.safetensors";
    }
    write_safetensors(folder_ / "a.safetensors", first);
    write_safetensors(folder_ / "b.safetensors", second);
  }
  fs::remove(file);
  const fs::path index = folder_ / "model.safetensors.index.json";
  write_file_atomically(index, nlohmann::json{{"weight_map", map}}.dump());
  const auto model = load_model(folder_);
  EXPECT_EQ(model->hash().size(), 64U);
  const auto expected = read_tensors(golden_folder() / "models" / "bert" / "expected.safetensors");
  ModelInput input;
  input.token_ids = expected.at("input_ids");
  input.token_types = expected.at("token_type_ids");
  compare_run(model, input, expected);

  auto wrong = map;
  wrong["bert.absent"] = "a.safetensors";
  write_file_atomically(index, nlohmann::json{{"weight_map", wrong}}.dump());
  EXPECT_NE(refusal<BrokenFile>().find("bert.absent"), std::string::npos);
  wrong["bert.absent"] = "../a.safetensors";
  write_file_atomically(index, nlohmann::json{{"weight_map", wrong}}.dump());
  EXPECT_NE(refusal<BrokenFile>().find("not a file name"), std::string::npos);
  write_file_atomically(index, nlohmann::json{{"weight_map", map}}.dump());
  fs::remove(folder_ / "b.safetensors");
  EXPECT_NE(refusal<Error>().find("b.safetensors"), std::string::npos);
  fs::copy_file(golden_folder() / "models/bert/model.safetensors", folder_ / "b.safetensors");
  EXPECT_NE(refusal<BrokenFile>().find("b.safetensors: holds 'bert.encoder.layer.0."), std::string::npos);
}

TEST_F(LoadingModels, LinksThatLeadNowhereAreRefused) {
  for (const std::string name : {"model.safetensors", "config.json"}) {
    const fs::path file = folder_ / name, aside = folder_ / "aside";
    fs::rename(file, aside);
    for (const std::string& target : {std::string("../blobs/absent"), name}) { // the second one to itself
      fs::create_symlink(target, file);
      const std::string start = file.string() + ": is a link to " + target + ", which leads nowhere; ";
      EXPECT_EQ(refusal<Error>().substr(0, start.size()), start);
      fs::remove(file);
    }
    fs::rename(aside, file);
  }
}

TEST_F(LoadingModels, WhatPublishedCheckpointsLeaveOutMayBeMissing) {
  set("architectures", nlohmann::json::array({"BertModel"}));
  rewrite([](auto& tensors) {
    for (const char* name :
         {"classifier.weight", "classifier.bias", "bert.pooler.dense.weight", "bert.pooler.dense.bias"})
      tensors.erase(name);
  });
  const auto model = load_model(folder_);
  EXPECT_FALSE(model->info().has_classifier);
  EXPECT_TRUE(model->info().notes.empty());
}

// They have the names of a sequence's classifier, whose probabilities would mean nothing.
TEST_F(LoadingModels, ClassifiersOfTokensAndChoicesAreLeftOut) {
  for (const char* architecture : {"BertForTokenClassification", "BertForMultipleChoice"}) {
    set("architectures", nlohmann::json::array({architecture}));
    EXPECT_FALSE(read_model_info(folder_).has_classifier) << architecture;
    const auto model = load_model(folder_);
    EXPECT_FALSE(model->info().has_classifier) << architecture;
    ASSERT_EQ(model->info().notes.size(), 1U) << architecture;
    EXPECT_NE(model->info().notes[0].find("classifier.weight"), std::string::npos) << model->info().notes[0];
  }
}

TEST_F(LoadingModels, HashIsThatOfTheFile) {
  EXPECT_EQ(load_model(folder_)->hash(), sha256_of_file(folder_ / "model.safetensors"));
}

TEST_F(LoadingModels, LabelsAreNumberedWithoutNames) {
  set("id2label", nlohmann::json(nlohmann::json::value_t::discarded));
  EXPECT_EQ(load_model(folder_)->info().labels, (std::vector<std::string>{"class 0", "class 1", "class 2"}));
}

TEST_F(LoadingModels, LabelsMayBeIndependent) {
  EXPECT_FALSE(load_model(folder_)->info().independent_labels);
  set("problem_type", "single_label_classification");
  EXPECT_FALSE(load_model(folder_)->info().independent_labels);
  set("problem_type", "multi_label_classification");
  EXPECT_TRUE(read_model_info(folder_).independent_labels);
  const auto model = load_model(folder_);
  EXPECT_TRUE(model->info().independent_labels);
  EXPECT_TRUE(model->with_parameters({})->info().independent_labels);
  // What is trained here are classes.
  EXPECT_FALSE(model->with_parameters({}, {"a", "b", "c"})->info().independent_labels);
}

TEST_F(LoadingModels, AVocabularyThatDoesNotFitIsRefusedWithTheText) {
  const std::string vocabulary = read_text_file(folder_ / "vocab.txt");
  write_file_atomically(folder_ / "vocab.txt", vocabulary + "extra\n");
  const auto model = load_model(folder_);
  EXPECT_THROW(model->prepare_text("cat"), BrokenFile);
  fs::remove(folder_ / "vocab.txt");
  EXPECT_THROW(load_model(folder_)->prepare_text("cat"), Error);
}

TEST(CanonicalNames, PrefixesAndOldNames) {
  EXPECT_EQ(canonical_name("bert.embeddings.LayerNorm.gamma"), "embeddings.LayerNorm.weight");
  EXPECT_EQ(canonical_name("encoder.layer.0.output.LayerNorm.beta"), "encoder.layer.0.output.LayerNorm.bias");
  EXPECT_EQ(canonical_name("dinov2.layernorm.weight"), "layernorm.weight");
  EXPECT_EQ(canonical_name("classifier.weight"), "classifier.weight");
}

TEST(TensorOf, CopiesWhatIsNotAligned) {
  const ScratchFolder scratch;
  // One byte before the float moves it off its boundary.
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  const float value = 1.5F;
  bytes += header + std::string(1, '\x07') + std::string(reinterpret_cast<const char*>(&value), 4);
  scratch.write("odd.safetensors", bytes);
  const auto tensors = read_tensors(scratch.path() / "odd.safetensors");
  EXPECT_EQ(tensors.at("b").item<float>(), 1.5F);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors.at("b").const_data_ptr()) % 4, 0U);
}

// Pages of the tensor that the process has in memory, by the kernel's page map (bit 63: present).
std::int64_t resident_pages(const at::Tensor& tensor) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) / page;
  std::ifstream map("/proc/self/pagemap", std::ios::binary);
  map.seekg(static_cast<std::streamoff>(first * sizeof(std::uint64_t)));
  std::vector<std::uint64_t> entries(tensor.nbytes() / page);
  map.read(reinterpret_cast<char*>(entries.data()),
           static_cast<std::streamsize>(entries.size() * sizeof(std::uint64_t)));
  EXPECT_TRUE(map.good());
  return std::ranges::count_if(entries, [](const std::uint64_t entry) { return (entry >> 63U) != 0; });
}

TEST(TensorOf, ReleasedPagesAreReadAgain) {
  const ScratchFolder scratch;
  const std::vector<float> values(1U << 20U, 1.5F);
  const fs::path file = scratch.path() / "large.safetensors";
  write_safetensors(file, {{"a", {ElementType::f32, {1 << 20}, std::as_bytes(std::span(values))}}});
  const at::Tensor mapped = read_tensors(file).at("a");
  const double sum = 1.5 * static_cast<double>(values.size());
  EXPECT_EQ(mapped.sum().item<double>(), sum);
  EXPECT_GT(resident_pages(mapped), 1000); // of 1,024
  release_pages(mapped);
  EXPECT_LT(resident_pages(mapped), 3); // the outer ones
  EXPECT_EQ(mapped.sum().item<double>(), sum);
  // Memory of its own has no file to be read from again.
  const at::Tensor own = mapped.clone();
  release_pages(own);
  EXPECT_EQ(own.sum().item<double>(), sum);
}

TEST(Linear, ReleasesTheFileOfWhatItHasPacked) {
  const ScratchFolder scratch;
  const at::Tensor weight = at::randn({1024, 1024});
  const std::span<const float> values(weight.const_data_ptr<float>(),
                                      static_cast<std::size_t>(weight.numel()));
  const fs::path file = scratch.path() / "large.safetensors";
  write_safetensors(file, {{"a", {ElementType::f32, {1024, 1024}, std::as_bytes(values)}}});
  const at::Tensor mapped = read_tensors(file).at("a");
  const Linear linear({{mapped, {}}});
  const c10::NoGradGuard no_gradient;
  const at::Tensor x = at::randn({64, 1024});
  const at::Tensor first = linear(x);
  EXPECT_LT(resident_pages(mapped), 3); // the outer ones
  EXPECT_TRUE(at::equal(linear(x), first));
  EXPECT_TRUE(at::allclose(first, at::linear(x, weight), 1e-4, 1e-4));
}

} // namespace
} // namespace hydrascope::test
