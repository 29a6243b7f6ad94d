#include "engine/base/jpeg.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace hydrascope {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint32_t number(Bytes bytes, bool little_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = (value << 8) | bytes[little_endian ? bytes.size() - 1 - i : i];
  return value;
}

// The orientation (tag 0x0112) in the first directory of a TIFF block.
int orientation_of_tiff(Bytes tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I';
  const std::size_t directory = number(tiff.subspan(4, 4), little);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t entries = number(tiff.subspan(directory, 2), little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 1;
    if (number(tiff.subspan(at, 2), little) != 0x0112) continue;
    const auto value = static_cast<int>(number(tiff.subspan(at + 8, 2), little));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

constexpr std::uint8_t mark = 0xff, start_of_image = 0xd8, end_of_image = 0xd9, start_of_scan = 0xda,
                       first_frame = 0xc0, progressive_frame = 0xc2, huffman_tables = 0xc4,
                       application_1 = 0xe1, first_restart = 0xd0, last_restart = 0xd7;

// Of the tables that begin within a DHT segment, given from its length on; what is cut off counts as 0.
bool is_sound_table_segment(const Bytes segment) {
  if (segment.size() < 2) return true;
  constexpr std::size_t head = 17; // class and number, then how many codes each of 16 lengths has
  constexpr int most_codes = 256;
  const std::size_t end = std::min<std::size_t>(number(segment.first(2), false), segment.size());
  for (std::size_t at = 2; at < end;) {
    const Bytes counts = segment.subspan(at + 1, std::min(head - 1, segment.size() - at - 1));
    const int codes = std::accumulate(counts.begin(), counts.end(), 0);
    if (codes > most_codes) return false;
    at += head + static_cast<std::size_t>(codes);
  }
  return true;
}

} // namespace

bool is_jpeg(const Bytes bytes) {
  const auto first = std::ranges::find_if(bytes, [](const std::uint8_t byte) { return byte != mark; });
  return first != bytes.begin() && first != bytes.end() && *first == start_of_image;
}

int exif_orientation(const Bytes jpeg) {
  if (jpeg.size() < 4 || jpeg[0] != mark || jpeg[1] != start_of_image) return 1;
  std::size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == mark) {
    const std::uint8_t marker = jpeg[at + 1];
    const std::size_t length = number(jpeg.subspan(at + 2, 2), false);
    if (marker == start_of_scan || length < 2 || at + 2 + length > jpeg.size())
      return 1; // the image data start
    const Bytes segment = jpeg.subspan(at + 4, length - 2);
    constexpr std::array<std::uint8_t, 6> exif{'E', 'x', 'i', 'f', 0, 0};
    if (marker == application_1 && segment.size() >= exif.size() &&
        std::ranges::equal(segment.first(exif.size()), exif))
      return orientation_of_tiff(segment.subspan(exif.size()));
    at += 2 + length;
  }
  return 1;
}

// Segments by their lengths, and after the head of a scan its coded data, which ends before the next marker
// that is neither filling nor a restart.
const char* why_not_decoded(const Bytes jpeg) {
  constexpr int most_scans = 4, most_progressive = 64;
  bool coded = false, progressive = false;
  int frames = 0, scans = 0;
  for (std::size_t at = 0; at + 2 <= jpeg.size();) {
    const std::uint8_t marker = jpeg[at + 1];
    const bool restart = marker >= first_restart && marker <= last_restart;
    if (jpeg[at] != mark || marker == mark || marker == 0 || (coded && restart)) {
      ++at;
      continue;
    }
    if (marker == end_of_image) return nullptr;
    const Bytes segment = jpeg.subspan(at + 2);
    if (marker == huffman_tables && !is_sound_table_segment(segment))
      return "a Huffman table of the JPEG has more than 256 codes";
    if (marker >= first_frame && marker <= progressive_frame && ++frames == 1)
      progressive = marker == progressive_frame;
    coded = marker == start_of_scan;
    if (coded && ++scans > (progressive ? most_progressive : most_scans))
      return "the JPEG has too many scans";
    at += 2;
    if (marker != start_of_image && segment.size() >= 2) at += number(segment.first(2), false);
  }
  return nullptr;
}

} // namespace hydrascope
