#include "engine/base/pnm.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

using Bytes = std::span<const std::uint8_t>;

bool is_blank(const std::uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Width, height and largest number, which blanks and comments separate.
class Header {
public:
  Header(const Bytes bytes, const std::string& subject) : bytes_(bytes), subject_(subject) {}

  std::int64_t next(const char* name, const std::int64_t most) {
    skip();
    std::int64_t number = 0;
    const std::size_t first = at_;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9' && number <= most; ++at_)
      number = 10 * number + (bytes_[at_] - '0');
    if (at_ == first || number < 1 || number > most)
      throw BrokenFile(subject_, fmt::format("its {} is no number from 1 to {}", name, most),
                       "fetch it again");
    return number;
  }
  // After one blank.
  Bytes rest() const { return at_ < bytes_.size() ? bytes_.subspan(at_ + 1) : Bytes(); }

private:
  void skip() {
    for (bool comment = false; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] == '#') comment = true;
      if (bytes_[at_] == '\n' || bytes_[at_] == '\r') comment = false;
      if (!comment && !is_blank(bytes_[at_])) return;
    }
  }

  Bytes bytes_;
  const std::string& subject_;
  std::size_t at_ = 2;
};

} // namespace

bool is_pnm(const Bytes bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6') &&
         (is_blank(bytes[2]) || bytes[2] == '#');
}

Image decode_pnm(const Bytes bytes, const std::string& subject, const std::int64_t most_pixels) {
  constexpr std::int64_t most_side = 1 << 24, most_number = 65'535, one_byte = 255;
  Header header(bytes, subject);
  const std::int64_t width = header.next("width", most_side), height = header.next("height", most_side);
  const std::int64_t largest = header.next("largest number", most_number);
  check_pixels(width, height, most_pixels, subject);
  const std::size_t channels = bytes[1] == '6' ? 3 : 1, size = largest > one_byte ? 2 : 1;
  const auto pixels = static_cast<std::size_t>(width * height);
  const Bytes numbers = header.rest();
  if (numbers.size() < pixels * channels * size)
    throw BrokenFile(
        subject, fmt::format("is truncated: it has {} bytes of {}", numbers.size(), pixels * channels * size),
        "fetch it again");
  Image image{static_cast<int>(width), static_cast<int>(height), {}};
  image.rgb.resize(3 * pixels);
  for (std::size_t i = 0; i < image.rgb.size(); ++i) {
    const std::size_t at = (channels == 3 ? i : i / 3) * size;
    const std::int64_t number = size == 1 ? numbers[at] : 256 * std::int64_t{numbers[at]} + numbers[at + 1];
    image.rgb[i] = static_cast<std::uint8_t>(std::min(one_byte, (number * one_byte + largest / 2) / largest));
  }
  return image;
}

} // namespace hydrascope
