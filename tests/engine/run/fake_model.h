// A tiny encoder for the runner's tests: real kernels, random weights, and counters and a hook on its blocks.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/run.h"
#include "engine/run/runner.h"

namespace hydrascope {

enum class FakeHead { none, first_token, first_and_mean };

struct FakeOptions {
  int layers = 4;
  FakeHead head = FakeHead::first_token;
  std::function<void(int layer)> before_block; // called on the runner's thread
  bool independent_labels = false;
};

class FakeModel final : public Model {
public:
  static constexpr int kHeads = 2;
  static constexpr int kWidth = 8;
  static constexpr int kClasses = 3;

  explicit FakeModel(FakeOptions options);

  const ModelInfo& info() const override { return info_; }
  ModelInput prepare_text(const std::string& text, const std::optional<std::string>& second) const override;
  at::Tensor embed(const ModelInput& input) const override;
  at::Tensor block(int layer, const at::Tensor& hidden, const ModelInput& input, const Kernel& kernel,
                   const KernelParameters& parameters, const BlockOptions& options) const override;
  at::Tensor logits(const at::Tensor& hidden, const ModelInput& input) const override;
  at::Tensor final_hidden(const at::Tensor& hidden) const override { return hidden; }
  KernelParameters kernel_parameters(int layer, const KernelSpec& kernel) const override;
  at::Tensor attention_output_weight(int layer) const override;
  std::vector<std::string> parameter_names() const override;
  at::Tensor parameter(const std::string& name) const override { return parameters_.at(name); }
  std::map<std::string, at::Tensor> tensors() const override { return parameters_; }
  at::Device device() const override { return parameters_.begin()->second.device(); }
  std::shared_ptr<const Model> with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                               const std::vector<std::string>& labels,
                                               int image_size) const override;
  const std::string& hash() const override { return hash_; }

  // How often each block has run, over this model and all made from it.
  const std::vector<int>& runs() const { return *runs_; }

private:
  FakeOptions options_;
  ModelInfo info_;
  std::string hash_ = "fake-hash";
  std::map<std::string, at::Tensor> parameters_;
  std::shared_ptr<std::vector<int>> runs_;
};

// A store of this one model, whatever the folder, and these adapters.
std::shared_ptr<ModelStore> fake_source(std::shared_ptr<const FakeModel> model,
                                        std::vector<AdapterInfo> adapters = {});

// A request for the fake model with `text` and the kernels of --layers' form.
RunRequest fake_request(const std::string& text, const std::string& layers = {});

} // namespace hydrascope
