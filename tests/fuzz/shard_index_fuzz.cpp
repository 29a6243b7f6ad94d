// The index of a checkpoint in several files, beside two good ones: whether all are there, and their tensors
// under canonical names. A second part is a file of its own, x.safetensors.
#include <array>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "engine/base/safetensors.h"
#include "engine/models/hub/hub_cache.h"
#include "engine/models/transformer/checkpoint.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  at::set_num_threads(1); // one target runs on each processor
  static constexpr std::array<std::byte, 4> number{};
  fuzz::file("config.json", "{}");
  for (const auto& [tensor, name] : {std::pair{"a", "model-00001-of-00002.safetensors"},
                                     std::pair{"b", "model-00002-of-00002.safetensors"}})
    write_safetensors(fuzz::folder() / name, {{tensor, {ElementType::f32, {1}, number}}});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    std::string_view parts = fuzz::text_of(data, size);
    fuzz::file("model.safetensors.index.json", fuzz::next(parts));
    fuzz::file("x.safetensors", parts);
    is_complete_model(fuzz::folder());
    try {
      read_checkpoint(fuzz::folder());
    } catch (const c10::Error&) { // load_model() makes it an error of the files
    }
  });
}
