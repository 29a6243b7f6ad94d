// Texts made of another text, with the way back from their bytes to its bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// What stands at a place of bytes that may be no UTF-8. `broken` bytes are to be read as one U+FFFD, as
// Python's bytes.decode("utf-8", "replace") and the Unicode standard (chapter 3.9, maximal subparts) do;
// those that are `cut` could still become a character if more bytes followed.
struct Utf8Part {
  enum class Kind { character, broken, cut };
  Kind kind = Kind::character;
  std::size_t length = 1; // bytes
};
Utf8Part utf8_part_at(std::string_view bytes, std::size_t at);

class AlignedText {
public:
  const std::string& text() const { return text_; }
  // The byte of the source that byte `offset` (0 to text().size()) comes from. Where characters were
  // replaced, their first byte comes from the source's first, all others from its end.
  std::size_t source(std::size_t offset) const;

  void keep(std::string_view part);                                // bytes as they stand in the source
  void replace(std::size_t source_bytes, std::string_view result); // bytes in place of the source's

private:
  struct Change {
    std::size_t begin, end, source_begin, source_end;
  };
  std::string text_;
  std::size_t source_size_ = 0;
  std::vector<Change> changes_;
};

// The text with U+FFFD in place of what is no UTF-8.
AlignedText with_replacements(std::string_view bytes);
bool is_utf8(std::string_view bytes);

// Normalization form C of valid UTF-8, as the reference's tables have it: characters newer than they stay as
// they are.
AlignedText composed(std::string_view text);

} // namespace hydrascope
