#include "engine/run/placement.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/device_check.h"
#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/encoder.h"
#include "engine/models/transformer/linear.h"
#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/models/golden.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

// MKL's mkl_mem_stat(): bytes and number of its buffers.
extern "C" [[gnu::weak]] std::int64_t mkl_serv_mem_stat(int* buffers);

namespace hydrascope {
namespace {

using test::accelerator, testing_inputs::normal;

std::filesystem::path golden_model(const char* name) { return test::golden_folder() / "models" / name; }

ExecutionOptions execution(const char* device, const char* dtype = "float32") {
  ExecutionOptions options;
  options.device = device;
  options.dtype = dtype;
  return options;
}

TEST(Placement, OfARequestIsResolvedOrRefusedWithAReason) {
  const char* const named = std::getenv("HYDRASCOPE_DEVICE");
  const bool is_named = named != nullptr && *named != '\0' && std::string_view(named) != "auto";
  const bool works = cuda_status().available && why_wrong(with_index(c10::kCUDA)).empty();
  const Placement automatic = placement_of(execution(is_named ? named : works ? "cuda" : "cpu"));
  EXPECT_EQ(placement_of({}).device, automatic.device);
  EXPECT_EQ(placement_of(execution("cpu")), Placement{});
  EXPECT_EQ(placement_of(execution("cpu", "bfloat16")), (Placement{c10::kCPU, c10::kBFloat16}));
  EXPECT_EQ(placement_of(execution("auto", "bfloat16")).dtype_name(), "bfloat16");
  EXPECT_THROW(placement_of(execution("cpu", "float16")), UsageError);
  EXPECT_THROW(placement_of(execution("abacus")), UsageError);
  if (cuda_status().available) {
    EXPECT_TRUE(placement_of(execution("cuda")).device.has_index());
  } else {
    const std::string message = test::message_of<Error>([] { placement_of(execution("cuda:1")); });
    EXPECT_NE(message.find(cuda_status().reason), std::string::npos) << message;
    EXPECT_NE(message.find("use --device cpu"), std::string::npos) << message;
  }
}

TEST(Placement, OfAutoIsADeviceThatComputesWhatTheCpuDoes) {
  const AutomaticDevice& found = automatic_device();
  EXPECT_EQ(found.device.is_cpu(), !found.reason.empty()) << found.reason;
  EXPECT_EQ(why_wrong(accelerator()), "");
  if (test::tests_are_on_gpu()) return; // only its memory can be limited
  const test::DeviceMemoryLimit no_memory(0);
  const std::string why = why_wrong(accelerator());
  EXPECT_EQ(why.find("fake:0 does not compute: "), 0U) << why;
}

TEST(Placement, MovesEveryTensorOfAModel) {
  const auto model = load_model(golden_model("bert"));
  EXPECT_EQ(placed(model, {}), model);
  const auto with_map =
      model->with_parameters({{"kernel.1.hedgehog.query_map.weight", at::ones({2, 12, 12})}});
  const auto moved = placed(with_map, {accelerator(), c10::kBFloat16});
  EXPECT_EQ(moved->device(), accelerator());
  EXPECT_EQ(moved->tensors().size(), with_map->tensors().size());
  for (const auto& [name, tensor] : moved->tensors()) {
    EXPECT_EQ(tensor.device(), accelerator()) << name;
    EXPECT_EQ(tensor.scalar_type(), name.starts_with("kernel.") ? at::kFloat : at::kBFloat16) << name;
  }
  EXPECT_EQ(moved->info().labels, model->info().labels);
  for (const auto& [name, parameter] : layer_kernel(*moved, 0, {"performer", {}}).parameters)
    EXPECT_EQ(parameter.device(), accelerator()) << name; // an initial one
}

TEST(Placement, ModelsOfAStoreShareWhatTheirAdaptersLeave) {
  const auto store = make_model_store({load_model, [] { return std::vector<AdapterInfo>(); }});
  const Schedule softmax{std::vector<KernelSpec>(2)};
  const AdapterChoice adapter{.automatic = false,
                              .files = {test::golden_folder() / "adapters/bert-hedgehog.safetensors"}};
  const Placement placement{accelerator(), c10::kFloat};
  const AppliedModel plain = store->apply(golden_model("bert"), {}, softmax, placement);
  const AppliedModel adapted = store->apply(golden_model("bert"), adapter, softmax, placement);
  EXPECT_EQ(store->apply(golden_model("bert"), adapter, softmax, placement).model, adapted.model);
  EXPECT_NE(plain.embedding_key(), store->apply(golden_model("bert"), {}, softmax, {}).embedding_key());
  const SafetensorsFile file = SafetensorsFile::open(adapter.files.front());
  std::size_t shared = 0;
  for (const auto& [name, tensor] : adapted.model->tensors()) {
    EXPECT_EQ(tensor.device(), accelerator()) << name;
    if (file.tensors().contains(name)) continue; // replaced
    EXPECT_TRUE(tensor.is_same(plain.model->parameter(name))) << name;
    ++shared;
  }
  EXPECT_GT(shared, 0U);
}

TEST(Placement, MovesAnInputOnceItIsChecked) {
  const auto model = placed(load_model(golden_model("bert")), {accelerator(), c10::kFloat});
  ModelInput input = model->prepare_text("the cat sat on a mat");
  EXPECT_THROW(model->embed(input), c10::Error); // it lies on the CPU
  input.mask = at::ones(input.token_ids.sizes(), at::kBool);
  const test::DeviceCounter counter;
  const ModelInput moved = placed(*model, input);
  if (!test::tests_are_on_gpu()) {
    EXPECT_EQ(counter.counts().copies_to_device, 2); // ids and types
  }
  EXPECT_FALSE(moved.mask.defined()); // every token is real
  EXPECT_EQ(moved.token_ids.device(), accelerator());
  model->embed(moved);
  EXPECT_EQ(counter.counts().waits(), 0);
  input.token_ids = at::full({1, 4}, 1 << 20, at::kLong);
  EXPECT_THROW(placed(*model, input), UsageError);
}

TEST(Placement, MovesRotaryEmbeddingsWithADecoder) {
  const at::NoGradGuard no_gradients;
  ModelConfig config;
  config.family = "decoder";
  config.layers = 1;
  config.heads = 2;
  config.width = 8;
  config.intermediate = 16;
  config.vocabulary = 11;
  config.max_positions = 16;
  config.causal = true;
  config.rotary = RotaryConfig{};
  ExpectedParameters expected;
  expect_layers(config, expected);
  expected["embed_tokens.weight"] = expected["lm_head.weight"] = {{11, 8}, true};
  expected["norm.weight"] = expected["norm.bias"] = {{8}, true};
  expected["lm_head.bias"] = {{11}, true};
  TensorMap parameters;
  for (const auto& [name, parameter] : expected)
    parameters[name] = normal(parameter.shape, parameters.size());
  const auto host = make_decoder(config, parameters), device = placed(host, {accelerator(), c10::kFloat});
  ModelInput input;
  input.token_ids = at::arange(9).unsqueeze(0);
  const auto logits = [](const std::shared_ptr<const Model>& model, const ModelInput& own) {
    const Pass pass = plain_pass(model, layer_kernels(*model, {{"elu", {}}}), placed(*model, own));
    return model->logits(run_pass(pass).output, pass.input.input).cpu();
  };
  EXPECT_TRUE(at::allclose(logits(device, input), logits(host, input), 1e-4, 1e-4));
}

TEST(Placement, ProjectionsOfOneInputAreOneProductElsewhere) {
  const at::NoGradGuard no_gradients;
  const auto parts = [](const at::Device device) {
    std::vector<Linear::Part> all;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto width = static_cast<std::int64_t>(4 + i);
      all.push_back(
          {normal({width, 6}, i).to(device), i == 1 ? at::Tensor() : normal({width}, 9 + i).to(device)});
    }
    return all;
  };
  const at::Tensor x = normal({2, 5, 6}, 20), there = x.to(accelerator());
  const Linear host(parts(at::kCPU)), device(parts(accelerator()));
  device.split(there); // joins the weights
  const test::DeviceCounter counter;
  const std::vector<at::Tensor> actual = device.split(there), expected = host.split(x);
  EXPECT_LE(counter.counts().operators, 3); // the product, and what LibTorch needs for its bias
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i].cpu(), expected[i], 1e-5, 1e-5)) << i;
}

TEST(CachedMemory, OfTheCpuIsWhatMklKeepsForItsProducts) {
  if (!at::hasMKL()) GTEST_SKIP() << "this LibTorch has no MKL";
  ASSERT_NE(mkl_serv_mem_stat, nullptr); // else Free memory does nothing
  const at::Tensor a = normal({512, 512}, 1), product = at::mm(a, a);
  int buffers = 0;
  EXPECT_GT(mkl_serv_mem_stat(&buffers), 0);
  release_cached_memory(c10::kCPU);
  EXPECT_EQ(mkl_serv_mem_stat(&buffers), 0);
  EXPECT_TRUE(at::equal(at::mm(a, a), product));
}

} // namespace
} // namespace hydrascope
