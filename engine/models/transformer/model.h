// A transformer as a sequence of steps: embed, block 0 … L−1, head. The caller runs the steps, so that it can
// cache the hidden state before any block, stop between blocks, and inspect each block's attention.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/image.h"
#include "engine/models/model_info.h"

namespace hydrascope {

class DecodingState; // engine/attention/interface/decoding.h

struct TextToken {
  std::string text; // the word piece as in the vocabulary ("##ing", "[CLS]")
  int word = -1;    // index of the whitespace-and-punctuation word it belongs to, −1 for special tokens
  bool special = false;
};

// The crop of the original picture that the model sees, in the original's pixels.
struct CropBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// The input of a model: pixels, or token ids.
struct ModelInput {
  at::Tensor pixels;      // images: (B,3,H,W) float32, normalised
  at::Tensor token_ids;   // text: (B,N) int64
  at::Tensor token_types; // text: (B,N) int64
  at::Tensor mask;        // text: (B,N) bool; undefined = all real
  at::Tensor positions;   // text: (N) int64, the tokens' positions; undefined = first_position + 0 … N−1
  std::int64_t first_position = 0; // decoders: number of tokens before these, which decoding states hold
  at::Tensor read; // decoders: (P) int64, the tokens of the batch's B·N that logits() reads; undefined: all
  TokenLayout layout;
  std::vector<TextToken> tokens; // text, B = 1
  CropBox crop;                  // images, B = 1
  std::string note;              // e.g. "text cut at 512 tokens"; empty if nothing to say
};

// Input and output of one block's attention; filled only if a caller passes one.
struct AttentionTap {
  AttentionInput input; // q, k, v, layer_input, mask, layout
  at::Tensor out;       // (B,H,N,d), before the kernel's finish(); a leaf or node of the graph, at which g is
                        // taken, when gradients are enabled
  std::string path;
  RowCount zero_denominators = {};
  // Set by the caller; false: leaves `input` and `out` undefined, so that the kernel's leading maps may be
  // folded into q and k.
  bool reads_attention = true;
};

// Options of running a block.
struct BlockOptions {
  AttentionTap* tap = nullptr;     // filled if there is one
  std::span<const int> muted = {}; // heads whose output is 0 in the input of W_o
  // For the last block: computes the output of the first T tokens that logits() reads only, (B,T,D). If that
  // is the class token, the MLP of all others, two thirds of the block, is not computed.
  bool for_logits = false;
  // Decoders: the layer's state of the tokens before these, which receives these. Without gradients, and no
  // tap reads the attention.
  DecodingState* state = nullptr;
};

// The text of tokens that come one by one.
class TokenStream {
public:
  TokenStream() = default;
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;
  virtual ~TokenStream() = default;
  // The characters that have become whole with this token, as UTF-8.
  virtual std::string add(std::int64_t id) = 0;
  // What is left: U+FFFD for bytes that are no whole character.
  virtual std::string finish() = 0;
};

class Model {
public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Image pre-processing as the folder's preprocessor_config.json says (or the family's default);
  // `image_size` overrides the size. Throws UsageError for a size that is not possible.
  virtual ModelInput prepare_image(const Image& image, std::optional<int> image_size = {}) const;
  // WordPiece; `second` joins a pair. Cut at the position table's length, with a note.
  virtual ModelInput prepare_text(const std::string& text,
                                  const std::optional<std::string>& second = {}) const;

  // A decoder's tokens of a text, however long it is. Throws UsageError for other models.
  virtual std::vector<std::int64_t> text_ids(const std::string& text) const;

  // The input that a capture was recorded with. Throws UsageError for a model that runs.
  virtual ModelInput recorded_input() const;

  // The input with some of its tokens hidden. A word piece becomes padding: its mask is false, so that no
  // token attends to it and pooling omits it. A patch gets the mean colour (0 after normalisation), as in
  // occlusion tests (Zeiler and Fergus 2014). Throws UsageError for tokens that do not exist and for the
  // first tokens, which the classifier reads ([CLS], the prefix tokens).
  virtual ModelInput with_hidden(ModelInput input, std::span<const std::int64_t> tokens) const;

  // Checks the ids, types and positions of an input on the CPU. Throws UsageError for those that the model
  // lacks.
  virtual void check(const ModelInput& /*input*/) const {}

