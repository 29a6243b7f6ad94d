// vocab.txt of a WordPiece tokenizer, after a line with the text that it encodes.
#include <algorithm>

#include "engine/models/tokenizer/wordpiece.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  const std::string_view all = fuzz::text_of(data, size);
  const std::size_t end = std::min(all.find('\n'), all.size());
  return fuzz::accepts_or_refuses([&] {
    fuzz::file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + std::string(all.substr(end)));
    load_wordpiece(fuzz::folder()).encode(all.substr(0, end), "second");
  });
}
