// Decoders: token embeddings, with learned positions where they are not rotary, blocks of causal attention, a
// final norm, and logits over the vocabulary. Follows transformers' modeling_gpt2 and modeling_llama.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "engine/models/transformer/encoder.h"

namespace hydrascope {
namespace {

ExpectedParameters decoder_parameters(const ModelConfig& config) {
  ExpectedParameters expected;
  const std::int64_t width = config.width, vocabulary = config.vocabulary;
  expected["embed_tokens.weight"] = {{vocabulary, width}, true};
  if (!config.rotary) expected["embed_positions.weight"] = {{config.max_positions, width}, true};
  expect_layers(config, expected);
  expected["norm.weight"] = {{width}, true};
  if (!config.rms_norm) expected["norm.bias"] = {{width}, true};
  if (!config.tied_head) expected["lm_head.weight"] = {{vocabulary, width}, true};
  if (config.family == "decoder") expected["lm_head.bias"] = {{vocabulary}, true};
  return expected;
}

// A tied head is often stored as well.
Checkpoint without_tied_head(Checkpoint checkpoint, const ModelConfig& config) {
  if (config.tied_head) checkpoint.tensors.erase("lm_head.weight");
  return checkpoint;
}

// The folder's tokenizer, read with the first text: models without one can still be inspected. Safe to call
// from several threads.
class LazyTokenizer {
public:
  LazyTokenizer(std::filesystem::path folder, const int vocabulary)
      : folder_(std::move(folder)), vocabulary_(vocabulary) {}

  // Throws what load_byte_pair() throws, BrokenFile (the tokenizer's ids do not fit the model).
  const BytePair& get() const {
    const std::lock_guard lock(mutex_);
    if (!tokenizer_) {
      auto loaded = std::make_unique<const BytePair>(load_byte_pair(folder_));
      if (loaded->largest_id() >= vocabulary_)
        throw BrokenFile(folder_.string(),
                         fmt::format("its tokenizer has ids up to {}, but the model's vocabulary is {}",
                                     loaded->largest_id(), vocabulary_),
                         "check that tokenizer and weights belong together");
      tokenizer_ = std::move(loaded);
    }
    return *tokenizer_;
  }

private:
  std::filesystem::path folder_;
  int vocabulary_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const BytePair> tokenizer_;
};

class DecoderStream final : public TokenStream {
public:
  explicit DecoderStream(std::shared_ptr<const LazyTokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), stream_(tokenizer_->get()) {}

