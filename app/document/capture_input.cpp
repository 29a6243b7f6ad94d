#include "app/document/capture_input.h"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/image.h"

namespace hydrascope::app {

RunInput capture_input(const ModelInfo& capture, std::string* const note) {
  const CaptureInfo& recorded = *capture.capture;
  if (recorded.rows == 0) return TextInput{fmt::format("{}", fmt::join(recorded.texts, " ")), {}};
  if (!recorded.image.empty()) {
    try {
      return ImageInput{std::make_shared<const Image>(load_image(recorded.image)),
                        recorded.image.filename().string(), recorded.image};
    } catch (const Error& error) {
      if (note != nullptr) *note = error.what();
    }
  }
  constexpr int patch = 16;
  constexpr std::uint8_t grey = 128;
  Image even;
  even.width = static_cast<int>(recorded.columns) * patch;
  even.height = static_cast<int>(recorded.rows) * patch;
  even.rgb.assign(static_cast<std::size_t>(even.width) * static_cast<std::size_t>(even.height) * 3, grey);
  return ImageInput{std::make_shared<const Image>(std::move(even)), capture.name, {}};
}

} // namespace hydrascope::app
