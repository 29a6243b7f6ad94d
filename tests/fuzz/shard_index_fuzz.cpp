// The index of a checkpoint in several files: whether all are there.
#include "engine/models/hub/hub_cache.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    fuzz::file("config.json", "{}");
    fuzz::file("model-00001-of-00002.safetensors", "");
    const std::filesystem::path file = fuzz::file("model.safetensors.index.json", fuzz::text_of(data, size));
    is_complete_model(file.parent_path());
  });
}
