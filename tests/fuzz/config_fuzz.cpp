// A model's config.json: vision transformers, BERT, timm's and decoders'.
#include "engine/models/transformer/config.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const std::filesystem::path file = fuzz::file("config.json", fuzz::text_of(data, size));
    info_of(read_config(file.parent_path()), file.parent_path());
  });
}
