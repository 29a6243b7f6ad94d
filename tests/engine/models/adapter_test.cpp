// Adapters: reading, choosing and applying them; replacing parameters.
#include <filesystem>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/model.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

namespace fs = std::filesystem;

TensorView view_of(const at::Tensor& tensor) {
  return {tensor.scalar_type() == at::kHalf ? ElementType::f16 : ElementType::f32,
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

void write_adapter(const fs::path& file, const std::map<std::string, at::Tensor>& tensors,
                   std::map<std::string, std::string> metadata) {
  std::map<std::string, TensorView> views;
  for (const auto& [name, tensor] : tensors) views[name] = view_of(tensor);
  metadata.emplace("format", "hydrascope-adapter-1");
  write_safetensors(file, views, metadata);
}

at::Tensor logits_of(const Model& model, const ModelInput& input) {
  const c10::NoGradGuard no_gradient;
  const auto softmax = make_kernel(KernelSpec{});
  at::Tensor hidden = model.embed(input);
  for (int i = 0; i < model.info().layers; ++i) hidden = model.block(i, hidden, input, *softmax, {});
  return model.logits(hidden, input);
}

class Adapters : public testing::Test {
protected:
  fs::path file(const std::string& name = "adapter.safetensors") const { return scratch_.path() / name; }
  ScratchFolder scratch_;
  std::shared_ptr<const Model> model_ = load_model(golden_folder() / "models" / "dinov2");
  ModelInput input_ = [] {
    ModelInput input;
    input.pixels = read_tensors(golden_folder() / "models" / "dinov2" / "expected.safetensors").at("pixels");
    return input;
  }();
};

TEST_F(Adapters, MetadataIsRead) {
  write_adapter(file(), {{"layernorm.bias", at::zeros({24})}},
                {{"name", "tail"},
                 {"role", "schedule"},
                 {"base", "abc"},
                 {"over", R"(["def","abc"])"},
                 {"layers", R"([{"layer":10,"kernel":"hydra-cosine"},{"layer":8,"kernel":"softmax"}])"},
                 {"image_size", "168"},
                 {"tokens", "145"},
                 {"classes", R"([{"id":"n02123045","label":"tabby"}])"},
                 {"data", "Tiny ImageNet"},
                 {"steps", "40"},
                 {"loss", "0.5"},
                 {"accuracy", "0.77"}});
  const AdapterInfo info = read_adapter_info(file());
  EXPECT_EQ(info.name, "tail");
  EXPECT_EQ(info.role, "schedule");
  EXPECT_EQ(info.over, (std::vector<std::string>{"def", "abc"}));
  ASSERT_EQ(info.layers.size(), 2U);
  EXPECT_EQ(info.layers[0].kernel.name, "hydra-cosine");
  EXPECT_EQ(info.image_size, 168);
  EXPECT_EQ(info.tokens, 145);
  ASSERT_EQ(info.classes.size(), 1U);
  EXPECT_EQ(info.classes[0].id, "n02123045");
  EXPECT_EQ(info.classes[0].label, "tabby");
  EXPECT_EQ(info.hash, sha256_of_file(file()));
  EXPECT_EQ(info.summary, "Tiny ImageNet, 40 steps, loss 0.5, accuracy 0.77");
  EXPECT_EQ(info.version, "") << "written before it was recorded";
  EXPECT_EQ(info.data_hash, "");
  write_adapter(file(), {},
                {{"role", "tail"}, {"base", "abc"}, {"version", "0.1.0"}, {"data_hash", "0123abcd"}});
  EXPECT_TRUE(read_adapter_info(file()).over.empty());
  EXPECT_EQ(read_adapter_info(file()).version, "0.1.0");
  EXPECT_EQ(read_adapter_info(file()).data_hash, "0123abcd");
}

TEST_F(Adapters, ForeignAndBrokenFilesAreToldApart) {
  EXPECT_THROW(read_adapter_info(file("absent")), Error);
  EXPECT_THROW(read_adapter_info(golden_folder() / "models" / "vit" / "model.safetensors"), ForeignFile);
  const auto refused = [&](const std::string& key, const std::string& value) {
    std::map<std::string, std::string> metadata{{"role", "tail"}, {"base", "x"}};
    metadata[key] = value;
    write_adapter(file(), {}, metadata);
    const std::string message = message_of<BrokenFile>([&] { read_adapter_info(file()); });
    EXPECT_NE(message.find(file().string()), std::string::npos) << message;
  };
  refused("role", "head");
  refused("image_size", "large");
  refused("layers", "{");
  refused("layers", R"([{"layer":1}])");
  refused("layers", R"([{"layer":1,"kernel":"no-such-kernel"}])");
  refused("over", R"("abc")");
  refused("over", R"([1])");
  refused("over", R"(["x","y"])"); // base is the last
  std::string layers = R"([{"layer":1,"kernel":"elu"})";
  for (int i = 0; i < 1000; ++i) layers += R"(,{"layer":1,"kernel":"elu"})";
  refused("layers", layers + "]");
  nlohmann::json maps = nlohmann::json::array(); // each would be compiled
  for (int i = 0; i < 65; ++i) {
    const std::string source = fmt::format("def phi(x):\n    return torch.relu(x) + {}\n", i);
    maps.push_back({{"layer", i}, {"kernel", kernel_of_source("typed", source).text()}, {"source", source}});
  }
  refused("layers", maps.dump());
  refused("classes", R"([{"id":"x"}])");
  refused("classes", R"([{"label":"x","y":)" + std::string(99, '[') + std::string(99, ']') + "}]");
}

TEST_F(Adapters, ATailReplacesLayersClassifierLabelsAndSize) {
  const at::Tensor weight = at::full({2, 48}, 0.5).to(at::kHalf);
  const at::Tensor bias = at::ones({2}).to(at::kHalf);
  const at::Tensor scale = at::zeros({24}).to(at::kHalf);
  write_adapter(file(),
                {{"dinov2.encoder.layer.1.layer_scale1.lambda1", scale},
                 {"encoder.layer.1.layer_scale2.lambda1", scale},
                 {"classifier.weight", weight},
                 {"classifier.bias", bias}},
                {{"role", "tail"},
                 {"base", model_->hash()},
                 {"image_size", "42"},
                 {"classes", R"([{"id":"a","label":"one"},{"id":"b","label":"two"}])"}});
  const auto adapted = apply_adapter(model_, read_adapter_info(file()), {});
  EXPECT_EQ(adapted->info().labels, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(adapted->info().image_size, 42);
  EXPECT_EQ(model_->info().image_size, 28);
  EXPECT_EQ(model_->info().labels.size(), 4U);
  EXPECT_EQ(adapted->hash(), model_->hash());
  EXPECT_EQ(adapted->prepare_image(Image{60, 60, std::vector<std::uint8_t>(10800)}).layout.rows, 3);
  // The second block adds nothing any more: its output is its input.
  const c10::NoGradGuard no_gradient;
  const auto softmax = make_kernel(KernelSpec{});
  const at::Tensor hidden = adapted->block(0, adapted->embed(input_), input_, *softmax, {});
  EXPECT_TRUE(hidden.equal(adapted->block(1, hidden, input_, *softmax, {})));
  EXPECT_FALSE(hidden.equal(model_->block(1, hidden, input_, *softmax, {})));
  // Sum of a LayerNorm's row and of the patches' mean, halved, plus one.
  const at::Tensor last = adapted->final_hidden(hidden);
  const at::Tensor expected =
      0.5 * (last.select(1, 0).sum(-1) + last.narrow(1, 1, last.size(1) - 1).mean(1).sum(-1)) + 1;
  const at::Tensor logits = adapted->logits(hidden, input_);
  EXPECT_EQ(logits.size(1), 2);
  EXPECT_TRUE(close_to(logits.select(1, 1), expected, 1e-5));
}

TEST_F(Adapters, AnotherBaseIsRefused) {
  write_adapter(file(), {}, {{"role", "tail"}, {"base", "0123456789abcdef"}});
  const AdapterInfo info = read_adapter_info(file());
  EXPECT_NE(message_of<BrokenFile>([&] { apply_adapter(model_, info, {}); }).find("another base"),
            std::string::npos);
  EXPECT_NO_THROW(apply_adapter(model_, info, {"0123456789abcdef"}));
}

TEST_F(Adapters, AllThatAnAdapterWasTrainedOverComesBeforeItInItsOrder) {
  write_adapter(file(), {}, {{"role", "tail"}, {"base", "second"}, {"over", R"(["first","second"])"}});
  const AdapterInfo info = read_adapter_info(file());
  using Names = std::vector<std::string>;
  for (const Names& applied : {Names{}, Names{"second"}, Names{"second", "first"}})
    EXPECT_NE(message_of<BrokenFile>([&] {
                apply_adapter(model_, info, applied);
              }).find("over the adapters first…, second…"),
              std::string::npos);
  EXPECT_NO_THROW(apply_adapter(model_, info, {"first", "second"}));
  EXPECT_NO_THROW(apply_adapter(model_, info, {"before", "first", "between", "second"}));
}

TEST_F(Adapters, WrongTensorsAreRefusedByName) {
  const auto refused = [&](const std::string& name, const at::Tensor& tensor) {
    write_adapter(file(), {{name, tensor}}, {{"role", "tail"}, {"base", model_->hash()}});
    const std::string message =
        message_of<BrokenFile>([&] { apply_adapter(model_, read_adapter_info(file()), {}); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
  };
  refused("encoder.layer.9.norm1.weight", at::zeros({24}));
  refused("encoder.layer.0.norm1.weight", at::zeros({23}));
  refused("classifier.weight", at::zeros({4, 23}));
  refused("kernel.7.hedgehog.query_map.weight", at::zeros({2, 12, 12}));
  refused("kernel.x", at::zeros({1}));
}

TEST_F(Adapters, BlameNoFileWhereMemoryDoesNotHoldThem) {
  const std::string weight = "classifier.weight"; // its update is a product
  write_adapter(file(), {{weight + ".lora_A", at::ones({1, 48})}, {weight + ".lora_B", at::ones({4, 1})}},
                {{"role", "tail"}, {"base", model_->hash()}, {"lora_alpha", "1"}});
  const AdapterInfo adapter = read_adapter_info(file());
  EXPECT_NO_THROW(apply_adapter(model_, adapter, {}));
  const AllocationLimit limit(1);
  EXPECT_THROW(apply_adapter(model_, adapter, {}), c10::OutOfMemoryError);
}

TEST_F(Adapters, KernelParametersAreServedByLayerAndKernel) {
  const auto adapted =
      model_->with_parameters({{"kernel.1.hedgehog.query_map.weight", at::ones({2, 12, 12})},
                               {"kernel.1.hedgehog.key_map.bias", at::zeros({2, 12})},
                               {"kernel.0.performer:features=8,eps=0.5.omega", at::ones({8, 12})}});
  const KernelParameters hedgehog = adapted->kernel_parameters(1, KernelSpec{"hedgehog", {}});
  EXPECT_EQ(hedgehog.size(), 2U);
  EXPECT_TRUE(hedgehog.contains("query_map.weight"));
  EXPECT_TRUE(adapted->kernel_parameters(0, KernelSpec{"hedgehog", {}}).empty());
  EXPECT_TRUE(model_->kernel_parameters(1, KernelSpec{"hedgehog", {}}).empty());
  EXPECT_EQ(adapted->parameter_names(), model_->parameter_names());
}

TEST_F(Adapters, ReplacementsShareEverythingElse) {
  const auto changed = model_->with_parameters({{"encoder.layer.1.norm1.bias", at::ones({24})}});
  EXPECT_EQ(changed->parameter("encoder.layer.0.norm1.bias").const_data_ptr(),
            model_->parameter("encoder.layer.0.norm1.bias").const_data_ptr());
  EXPECT_FALSE(logits_of(*changed, input_).equal(logits_of(*model_, input_)));
  EXPECT_THROW(model_->with_parameters({{"absent", at::ones({1})}}), Error);
  EXPECT_THROW(model_->parameter("absent"), Error);
  EXPECT_THROW(model_->with_parameters({}, {"one", "two"}), Error); // four outputs
}

TEST_F(Adapters, ABackboneGetsAClassifier) {
  const fs::path folder = scratch_.path() / "backbone";
  copy_model("dinov2", folder);
  {
    const SafetensorsFile opened = SafetensorsFile::open(folder / "model.safetensors");
    auto tensors = opened.tensors();
    tensors.erase("classifier.weight");
    tensors.erase("classifier.bias");
    write_safetensors(folder / "model.safetensors", tensors);
  }
  write_file_atomically(folder / "config.json", [&] {
    std::string text = read_text_file(folder / "config.json");
    text.replace(text.find("Dinov2ForImageClassification"), 28, "Dinov2Model");
    return text;
  }());
  const auto backbone = load_model(folder);
  EXPECT_FALSE(backbone->info().has_classifier);
  EXPECT_FALSE(logits_of(*backbone, input_).defined());
  const auto with_head =
      backbone->with_parameters({{"classifier.weight", model_->parameter("classifier.weight")},
                                 {"classifier.bias", model_->parameter("classifier.bias")}},
                                {"a", "b", "c", "d"});
  EXPECT_TRUE(with_head->info().has_classifier);
  EXPECT_TRUE(close_to(logits_of(*with_head, input_), logits_of(*model_, input_), 1e-6));
}

// Gradients go through plain products: they agree with the packed ones, and reach parameters and attention
// outputs.
TEST_F(Adapters, DifferentiablePathAgreesWithThePackedOne) {
  const auto softmax = make_kernel(KernelSpec{});
  const at::Tensor packed = logits_of(*model_, input_);
  const at::Tensor leaf = model_->parameter("encoder.layer.0.mlp.fc1.weight").clone().set_requires_grad(true);
  const auto trained = model_->with_parameters({{"encoder.layer.0.mlp.fc1.weight", leaf}});
  at::Tensor hidden = trained->embed(input_);
  AttentionTap tap;
  for (int i = 0; i < trained->info().layers; ++i)
    hidden = trained->block(i, hidden, input_, *softmax, {}, {.tap = i == 1 ? &tap : nullptr});
  const at::Tensor logits = trained->logits(hidden, input_);
  EXPECT_TRUE(close_to(logits.detach(), packed, 1e-5));
  tap.out.retain_grad();
  logits.sum().backward();
  ASSERT_TRUE(leaf.grad().defined());
  EXPECT_GT(leaf.grad().abs().max().item<float>(), 0);
  ASSERT_TRUE(tap.out.grad().defined());
  EXPECT_EQ(tap.out.grad().sizes(), tap.out.sizes());
}

TEST_F(Adapters, ATapIsDifferentiableWhereNothingBeforeItIs) {
  const auto softmax = make_kernel(KernelSpec{});
  AttentionTap tap;
  const at::Tensor hidden =
      model_->block(0, model_->embed(input_).detach(), input_, *softmax, {}, {.tap = &tap});
  ASSERT_TRUE(tap.out.requires_grad());
  hidden.sum().backward();
  EXPECT_TRUE(tap.out.grad().defined());
}

AdapterInfo adapter(const std::string& hash, const std::string& base, const std::string& role,
                    const std::vector<std::pair<int, std::string>>& layers) {
  AdapterInfo info;
  info.hash = info.name = hash;
  info.base = base;
  info.role = role;
  for (const auto& [layer, kernel] : layers) info.layers.push_back({layer, KernelSpec{kernel, {}}});
  return info;
}

std::vector<std::string> chosen(const std::vector<std::string>& kernels,
                                const std::vector<AdapterInfo>& available) {
  Schedule schedule;
  for (const std::string& kernel : kernels) schedule.layers.push_back(KernelSpec{kernel, {}});
  std::vector<std::string> names;
  for (const AdapterInfo& info : select_adapters("model", schedule, available)) names.push_back(info.name);
  return names;
}

// Maps that were fine-tuned with a schedule stand: those it was trained over come before it, and not again.
TEST(SelectAdapters, MapsThatAScheduleWasTrainedOverComeOnce) {
  const std::vector<AdapterInfo> available{
      adapter("maps", "tail", "maps", {{0, "hedgehog"}, {1, "hedgehog"}}),
      adapter("tuned", "maps", "schedule", {{0, "hedgehog"}, {1, "hedgehog"}}),
      adapter("tail", "model", "tail", {{1, "softmax"}})};
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({"hedgehog", "hedgehog"}, available), (Names{"tail", "maps", "tuned"}));
  EXPECT_EQ(chosen({"hedgehog", "softmax"}, available), (Names{"tail", "maps"}));
}

TEST(SelectAdapters, TailThenExactSchedulesThenMapsLayerByLayer) {
  const std::vector<AdapterInfo> available{
      adapter("foreign", "other", "tail", {{2, "softmax"}}),
      adapter("back1", "tail", "schedule", {{1, "softmax"}, {2, "hydra-cosine"}}),
      adapter("back2", "tail", "schedule", {{1, "hydra-cosine"}, {2, "hydra-cosine"}}),
      adapter("whole", "model", "schedule", {{0, "elu"}, {1, "elu"}, {2, "elu"}}),
      adapter("maps", "model", "maps", {{0, "hedgehog"}, {1, "hedgehog"}, {2, "hedgehog"}}),
      adapter("more-maps", "model", "maps", {{0, "hedgehog"}}),
      adapter("tail", "model", "tail", {{1, "softmax"}, {2, "softmax"}})};
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({"softmax", "softmax", "softmax"}, available), (Names{"tail"}));
  EXPECT_EQ(chosen({"sdpa", "sdpa", "sdpa"}, available), (Names{"tail"}));
  EXPECT_EQ(chosen({"softmax", "softmax", "hydra-cosine"}, available), (Names{"tail", "back1"}));
  EXPECT_EQ(chosen({"softmax", "hydra-cosine", "hydra-cosine"}, available), (Names{"tail", "back2"}));
  EXPECT_EQ(chosen({"hydra-cosine", "softmax", "softmax"}, available), (Names{"tail"}));
  EXPECT_EQ(chosen({"elu", "elu", "elu"}, available), (Names{"whole"}));
  EXPECT_EQ(chosen({"hedgehog", "softmax", "elu"}, available), (Names{"tail", "maps"}));
  EXPECT_EQ(chosen({"softmax", "softmax", "hydra-cosine"}, {}), Names{});
}

TEST(SelectAdapters, AllThatAScheduleWasTrainedOverComesBeforeItInItsOrder) {
  AdapterInfo last = adapter("last", "hydra", "schedule", {{1, "elu"}});
  last.over = {"other-tail", "hydra"};
  AdapterInfo maps = adapter("maps", "last", "maps", {{0, "hedgehog"}});
  std::vector<AdapterInfo> available{last, maps, adapter("hydra", "model", "schedule", {{1, "hydra-cosine"}}),
                                     adapter("tail", "model", "tail", {{1, "softmax"}}),
                                     adapter("other-tail", "model", "tail", {{0, "softmax"}})};
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({"softmax", "elu"}, available), (Names{"other-tail", "hydra", "last"}));
  const auto below = [&](const AdapterInfo& one) {
    Names names;
    for (const AdapterInfo& info : adapters_below(one, available)) names.push_back(info.name);
    return names;
  };
  EXPECT_EQ(below(maps), (Names{"other-tail", "hydra", "last"}));
  available.pop_back();
  EXPECT_EQ(chosen({"softmax", "elu"}, available), (Names{"tail"}));
  EXPECT_EQ(below(last), (Names{"hydra"}));
}

class Catalogue : public testing::Test {
protected:
  void SetUp() override {
    for (const char* name : {"HYDRASCOPE_DEPS", "HF_HUB_CACHE", "HF_HOME"})
      if (const char* value = std::getenv(name)) saved_[name] = value;
    ::setenv("HYDRASCOPE_DEPS", (scratch_.path() / "deps").c_str(), 1);
    ::unsetenv("HF_HUB_CACHE");
    ::setenv("HF_HOME", (scratch_.path() / "hf").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"HYDRASCOPE_DEPS", "HF_HUB_CACHE", "HF_HOME"})
      if (saved_.contains(name))
        ::setenv(name, saved_[name].c_str(), 1);
      else
        ::unsetenv(name);
  }
  void make_model(const fs::path& folder) const {
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << "{}";
  }
  ScratchFolder scratch_;
  std::map<std::string, std::string> saved_;
};

TEST_F(Catalogue, HoldsWhatSetUpHasPutInPlace) {
  EXPECT_TRUE(model_catalogue().empty());
  EXPECT_NE(message_of<Error>([] { resolve_model("minilm"); }).find("tools/setup"), std::string::npos);
  make_model(scratch_.path() / "deps" / "models" / "minilm");
  ASSERT_EQ(model_catalogue().size(), 1U);
  EXPECT_EQ(model_catalogue()[0].name, "minilm");
  EXPECT_EQ(model_catalogue()[0].input, InputKind::text);
  EXPECT_EQ(resolve_model("minilm"), scratch_.path() / "deps" / "models" / "minilm");
}

TEST_F(Catalogue, FoldersAndTheirFilesAreFound) {
  make_model(scratch_.path() / "own");
  EXPECT_EQ(resolve_model((scratch_.path() / "own").string()), scratch_.path() / "own");
  EXPECT_EQ(resolve_model((scratch_.path() / "own" / "config.json").string()), scratch_.path() / "own");
  EXPECT_NE(message_of<Error>([&] { resolve_model(scratch_.path().string()); }).find("config.json"),
            std::string::npos);
  EXPECT_THROW(resolve_model((scratch_.path() / "absent").string()), Error);
  EXPECT_THROW(resolve_model(""), Error);
}

TEST_F(Catalogue, RepositoriesAreFoundInTheHuggingFaceCache) {
  const fs::path repository = scratch_.path() / "hf" / "hub" / "models--org--name";
  make_model(repository / "snapshots" / "old");
  make_model(repository / "snapshots" / "new");
  fs::create_directories(repository / "refs");
  std::ofstream(repository / "refs" / "main") << "old\n";
  EXPECT_EQ(resolve_model("org/name"), repository / "snapshots" / "old");
  make_model(scratch_.path() / "hf" / "hub" / "models--plain" / "snapshots" / "x");
  EXPECT_EQ(resolve_model("plain"), scratch_.path() / "hf" / "hub" / "models--plain" / "snapshots" / "x");
  const std::string message = message_of<Error>([] { resolve_model("org/absent"); });
  EXPECT_NE(message.find("org/absent"), std::string::npos);
  EXPECT_NE(message.find("hub"), std::string::npos);
}

} // namespace
} // namespace hydrascope::test
