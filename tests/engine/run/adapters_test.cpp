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

// An adapter for layer 3 does not train a schedule that replaces layer 2 as well; maps do layer by layer.
TEST_F(AdaptersTest, ScheduleIsTrainedOnlyByWhatWasTrainedForIt) {
  const AdapterInfo hydra = write_hydra(), maps = write_maps(2);
  const auto schedule = [](const std::string& layers) { return parse_schedule({.layers = {layers}}, 4); };
  EXPECT_EQ(trained_for(parse_schedule({}, 4), {hydra, maps}), std::nullopt);
  EXPECT_EQ(trained_for(schedule("3=hydra-cosine"), {hydra}), true);
  EXPECT_EQ(trained_for(schedule("3=hydra-cosine"), {}), false);
  EXPECT_EQ(trained_for(schedule("2,3=hydra-cosine"), {hydra}), false);
  EXPECT_EQ(trained_for(schedule("3=hydra-mean"), {hydra}), false);
  EXPECT_EQ(trained_for(schedule("2=hedgehog"), {maps}), true);
  EXPECT_EQ(trained_for(schedule("1,2=hedgehog"), {maps}), false);
  EXPECT_EQ(trained_for(schedule("2=hedgehog"), {hydra, maps}), false) << "the model is hydra's";
  const auto used = used_by(schedule("3=hydra-cosine"), {hydra, maps});
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used[0].name, "hydra");
}

TEST_F(AdaptersTest, AFoldersAdaptersTakeThePlaceOfTheBundledOnes) {
  const AdapterInfo bundled = write_hydra();
  const AdapterInfo bundled_tail =
      write("tail", "tail", "[]", {{"encoder.layer.1.output.weight", at::full({8, 8}, 0.125F)}});
  Runner runner(std::size_t{1} << 20, fake_source(model_, {bundled, bundled_tail}));
  const auto mine = folder_ / "mine";
  std::filesystem::create_directories(mine);
  write("mine/back2", "schedule",
        R"([{"layer": 2, "kernel": "hydra-mean"}, {"layer": 3, "kernel": "hydra-mean"}])",
        {{"encoder.layer.3.output.weight", at::full({8, 8}, 0.5F)}}, bundled_tail.hash);
  const auto names = [&](const std::string& layers, const AdapterChoice& choice) {
    RunRequest request = fake_request(kText, layers);
    request.adapters = choice;
    std::vector<std::string> found;
    for (const AdapterInfo& adapter : runner.run(request)->adapters) found.push_back(adapter.name);
    return found;
  };
  AdapterChoice of_mine, tail_alone;
  of_mine.folder = mine;
  tail_alone.tail_alone = true;
  using testing::ElementsAre;
  EXPECT_THAT(names("3=hydra-cosine", {}), ElementsAre("hydra"));
  EXPECT_THAT(names("3=hydra-cosine", of_mine), ElementsAre("tail")) << "hydra is not in the folder";
  EXPECT_THAT(names("2,3=hydra-mean", of_mine), ElementsAre("tail", "mine/back2"));
  EXPECT_THAT(names("3=hydra-mean", of_mine), ElementsAre("tail"));
  EXPECT_THAT(names("3=hydra-cosine", tail_alone), ElementsAre("tail"));
}

} // namespace
} // namespace hydrascope
