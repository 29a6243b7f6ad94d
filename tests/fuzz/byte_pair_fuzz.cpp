// The files of a byte-level BPE, one part each, and a text through it. Without tokenizer.json, vocab.json and
// merges.txt are read, as GPT-2's.
#include "engine/models/tokenizer/byte_pair.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    fuzz::files(fuzz::text_of(data, size), {"tokenizer.json", "tokenizer_config.json", "vocab.json",
                                            "merges.txt", "added_tokens.json", "generation_config.json"});
    has_byte_pair(fuzz::folder());
    const BytePair tokenizer = load_byte_pair(fuzz::folder());
    for (const BytePairToken& token : tokenizer.encode("Don't \xc3\xa9\xf0\x9f\x99\x82\xff  stop \r\n 12345"))
      tokenizer.bytes(token.id);
  });
}
