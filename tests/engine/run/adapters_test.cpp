// Which adapters a run takes, and what they leave of the prefix cache.
#include <filesystem>
#include <span>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/safetensors.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";

class AdaptersTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  AdapterInfo write(const std::string& name, const std::string& role, const std::string& layers,
                    const std::map<std::string, at::Tensor>& tensors, const std::string& base = "fake-hash") {
    std::map<std::string, TensorView> views;
    for (const auto& [tensor_name, tensor] : tensors)
      views[tensor_name] = {
          ElementType::f32, tensor.sizes().vec(),
          std::as_bytes(std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())))};
    const auto file = folder_ / (name + ".safetensors");
    write_safetensors(file, views,
                      {{"format", "hydrascope-adapter-1"},
                       {"name", name},
                       {"role", role},
                       {"base", base},
                       {"layers", layers}});
    return read_adapter_info(file);
  }

  // Maps that are all alike, so that every row is uniform.
  AdapterInfo write_maps(int layer, const std::string& base = "fake-hash") {
    std::map<std::string, at::Tensor> tensors;
    for (const char* map : {"query_map", "key_map"}) {
      const std::string prefix = "kernel." + std::to_string(layer) + ".hedgehog." + map;
      tensors[prefix + ".weight"] = at::full({2, 4, 4}, 0.0F);
      tensors[prefix + ".bias"] = at::full({2, 4}, 0.0F);
    }
    return write("maps", "maps", "[{\"layer\": " + std::to_string(layer) + ", \"kernel\": \"hedgehog\"}]",
                 tensors, base);
  }

  AdapterInfo write_hydra() {
    return write("hydra", "schedule", R"([{"layer": 3, "kernel": "hydra-cosine"}])",
                 {{"encoder.layer.3.output.weight", at::full({8, 8}, 0.25F)}});
  }

  std::filesystem::path folder_;
  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
};

TEST_F(AdaptersTest, TheSchedulesOwnAppliesAndKeepsThePrefix) {
  Runner runner(std::size_t{1} << 20, fake_source(model_, {write_hydra()}));
  const auto plain = runner.run(fake_request(kText));
  EXPECT_TRUE(plain->adapters.empty());
  RunRequest scheduled = fake_request(kText, "3=hydra-cosine");
  scheduled.quantities = {LogitsKey{}};
  const auto hydra = runner.run(scheduled);
  ASSERT_EQ(hydra->adapters.size(), 1U);
  EXPECT_EQ(hydra->adapters[0].name, "hydra");
  EXPECT_FALSE(hydra->layers[3].untrained);
  EXPECT_TRUE(hydra->layers[2].cached);
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 1, 2));

  RunRequest without = scheduled;
  without.adapters.automatic = false;
  const auto untrained = runner.run(without);
  EXPECT_TRUE(untrained->adapters.empty());
  EXPECT_TRUE(untrained->layers[3].untrained);
  EXPECT_NE(test::logits(*untrained), test::logits(*hydra));

  RunRequest explicitly = without;
  explicitly.adapters.files = {folder_ / "hydra.safetensors"};
  EXPECT_EQ(test::logits(*runner.run(explicitly)), test::logits(*hydra));
}

TEST_F(AdaptersTest, TrainedMapsServeComparedKernelsWhateverTheSchedule) {
  Runner runner(std::size_t{1} << 20, fake_source(model_, {write_maps(2)}));
  RunRequest request = fake_request(kText);
  const KernelSpec hedgehog{"hedgehog", {}};
  const WeightsKey with_maps{.layer = 2, .kernel = hedgehog}, without{.layer = 1, .kernel = hedgehog};
  request.quantities = {with_maps, without};
  const auto result = runner.run(request);
  const WeightsResult& trained = test::read(*result, with_maps);
  EXPECT_FALSE(trained.untrained);
  for (const float weight : trained.weights.values) EXPECT_NEAR(weight, 1.0F / 8, 1e-6F);
  EXPECT_TRUE(test::read(*result, without).untrained);
  ASSERT_EQ(result->adapters.size(), 1U);
  EXPECT_EQ(result->adapters[0].name, "maps");

  EXPECT_TRUE(runner.run(fake_request(kText))->adapters.empty()); // nothing used them
  const auto scheduled = runner.run(fake_request(kText, "1,2=hedgehog"));
  EXPECT_TRUE(scheduled->layers[1].untrained);
  EXPECT_FALSE(scheduled->layers[2].untrained);
}

TEST_F(AdaptersTest, MapsOfTheSchedulesOwnAdapterTakePrecedence) {
  std::map<std::string, at::Tensor> tensors;
  for (const char* const map : {"query_map", "key_map"}) {
    tensors[fmt::format("kernel.2.hedgehog.{}.weight", map)] = at::full({2, 4, 4}, 0.5F);
    tensors[fmt::format("kernel.2.hedgehog.{}.bias", map)] = at::full({2, 4}, 0.5F);
  }
  const AdapterInfo own = write("own", "schedule", R"([{"layer": 2, "kernel": "hedgehog"}])", tensors);
  Runner runner(std::size_t{1} << 20, fake_source(model_, {write_maps(2), own}));
  RunRequest request = fake_request(kText, "2=hedgehog");
  const WeightsKey key{.layer = 2, .kernel = KernelSpec{"hedgehog", {}}};
  request.quantities = {key};
  const auto automatic = runner.run(request);
  request.adapters = {.automatic = false, .files = {own.path}};
  EXPECT_EQ(test::read(*automatic, key).weights.values, test::read(*runner.run(request), key).weights.values);
  EXPECT_FALSE(automatic->layers[2].untrained);
}

TEST_F(AdaptersTest, AllThatBelongToTheModelAreListedWhateverIsChosen) {
  Runner runner(std::size_t{1} << 20,
                fake_source(model_, {write_hydra(), write_maps(2), write_maps(1, "another-hash")}));
  RunRequest request = fake_request(kText);
  request.adapters.automatic = false;
  const auto result = runner.run(request);
  EXPECT_TRUE(result->adapters.empty());
  ASSERT_NE(result->available_adapters, nullptr);
  ASSERT_EQ(result->available_adapters->size(), 2U);
  EXPECT_EQ(result->available_adapters->front().name, "hydra");
  EXPECT_EQ(result->available_adapters->back().name, "maps");
}

TEST_F(AdaptersTest, MapsOfAnotherBaseStayOut) {
  Runner runner(std::size_t{1} << 20, fake_source(model_, {write_maps(2, "another-hash")}));
  RunRequest request = fake_request(kText);
  const WeightsKey key{.layer = 2, .kernel = KernelSpec{"hedgehog", {}}};
  request.quantities = {key};
  const auto result = runner.run(request);
  EXPECT_TRUE(test::read(*result, key).untrained);
  EXPECT_TRUE(result->adapters.empty());
}

} // namespace
} // namespace hydrascope
