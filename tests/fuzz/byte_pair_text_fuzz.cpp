// Texts of any bytes, split and encoded by a small byte-level BPE.
#include "engine/models/tokenizer/byte_pair.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  static const BytePair tokenizer = [] {
    fuzz::file("tokenizer.json",
               R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4, "1": 5,
      "Ċ": 6, "Ã": 7, "©": 8, "Ã©": 9}, "merges": ["a b", "Ġ a", "Ã ©"], "unk_token": null},
      "added_tokens": [{"id": 10, "content": "<s>", "special": true, "lstrip": true, "rstrip": true}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "decoder": {"type": "ByteLevel"}})");
    return load_byte_pair(fuzz::folder());
  }();
  return fuzz::accepts_or_refuses([&] {
    TextStream stream(tokenizer, true);
    for (const BytePairToken& token : tokenizer.encode(fuzz::text_of(data, size))) stream.put(token.id);
    stream.finish();
  });
}
