// tokenizer.json of a byte-level BPE, and a text through it.
#include "engine/models/tokenizer/byte_pair.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    fuzz::file("tokenizer.json", fuzz::text_of(data, size));
    const BytePair tokenizer = load_byte_pair(fuzz::folder());
    for (const BytePairToken& token : tokenizer.encode("Don't \xc3\xa9\xf0\x9f\x99\x82\xff  stop \r\n 12345"))
      tokenizer.bytes(token.id);
  });
}