  // hidden.0: (B,N,D), of an input on the model's device. An input on the CPU is checked. Position embeddings
  // are interpolated bicubically where the size differs.
  virtual at::Tensor embed(const ModelInput& input) const = 0;
  // The output of block `layer`; run_pass() (engine/run/pass.h) runs one after another. Runs packed
  // oneDNN weights when gradients are disabled, differentiable otherwise.
  virtual at::Tensor block(int layer, const at::Tensor& hidden, const ModelInput& input, const Kernel& kernel,
                           const KernelParameters& kernel_parameters,
                           const BlockOptions& options = {}) const = 0;
  // Logits (B,C) of the classifier ((B,N,V) for a masked-LM head; a decoder's (P,V) of the tokens that
  // ModelInput::read names); undefined without one.
  virtual at::Tensor logits(const at::Tensor& hidden, const ModelInput& input) const = 0;
  // What output `index` of logits() stands for: the label of a class, or "class n"; a decoder's token.
  virtual std::string output_label(std::int64_t index) const;
  // The output that is this text as one token; nullopt if there is none, or the outputs are classes.
  virtual std::optional<std::int64_t> output_named(const std::string& /*text*/) const { return std::nullopt; }
  // Decoders: the text of tokens, and whether a token ends a text. Other models throw UsageError.
  virtual std::unique_ptr<TokenStream> token_stream() const;
  virtual bool ends_text(std::int64_t /*id*/) const { return false; }
  // The last hidden state after the final LayerNorm where the model has one: (B,N,D).
  virtual at::Tensor final_hidden(const at::Tensor& hidden) const = 0;

  // Trained parameters of `kernel` in `layer` from an adapter; empty if there are none (then the kernel's
  // initial parameters apply).
  virtual KernelParameters kernel_parameters(int layer, const KernelSpec& kernel) const = 0;

  // W_o of a block, (D,D) as (out,in), with the model's LayerScale, if any, folded into its rows: maps the
  // heads' outputs to the block's addition to the hidden state.
  virtual at::Tensor attention_output_weight(int layer) const = 0;

  // All parameters by canonical name (Hugging Face's, without the `bert.`/`vit.`/`deit.`/`dinov2.` prefix).
  virtual std::vector<std::string> parameter_names() const = 0;
  virtual at::Tensor parameter(const std::string& name) const = 0;
  // Where the parameters lie: inputs and kernels' parameters have to lie there, too.
  virtual at::Device device() const = 0;
  // All parameters and those of kernels, by the names of with_parameters().
  virtual std::map<std::string, at::Tensor> tensors() const = 0;
  // A model that shares everything with this one but the named parameters (training's leaves, an adapter's
  // tensors; unknown names are an error, except classifier.* on a backbone without classifier, which adds one
  // on [class token, mean patch token], and kernel.LAYER.KERNEL.NAME, which kernel_parameters serves).
  // `labels` name the classifier's outputs, which are classes then; `image_size` > 0 becomes the size that
  // pre-processing gives by default. Throws Error (unknown name, wrong shape).
  virtual std::shared_ptr<const Model> with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                                       const std::vector<std::string>& labels = {},
                                                       int image_size = 0) const = 0;
  // Throws Error if a file that parameters lie in could not be read to its end: whatever was computed from
  // them is void. Fast as long as no mapping of the process is lost.
  virtual void require_files() const;
  // sha256 of the base weights' file (computed once, on first use).
  virtual const std::string& hash() const = 0;
};

// Loads a Hugging Face folder (config.json, model.safetensors or shards with their index, vocab.txt or
// tokenizer.json, preprocessor_config.json). Weights stay mapped; the packed copies are made on first use.
// Throws Error, ForeignFile, BrokenFile (naming missing tensors and wrong shapes).
std::shared_ptr<const Model> load_model(const std::filesystem::path& folder);

// Applies an adapter's file over a model. Throws BrokenFile if it does not fit over `applied`, hashes of the
// adapters applied before (fits_over).
std::shared_ptr<const Model> apply_adapter(const std::shared_ptr<const Model>& model,
                                           const AdapterInfo& adapter,
                                           const std::vector<std::string>& applied);

} // namespace hydrascope
