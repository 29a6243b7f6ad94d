// A model with random weights, as a folder that transformers would read as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/models/transformer/checkpoint.h"

namespace hydrascope::training {

// What config.json says.
struct NewModel {
  std::string family; // "gpt2": next tokens; "bert": classes of texts; "vit": classes of pictures
  int layers = 1, heads = 1, width = 32, intermediate = 64;
  int positions = 0;               // texts: the greatest number of tokens
  int vocabulary = 0;              // texts
  int side = 0, patch = 1;         // pictures: pixels
  bool grey = false;               // pictures
  std::vector<std::string> labels; // of the classes
  int begin_token = -1, end_token = -1;
};

// Writes config.json, for pictures preprocessor_config.json, and model.safetensors: matrices normal with
// variance 1/(3·inputs), which is GPT-2's 0.02 at its width, in GPT-2 those before the residual stream
// divided by √(2·layers); embeddings with deviation 0.02; norms 1, biases 0. The same for the same seed.
// Throws UsageError (a width that the heads do not divide), Error (disk full).
void write_new_model(const std::filesystem::path& folder, const NewModel& model, std::uint64_t seed);

// Writes model.safetensors of a model of this family from its parameters by canonical names, with metadata
// beside the "format" that transformers asks for.
void write_weights(const std::filesystem::path& folder, const std::string& family,
                   const TensorMap& parameters, std::map<std::string, std::string> metadata = {});

// ---- Tokenizers: write the files, and return the size of the vocabulary ----

// A token for each byte, and one that ends a text: byte-level BPE without merges.
int write_byte_tokenizer(const std::filesystem::path& folder);
// The same between [CLS] and [SEP], as BERT reads a text.
int write_byte_classifier_tokenizer(const std::filesystem::path& folder);
// The words of ListOps, as WordPiece.
int write_listops_tokenizer(const std::filesystem::path& folder);
// Copies the tokenizer of another model. Throws Error if there is none.
struct CopiedTokenizer {
  int vocabulary = 0, begin_token = -1, end_token = -1;
};
CopiedTokenizer copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

} // namespace hydrascope::training
