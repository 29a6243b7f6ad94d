// The JSON of a written text in a session. Include in .cpp files only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/document/json_codec.h"
#include "app/views/writing_view.h"

namespace hydrascope::app {

// The tokens by their numbers, in lists of one length.
struct StoredSide {
  std::string schedule, kernel;
  bool fits = false; // the document's kernels wrote it, and can go on
  std::int64_t prompt_tokens = 0;
  double prefill_ms = 0;
  std::string text, ended, problem;
  std::vector<int> ids;
  std::vector<std::string> tokens, texts;
  std::vector<double> logprobs, ms;
  std::vector<std::int64_t> state_bytes;
};
template <typename Fields, Is<StoredSide> S>
void describe(Fields& fields, S& side) {
  fields("schedule", side.schedule);
  fields("kernel", side.kernel);
  fields("fits", side.fits);
  fields("prompt_tokens", side.prompt_tokens, Bounds{.least = 0});
  fields("prefill_ms", side.prefill_ms, Bounds{.least = 0});
  fields("text", side.text);
  fields("ended", side.ended);
  fields("problem", side.problem);
  fields("ids", side.ids);
  fields("tokens", side.tokens);
  fields("texts", side.texts);
  fields("logprobs", side.logprobs);
  fields("ms", side.ms);
  fields("state_bytes", side.state_bytes);
}

struct StoredWriting {
  std::string model, prompt;
  std::vector<StoredSide> sides; // A, B; A alone if both have the same schedule
};
template <typename Fields, Is<StoredWriting> S>
void describe(Fields& fields, S& writing) {
  fields("model", writing.model);
  fields("prompt", writing.prompt);
  fields("sides", writing.sides);
}

StoredWriting stored_writing(const Writing& writing, const Document& document);
// What is stored is checked: the tokens of a side whose lists differ in length are left out.
Writing read_writing(const StoredWriting& stored, const Document& document, std::vector<std::string>& notes);

} // namespace hydrascope::app
