// A line of text and the WordPiece tokenizer that encodes it, in parts: vocab.txt behind the special tokens,
// tokenizer_config.json, and tokenizer.json, which is read in place of vocab.txt.
#include <algorithm>

#include "engine/models/tokenizer/wordpiece.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  const std::string_view all = fuzz::text_of(data, size);
  const std::size_t end = std::min(all.find('\n'), all.size());
  return fuzz::accepts_or_refuses([&] {
    std::string_view parts = all.substr(end);
    fuzz::file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + std::string(fuzz::next(parts)));
    fuzz::files(parts, {"tokenizer_config.json", "tokenizer.json"});
    load_wordpiece(fuzz::folder()).encode(all.substr(0, end), "second");
  });
}
