// Small models, pictures and texts, in a folder that is removed when the test ends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/measure/teacher_forced.h"
#include "engine/training/loop/training.h"

namespace hydrascope::testing {

// A folder of its own, also used as the cache folder, removed at the end.
class ToyFolder {
public:
  ToyFolder();
  ~ToyFolder();
  ToyFolder(const ToyFolder&) = delete;
  ToyFolder& operator=(const ToyFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

// A tiny random model ("bert" or "dinov2": two layers, width 24; "written", a decoder: three layers, four
// heads that share two key/value heads, width 32) whose queries and keys are large enough for attention that
// is not nearly uniform. Returns its folder.
std::filesystem::path make_toy_model(const ToyFolder& folder, const std::string& family);

// A folder with sub-folders red, green and blue of `count` noisy pictures each (PPM, 30 × 30).
std::filesystem::path make_toy_pictures(const ToyFolder& folder, int count);

// A file with lines of made-up words.
std::filesystem::path make_toy_text(const ToyFolder& folder, int lines);

// Sentences of words that the text model of make_toy_model knows, of several lengths.
const std::vector<std::string>& toy_sentences();

// A table of label, first and second text, with a header. Letters of the first half of the alphabet are of
// one class, those of the second of the other.
std::filesystem::path make_toy_table(const ToyFolder& folder, int lines);

// Running text of so many sentences, in an order that can be learnt.
std::filesystem::path make_running_text(const ToyFolder& folder, const std::string& name, int sentences);

DistillRequest toy_distillation(const ToyFolder& folder);
FinetuneRequest toy_finetuning(const ToyFolder& folder);
// Trains a tail, and asks for another training that starts from it, with this --replace.
FinetuneRequest toy_finetuning_after_a_tail(const ToyFolder& folder, const char* replaced);
// Next tokens of running text by the decoder, in pieces of 32 tokens.
FinetuneRequest toy_next_tokens(const ToyFolder& folder);
// Of the sentences, a line each, by a text model; `kernels` as a comma list.
TeacherForcedRequest toy_measuring(const ToyFolder& folder, const std::string& kernels);

} // namespace hydrascope::testing