  std::string add(const std::int64_t id) override { return stream_.put(static_cast<int>(id)); }
  std::string finish() override { return stream_.finish(); }

private:
  std::shared_ptr<const LazyTokenizer> tokenizer_; // outlives the stream
  TextStream stream_;
};

bool is_space(const char byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

class Decoder final : public Encoder {
public:
  Decoder(const ModelConfig& model_config, const std::filesystem::path& folder, const Checkpoint& checkpoint)
      : Encoder(model_config, folder, checkpoint, decoder_parameters(model_config)),
        tokenizer_(std::make_shared<LazyTokenizer>(folder, model_config.vocabulary)) {
    rebuild();
    set_outputs();
  }

  ModelInput prepare_text(const std::string& text, const std::optional<std::string>& second) const override {
    if (second)
      throw UsageError(info().name, "goes on with one text and takes no pair", "give both as one text");
    const BytePair& tokenizer = tokenizer_->get();
    std::vector<BytePairToken> pieces = tokenizer.encode(text);
    if (pieces.empty()) // a model reads at least one token
      if (const auto begin = tokenizer.begin()) pieces.push_back({.id = *begin});
    if (pieces.empty()) throw UsageError("text", "is empty", "give a text of at least one character");
    ModelInput input;
    const auto limit = static_cast<std::size_t>(config().max_positions);
    if (pieces.size() > limit) {
      input.note = fmt::format("text cut at {} of {} tokens", limit, pieces.size());
      pieces.resize(limit);
    }
    std::vector<std::int64_t> ids;
    int word = -1;
    bool begins = true; // a word: after white space or a special token
    for (const BytePairToken& piece : pieces) {
      ids.push_back(piece.id);
      const bool special = piece.begin < 0 || tokenizer.special(piece.id);
      const bool empty = piece.begin == piece.end;
      begins = begins || special || (!empty && is_space(text[static_cast<std::size_t>(piece.begin)]));
      if (!special && begins) ++word;
      input.tokens.push_back({tokenizer.token(piece.id), special ? -1 : word, special});
      begins = special || (!empty && is_space(text[static_cast<std::size_t>(piece.end - 1)]));
    }
    input.token_ids = at::tensor(ids, at::kLong).unsqueeze(0);
    return input;
  }

  std::vector<std::int64_t> text_ids(const std::string& text) const override {
    std::vector<std::int64_t> ids;
    for (const BytePairToken& piece : tokenizer_->get().encode(text)) ids.push_back(piece.id);
    return ids;
  }

  // The last token stays: the next one is predicted from it.
  ModelInput with_hidden(ModelInput input, std::span<const std::int64_t> tokens) const override {
    const std::int64_t count = input.token_ids.size(1);
    check_can_hide(tokens, 0, count);
    if (std::ranges::find(tokens, count - 1) != tokens.end())
      throw UsageError(fmt::format("hidden token {}", count - 1), "the next token is predicted from it",
                       fmt::format("choose one from 0 to {}", count - 2));
    at::Tensor mask = input.mask.defined()
                          ? input.mask.clone()
                          : at::ones_like(input.token_ids, at::TensorOptions().dtype(at::kBool));
    for (const std::int64_t token : tokens) mask.select(1, token).fill_(false);
    input.mask = mask;
    return input;
  }

  std::string output_label(const std::int64_t index) const override {
    return tokenizer_->get().token(static_cast<int>(index));
  }
  std::optional<std::int64_t> output_named(const std::string& text) const override {
    const std::vector<BytePairToken> pieces = tokenizer_->get().encode(text, /*special=*/false);
    if (pieces.size() != 1) return std::nullopt;
    return pieces.front().id;
  }

  std::unique_ptr<TokenStream> token_stream() const override {
    return std::make_unique<DecoderStream>(tokenizer_);
  }
  bool ends_text(const std::int64_t id) const override {
    return std::ranges::find(tokenizer_->get().ends(), id) != tokenizer_->get().ends().end();
  }

  void check(const ModelInput& input) const override {
    const at::Tensor& ids = input.token_ids;
    if (!ids.defined() || ids.dim() != 2)
      throw UsageError(info().name, "takes a text", "give a text, not a picture");
    check_ids(ids, config().vocabulary, "a token's id is not below its vocabulary of {}");
    if (input.positions.defined())
      check_ids(input.positions, config().max_positions, "a position is not below its {} positions");
    else if (input.first_position + ids.size(1) > config().max_positions)
      throw UsageError(info().name,
                       fmt::format("{} tokens are more than its {} positions",
                                   input.first_position + ids.size(1), config().max_positions),
                       "use a shorter text");
  }

  at::Tensor embed(const ModelInput& input) const override {
    const at::Tensor& ids = input.token_ids;
    if (!ids.defined() || ids.is_cpu()) check(input);
    const at::Tensor embedded = at::embedding(find("embed_tokens.weight"), ids);
    if (config().rotary) return embedded;
    const at::Tensor positions =
        input.positions.defined()
            ? input.positions
            : at::arange(input.first_position, input.first_position + ids.size(1), ids.options());
    return embedded + at::embedding(find("embed_positions.weight"), positions);
  }

  at::Tensor final_hidden(const at::Tensor& hidden) const override { return norm("norm")(hidden); }

  // (B,N,V) of all tokens, or (P,V) of those that ModelInput::read names.
  at::Tensor logits(const at::Tensor& hidden, const ModelInput& input) const override {
    const bool reads = input.read.defined() && hidden.dim() == 3;
    return (*head_)(final_hidden(reads ? hidden.flatten(0, 1).index_select(0, input.read) : hidden));
  }

protected:
  std::shared_ptr<Encoder> copy() const override { return std::make_shared<Decoder>(*this); }
  void rebuild_ends() override { rebuild(); }
  TokenLayout layout_of(const ModelInput& /*input*/) const override { return {}; }
  std::int64_t tokens_read() const override { return 0; }

private:
  void check_ids(const at::Tensor& values, const int limit, const char* message) const {
    if (values.numel() > 0 &&
        (values.min().item<std::int64_t>() < 0 || values.max().item<std::int64_t>() >= limit))
      throw UsageError(info().name, fmt::format(fmt::runtime(message), limit),
                       "check that its tokenizer belongs to it");
  }

  void rebuild() {
    const Linear::Part head =
        config().tied_head ? Linear::Part{find("embed_tokens.weight"), at::Tensor()} : part("lm_head");
    head_ = std::make_shared<const Linear>(std::vector<Linear::Part>{head});
  }

  std::shared_ptr<const LazyTokenizer> tokenizer_;
  std::shared_ptr<const Linear> head_; // shared by copies, packed once
};

} // namespace

std::shared_ptr<const Model> make_decoder(const ModelConfig& config, TensorMap parameters) {
  return std::make_shared<Decoder>(config, "decoder", Checkpoint{std::move(parameters), {}, {}});
}

std::shared_ptr<const Model> make_decoder(const ModelConfig& config, const std::filesystem::path& folder,
                                          const Checkpoint& checkpoint) {
  return std::make_shared<Decoder>(config, folder, without_tied_head(checkpoint, config));
}

} // namespace hydrascope
