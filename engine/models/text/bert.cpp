// BERT: token, position and type embeddings, post-LayerNorm blocks, and whichever head the checkpoint holds
// (sequence classification through the pooler, or masked language modelling). Follows transformers'
// modeling_bert.
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/text/text_input.h"
#include "engine/models/transformer/encoder.h"

namespace hydrascope {
namespace {

const char* const mlm_transform = "cls.predictions.transform.dense";

ExpectedParameters expected_parameters(const ModelConfig& config) {
  ExpectedParameters expected;
  const std::int64_t width = config.width;
  expected["embeddings.word_embeddings.weight"] = {{config.vocabulary, width}, true};
  expected["embeddings.position_embeddings.weight"] = {{config.max_positions, width}, true};
  expected["embeddings.token_type_embeddings.weight"] = {{config.token_types, width}, true};
  expected["embeddings.LayerNorm.weight"] = {{width}, true};
  expected["embeddings.LayerNorm.bias"] = {{width}, true};
  expect_layers(config, expected);

  const bool classifies = config.architecture == "BertForSequenceClassification";
  const bool predicts =
      config.architecture == "BertForMaskedLM" || config.architecture == "BertForPreTraining";
  const std::int64_t classes = config.labels.empty() ? -1 : config.classes;
  expected["pooler.dense.weight"] = {{width, width}, classifies};
  expected["pooler.dense.bias"] = {{width}, classifies};
  expected["classifier.weight"] = {{classes, width}, classifies};
  expected["classifier.bias"] = {{classes}, classifies};
  expected["cls.predictions.transform.dense.weight"] = {{width, width}, predicts};
  expected["cls.predictions.transform.dense.bias"] = {{width}, predicts};
  expected["cls.predictions.transform.LayerNorm.weight"] = {{width}, predicts};
  expected["cls.predictions.transform.LayerNorm.bias"] = {{width}, predicts};
  // The decoder is tied to the word embeddings unless the checkpoint holds one; its bias has two names.
  expected["cls.predictions.decoder.weight"] = {{config.vocabulary, width}, false};
  expected["cls.predictions.decoder.bias"] = {{config.vocabulary}, false};
  expected["cls.predictions.bias"] = {{config.vocabulary}, false};
  return expected;
}

class Bert final : public Encoder {
public:
  Bert(const ModelConfig& config, const std::filesystem::path& folder, const Checkpoint& checkpoint)
      : Encoder(config, folder, checkpoint, expected_parameters(config)),
        text_(std::make_shared<TextPreparer>(folder, config.vocabulary, config.max_positions)) {
    rebuild();
  }

  ModelInput prepare_text(const std::string& text, const std::optional<std::string>& second) const override {
    return text_->prepare(text, second);
  }

  at::Tensor embed(const ModelInput& input) const override {
    const at::Tensor& ids = input.token_ids;
    if (!ids.defined() || ids.dim() != 2)
      throw UsageError(info().name, "takes a text", "give a text, not a picture");
    const at::Tensor types = input.token_types.defined() ? input.token_types : at::zeros_like(ids);
    check_range(ids, config().vocabulary, "a token's id is not below its vocabulary of {}");
    check_range(types, config().token_types, "a token's type is not below its {} types");
    if (!input.positions.defined() && ids.size(1) > config().max_positions)
      throw UsageError(
          info().name,
          fmt::format("{} tokens are more than its {} positions", ids.size(1), config().max_positions),
          "use a shorter text");
    const at::Tensor positions =
        input.positions.defined() ? input.positions : at::arange(ids.size(1), ids.options());
    check_range(positions, config().max_positions, "a position is not below its {} positions");
    const at::Tensor sum = at::embedding(find("embeddings.word_embeddings.weight"), ids) +
                           at::embedding(find("embeddings.token_type_embeddings.weight"), types) +
                           at::embedding(find("embeddings.position_embeddings.weight"), positions);
    return norm("embeddings.LayerNorm")(sum);
  }

  at::Tensor final_hidden(const at::Tensor& hidden) const override { return hidden; }

  at::Tensor logits(const at::Tensor& hidden, const ModelInput& input) const override {
    if (decoder_->defined()) {
      const at::Tensor transformed = (*transform_)(hidden, config().activation);
      return (*decoder_)(norm("cls.predictions.transform.LayerNorm")(transformed));
    }
    if (!head_->defined()) return {};
    at::Tensor pooled = hidden.select(1, 0);
    if (pooler_->defined()) pooled = at::tanh((*pooler_)(pooled));
    if (find("classifier.weight").size(1) == config().width) return (*head_)(pooled);
    return (*head_)(at::cat({pooled, mean_of_real(hidden, input.mask)}, 1));
  }

protected:
  std::shared_ptr<Encoder> copy() const override { return std::make_shared<Bert>(*this); }
  void rebuild_ends() override { rebuild(); }
  TokenLayout layout_of(const ModelInput& input) const override { return input.layout; }
  std::int64_t tokens_read() const override {
    const bool classifier = head_->defined() && !decoder_->defined();
    return classifier && find("classifier.weight").size(1) == config().width ? 1 : 0;
  }

private:
  static at::Tensor mean_of_real(const at::Tensor& hidden, const at::Tensor& mask) {
    if (!mask.defined()) return hidden.mean(1);
    const at::Tensor weights = mask.unsqueeze(-1).to(hidden.scalar_type());
    return (hidden * weights).sum(1) / weights.sum(1);
  }

  void check_range(const at::Tensor& values, int limit, const char* message) const {
    if (values.numel() > 0 &&
        (values.min().item<std::int64_t>() < 0 || values.max().item<std::int64_t>() >= limit))
      throw UsageError(info().name, fmt::format(fmt::runtime(message), limit),
                       "see that its tokenizer belongs to it");
  }

  void rebuild() {
    using Parts = std::vector<Linear::Part>;
    const auto linear = [&](const std::string& name) {
      return has(name + ".weight") ? std::make_shared<const Linear>(Parts{part(name)})
                                   : std::make_shared<const Linear>();
    };
    pooler_ = linear("pooler.dense");
    head_ = linear("classifier");
    transform_ = linear(mlm_transform);
    decoder_ = std::make_shared<const Linear>();
    if (transform_->defined()) {
      at::Tensor weight = find("cls.predictions.decoder.weight");
      if (!weight.defined()) weight = find("embeddings.word_embeddings.weight");
      at::Tensor bias = find("cls.predictions.bias");
      if (!bias.defined()) bias = find("cls.predictions.decoder.bias");
      decoder_ = std::make_shared<const Linear>(Parts{{weight, bias}});
    }
    const at::Tensor weight = find("classifier.weight");
    set_classes(decoder_->defined() || !weight.defined() ? 0 : weight.size(0));
  }

  std::shared_ptr<TextPreparer> text_;
  std::shared_ptr<const Linear> pooler_, head_, transform_, decoder_; // shared by copies, packed once
};

} // namespace

std::shared_ptr<const Model> make_bert(const ModelConfig& config, const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint) {
  return std::make_shared<Bert>(config, folder, checkpoint);
}

} // namespace hydrascope
