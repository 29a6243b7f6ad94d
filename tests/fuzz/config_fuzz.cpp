// A model's config.json: vision transformers, BERT, timm's and decoders'. The same bytes are read as
// preprocessor_config.json, and a small picture is prepared by what each of the two says.
#include <algorithm>
#include <vector>

#include "engine/models/transformer/config.h"
#include "engine/models/vision/image_processor.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

namespace {

// A large picture takes long and finds nothing new.
bool is_small(const ImageProcessor& processor) {
  constexpr int most = 64;
  const auto fits = [](const auto& size) { return !size || std::ranges::max(*size) <= most; };
  return fits(processor.exact) && fits(processor.crop) && processor.shortest_edge.value_or(0) <= most;
}

void prepare(const ImageProcessor& processor) {
  static const Image picture = [] {
    Image made{7, 5, std::vector<std::uint8_t>(std::size_t{3} * 7 * 5)};
    for (std::size_t i = 0; i < made.rgb.size(); ++i) made.rgb[i] = static_cast<std::uint8_t>(37 * i);
    return made;
  }();
  for (const ImageProcessor& sized : {processor, processor.with_size(8)})
    if (is_small(sized)) process_image(picture, sized, {});
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  const std::filesystem::path folder = fuzz::folder();
  const std::string_view text = fuzz::text_of(data, size);
  std::filesystem::remove(folder / "preprocessor_config.json");
  fuzz::file("config.json", text);
  fuzz::accepts_or_refuses([&] {
    const ModelConfig config = read_config(folder);
    if (info_of(config, folder).input == InputKind::image) prepare(read_image_processor(folder, config));
  });
  fuzz::file("preprocessor_config.json", text);
  return fuzz::accepts_or_refuses([&] { prepare(read_image_processor(folder, ModelConfig{})); });
}
