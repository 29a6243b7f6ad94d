// BERT: token, position and type embeddings, post-LayerNorm blocks, and the head that the checkpoint holds
// (sequence classification through the pooler, or masked language modelling). Follows transformers'
// modeling_bert.
#include <algorithm>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "engine/models/tokenizer/wordpiece.h"
#include "engine/models/transformer/encoder.h"

namespace hydrascope {
namespace {

const char* const mlm_transform = "cls.predictions.transform.dense";

ExpectedParameters bert_parameters(const ModelConfig& config) {
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
  if (!has_other_classifier(config)) { // else left out, with a note
    expected["classifier.weight"] = {{classes, width}, classifies};
    expected["classifier.bias"] = {{classes}, classifies};
  }
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

using Pieces = std::vector<WordPieceToken>;

// WordPiece, or byte-level BPE, whose post-processor adds what stands around a text.
class TextTokenizer {
public:
  explicit TextTokenizer(const std::filesystem::path& folder) {
    if (has_byte_pair(folder))
      set_up_bytes(folder);
    else
      words_.emplace(load_wordpiece(folder));
  }

  // Without what stands around them; words are counted from `first_word`.
  Pieces pieces(const std::string& text, const int first_word = 0) const {
    if (words_) return words_->pieces(text, first_word);
    Pieces pieces;
    int word = first_word - 1;
    std::int64_t at =
        0; // words that begin before this byte are counted; spaces belong to the word behind them
    const auto begins = [&](const auto byte) {
      return byte == 0 || (text[byte] == ' ' && text[byte - 1] != ' ');
    };
    for (const BytePairToken& token : bytes_->encode(text, false)) {
      for (; at <= token.begin && at < std::ssize(text); ++at)
        word += begins(static_cast<std::size_t>(at)) ? 1 : 0;
      pieces.push_back({token.id, bytes_->special(token.id) ? -1 : word});
    }
    return pieces;
  }
  std::int32_t start() const { return words_ ? words_->start() : start_; }
  std::int32_t end() const { return words_ ? words_->end() : end_; }
  int largest_id() const { return words_ ? words_->largest_id() : bytes_->largest_id(); }
  std::string token(const std::int32_t id) const { return words_ ? words_->token(id) : bytes_->token(id); }

private:
  void set_up_bytes(const std::filesystem::path& folder) {
    bytes_.emplace(load_byte_pair(folder));
    std::tie(start_, end_) = tokens_at_both_ends(*bytes_, folder);
  }

  std::optional<const WordPiece> words_;
  std::optional<const BytePair> bytes_;
  std::int32_t start_ = 0, end_ = 0;
};

// A text as BERT's input: tokens, types, and the cut at the last position. Reads the folder's tokenizer with
// the first text: models without one can still be inspected. Safe to call from several threads.
class TextPreparer {
public:
  TextPreparer(std::filesystem::path folder, int vocabulary, int max_tokens);

  // token_ids, token_types (1,N); tokens; a note if the text was cut. Throws what load_wordpiece and
  // load_byte_pair throw, BrokenFile (the tokenizer's ids do not fit the model).
  ModelInput prepare(const std::string& text, const std::optional<std::string>& second) const;

private:
  const TextTokenizer& tokenizer() const;

  std::filesystem::path folder_;
  int vocabulary_, max_tokens_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const TextTokenizer> tokenizer_;
};

// Cuts the longer text, or both to the same length, of which the longer one gets the odd token: tokenizers'
// longest_first.
void cut(Pieces& first, Pieces& second, std::size_t room) {
  Pieces& shorter = first.size() > second.size() ? second : first;
  Pieces& longer = first.size() > second.size() ? first : second;
  const std::size_t least = std::min(shorter.size(), room / 2);
  shorter.resize(least);
  longer.resize(std::min(longer.size(), room - least));
}

TextPreparer::TextPreparer(std::filesystem::path folder, int vocabulary, int max_tokens)
    : folder_(std::move(folder)), vocabulary_(vocabulary), max_tokens_(max_tokens) {}

const TextTokenizer& TextPreparer::tokenizer() const {
  const std::lock_guard lock(mutex_);
  if (!tokenizer_) {
    auto loaded = std::make_unique<const TextTokenizer>(folder_);
    if (loaded->largest_id() >= vocabulary_)
      throw BrokenFile(folder_.string(),
                       fmt::format("its tokenizer has ids up to {}, but the model's vocabulary is {}",
                                   loaded->largest_id(), vocabulary_),
                       "check that tokenizer and weights belong together");
    tokenizer_ = std::move(loaded);
  }
  return *tokenizer_;
}

ModelInput TextPreparer::prepare(const std::string& text, const std::optional<std::string>& second) const {
  const TextTokenizer& tokens = tokenizer();
  Pieces first = tokens.pieces(text);
  const int words =
      first.empty()
          ? 0
          : std::max(0, 1 + std::max_element(first.begin(), first.end(), [](const auto& a, const auto& b) {
                              return a.word < b.word;
                            })->word);
  Pieces other = second ? tokens.pieces(*second, words) : Pieces();
  const std::size_t special = second ? 3 : 2;
  const std::size_t all = first.size() + other.size() + special;
  const auto limit = static_cast<std::size_t>(max_tokens_);
  if (limit < special) throw UsageError(folder_.string(), "its model has too few positions for a text");

  ModelInput input;
  if (all > limit) {
    cut(first, other, limit - special);
    input.note = fmt::format("text cut at {} of {} tokens", limit, all);
  }
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> types;
  const auto add = [&](const WordPieceToken& token, std::int64_t type) {
    ids.push_back(token.id);
    types.push_back(type);
    input.tokens.push_back({tokens.token(token.id), token.word, token.word < 0});
  };
  add({tokens.start(), -1}, 0);
  for (const WordPieceToken& token : first) add(token, 0);
  add({tokens.end(), -1}, 0);
  for (const WordPieceToken& token : other) add(token, 1);
  if (second) add({tokens.end(), -1}, 1);

  const auto count = static_cast<std::int64_t>(ids.size());
  input.token_ids = at::empty({1, count}, at::kLong);
  input.token_types = at::empty({1, count}, at::kLong);
  std::copy(ids.begin(), ids.end(), input.token_ids.mutable_data_ptr<std::int64_t>());
  std::copy(types.begin(), types.end(), input.token_types.mutable_data_ptr<std::int64_t>());
  return input;
}

class Bert final : public Encoder {
public:
  Bert(const ModelConfig& config, const std::filesystem::path& folder, const Checkpoint& checkpoint)
      : Encoder(config, folder, checkpoint, bert_parameters(config)),
        text_(std::make_shared<TextPreparer>(folder, config.vocabulary, config.max_positions)) {
    rebuild();
  }

  ModelInput prepare_text(const std::string& text, const std::optional<std::string>& second) const override {
    return text_->prepare(text, second);
  }

  void check(const ModelInput& input) const override {
    const at::Tensor& ids = input.token_ids;
    if (!ids.defined() || ids.dim() != 2)
      throw UsageError(info().name, "takes a text", "give a text, not a picture");
    check_range(ids, config().vocabulary, "a token's id is not below its vocabulary of {}");
    if (input.token_types.defined())
      check_range(input.token_types, config().token_types, "a token's type is not below its {} types");
    if (input.positions.defined())
      check_range(input.positions, config().max_positions, "a position is not below its {} positions");
    else if (ids.size(1) > config().max_positions)
      throw UsageError(
          info().name,
          fmt::format("{} tokens are more than its {} positions", ids.size(1), config().max_positions),
          "use a shorter text");
  }

  at::Tensor embed(const ModelInput& input) const override {
    const at::Tensor& ids = input.token_ids;
    if (!ids.defined() || ids.is_cpu()) check(input);
    const at::Tensor types = input.token_types.defined() ? input.token_types : at::zeros_like(ids);
    const at::Tensor positions =
        input.positions.defined() ? input.positions : at::arange(ids.size(1), ids.options());
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
                       "check that its tokenizer belongs to it");
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
