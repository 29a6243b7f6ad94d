#include "app/document/writing_codec.h"

#include <algorithm>

#include "app/document/writing_edits.h"

namespace hydrascope::app {

StoredWriting stored_writing(const Writing& writing, const Document& document) {
  StoredWriting stored{.model = writing.model, .prompt = writing.prompt, .sides = {}};
  for (std::size_t index = 0; index < writing.count(); ++index) {
    const WrittenSide& side = writing.sides[index];
    StoredSide own;
    own.schedule = side.schedule;
    own.kernel = side.kernel;
    own.fits = writing.setups[index] == writing_setup(document, static_cast<Side>(index));
    own.prompt_tokens = side.prompt_tokens;
    own.prefill_ms = side.prefill_ms;
    own.text = side.text;
    own.ended = side.ended;
    own.problem = side.problem;
    for (const WrittenToken& token : side.tokens) {
      own.ids.push_back(token.id);
      own.tokens.push_back(token.name);
      own.texts.push_back(token.text);
      own.logprobs.push_back(token.logprob);
      own.ms.push_back(token.ms);
      own.state_bytes.push_back(token.state_bytes);
    }
    stored.sides.push_back(std::move(own));
  }
  return stored;
}

Writing read_writing(const StoredWriting& stored, const Document& document, std::vector<std::string>& notes) {
  Writing writing;
  writing.model = stored.model;
  writing.prompt = stored.prompt;
  writing.alike = stored.sides.size() == 1;
  for (std::size_t index = 0; index < std::min<std::size_t>(stored.sides.size(), 2); ++index) {
    const StoredSide& own = stored.sides[index];
    WrittenSide& side = writing.sides[index];
    side.schedule = own.schedule;
    side.kernel = own.kernel;
    const std::size_t count = own.ids.size();
    if (own.tokens.size() != count || own.texts.size() != count || own.logprobs.size() != count ||
        own.ms.size() != count || own.state_bytes.size() != count) {
      notes.push_back(fmt::format("/writing/sides/{}: its lists differ in length, and are left out", index));
      continue;
    }
    side.prompt_tokens = own.prompt_tokens;
    side.prefill_ms = own.prefill_ms;
    side.text = own.text;
    side.ended = own.ended;
    side.problem = own.problem;
    for (std::size_t i = 0; i < count; ++i)
      side.tokens.push_back({.id = own.ids[i],
                             .name = own.tokens[i],
                             .text = own.texts[i],
                             .logprob = own.logprobs[i],
                             .ms = own.ms[i],
                             .state_bytes = own.state_bytes[i]});
    writing.wanted[index] = count;
    if (own.fits) writing.setups[index] = writing_setup(document, static_cast<Side>(index));
  }
  if (writing.alike) writing.setups[1] = writing.setups[0].empty() ? "" : writing_setup(document, Side::b);
  return writing;
}

} // namespace hydrascope::app
