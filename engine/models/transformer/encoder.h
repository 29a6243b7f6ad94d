// The base class of the vision transformer, BERT and decoders: parameters by name, blocks built from them,
// kernel parameters of adapters.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/encoder_layer.h"
#include "engine/models/transformer/kernel_tensors.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {

// A parameter that the configuration calls for.
struct ExpectedParameter {
  std::vector<std::int64_t> shape; // −1: any extent
  bool required = true;
};
using ExpectedParameters = std::map<std::string, ExpectedParameter>;

class Encoder : public Model {
public:
  const ModelInfo& info() const override { return info_; }
  at::Tensor block(int layer, const at::Tensor& hidden, const ModelInput& input, const Kernel& kernel,
                   const KernelParameters& kernel_parameters, const BlockOptions& options) const override;
  KernelParameters kernel_parameters(int layer, const KernelSpec& kernel) const override;
  at::Tensor attention_output_weight(int layer) const override;
  std::vector<std::string> parameter_names() const override;
  at::Tensor parameter(const std::string& name) const override;
  TensorMap tensors() const override;
  at::Device device() const override { return parameters_.begin()->second.device(); }
  std::shared_ptr<const Model> with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                               const std::vector<std::string>& labels,
                                               int image_size) const override;
  const std::string& hash() const override;

protected:
  // Checks a checkpoint's tensors against `expected` and builds the blocks. Tensors are converted to float32;
  // those that are float32 stay mapped. Throws BrokenFile that names missing tensors and wrong shapes.
  Encoder(ModelConfig config, const std::filesystem::path& folder, const Checkpoint& checkpoint,
          const ExpectedParameters& expected);
  Encoder(const Encoder&) = default;

  // A copy that shares all parameters and blocks.
  virtual std::shared_ptr<Encoder> copy() const = 0;
  // Rebuilds the parts outside the blocks after their parameters have changed.
  virtual void rebuild_ends() = 0;
  virtual TokenLayout layout_of(const ModelInput& input) const = 0;
  // How many tokens, from the first, logits() reads; 0: all.
  virtual std::int64_t tokens_read() const = 0;

  const ModelConfig& config() const { return config_; }
  bool has(const std::string& name) const { return parameters_.contains(name); }
  // An undefined tensor if the model has none of that name.
  at::Tensor find(const std::string& name) const;
  Linear::Part part(const std::string& name) const { return {find(name + ".weight"), find(name + ".bias")}; }
  Norm norm(const std::string& name) const {
    return {find(name + ".weight"), find(name + ".bias"), config_.layer_norm_epsilon, config_.rms_norm};
  }
  // The names of the classifier's labels for `classes` outputs: the configuration's, else `class n`.
  void set_classes(std::int64_t classes);
  // The outputs are named by the model itself (Model::output_label), not by labels.
  void set_outputs() { info_.has_classifier = true; }
  void set_default_size(int image_size) { info_.image_size = image_size; }

private:
  struct Origin; // the files, and their hash, computed at the first request
  void adopt_classifier(const std::string& name, const at::Tensor& value);

  ModelConfig config_;
  ModelInfo info_;
  TensorMap parameters_;
  std::vector<std::shared_ptr<const EncoderLayer>> layers_;
  std::shared_ptr<const Rotary> rotary_; // null: positions are embedded with the input
  KernelTensors kernels_;
  std::shared_ptr<Origin> origin_;
};

// Throws UsageError unless all tokens are in `first` … `count` − 1, the range that may be hidden.
void check_can_hide(std::span<const std::int64_t> tokens, std::int64_t first, std::int64_t count);

// `encoder.layer.0 …` of every block and the shapes that the configuration gives them.
void expect_layers(const ModelConfig& config, ExpectedParameters& expected);

std::shared_ptr<const Model> make_vision_transformer(const ModelConfig& config,
                                                     const std::filesystem::path& folder,
                                                     const Checkpoint& checkpoint);
// A decoder with new parameters, which it shares: `embed_tokens.weight`, `encoder.layer.…`, `norm.…` and
// `lm_head.…`.
std::shared_ptr<const Model> make_decoder(const ModelConfig& config, TensorMap parameters);
std::shared_ptr<const Model> make_decoder(const ModelConfig& config, const std::filesystem::path& folder,
                                          const Checkpoint& checkpoint);
std::shared_ptr<const Model> make_bert(const ModelConfig& config, const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

} // namespace hydrascope
