// A decoder for training from scratch: token embedding, blocks of causal attention, a final LayerNorm, logits
// over the vocabulary.
#include <utility>

#include <ATen/ops/embedding.h>

#include "engine/models/transformer/encoder.h"

namespace hydrascope {
namespace {

ExpectedParameters decoder_parameters(const ModelConfig& config) {
  ExpectedParameters expected;
  const std::int64_t width = config.width, vocabulary = config.vocabulary;
  expected["embedding.weight"] = {{vocabulary, width}, true};
  expect_layers(config, expected);
  expected["final_norm.weight"] = expected["final_norm.bias"] = {{width}, true};
  expected["logits.weight"] = {{vocabulary, width}, true};
  expected["logits.bias"] = {{vocabulary}, true};
  return expected;
}

class Decoder final : public Encoder {
public:
  Decoder(const ModelConfig& config, TensorMap tensors)
      : Encoder(config, "decoder", Checkpoint{std::move(tensors), {}}, decoder_parameters(config)) {
    rebuild();
  }

  at::Tensor embed(const ModelInput& input) const override {
    return at::embedding(find("embedding.weight"), input.token_ids);
  }
  at::Tensor final_hidden(const at::Tensor& hidden) const override { return norm("final_norm")(hidden); }
  // (…,V), of all tokens or of those that the last block was asked for (ModelInput::read).
  at::Tensor logits(const at::Tensor& hidden, const ModelInput&) const override {
    return (*logits_)(final_hidden(hidden));
  }

protected:
  std::shared_ptr<Encoder> copy() const override { return std::make_shared<Decoder>(*this); }
  void rebuild_ends() override { rebuild(); }
  TokenLayout layout_of(const ModelInput&) const override { return {}; }
  std::int64_t tokens_read() const override { return 0; }

private:
  void rebuild() { logits_ = std::make_shared<const Linear>(std::vector<Linear::Part>{part("logits")}); }

  std::shared_ptr<const Linear> logits_;
};

} // namespace

std::shared_ptr<const Model> make_decoder(const ModelConfig& config, TensorMap parameters) {
  return std::make_shared<Decoder>(config, std::move(parameters));
}

} // namespace hydrascope
