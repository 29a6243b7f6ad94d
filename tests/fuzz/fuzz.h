// What the fuzz targets share: each is a reader that may refuse its input by an Error, and by nothing else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope::fuzz {

inline std::string_view text_of(const std::uint8_t* data, const std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Of this process, in memory.
inline std::filesystem::path folder() {
  struct Folder {
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path = fmt::format("/dev/shm/hydrascope-fuzz-{}", getpid());
  };
  static const Folder made;
  return made.path;
}

// folder()/name with these bytes.
inline std::filesystem::path file(const char* name, const std::string_view bytes) {
  const std::filesystem::path path = folder() / name;
  std::FILE* const out = std::fopen(path.c_str(), "wb");
  if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) std::abort();
  std::fclose(out);
  return path;
}

// Between the parts of an input.
inline constexpr std::string_view divider = "\n====\n";

// The text up to the next `mark`, which is removed with it.
inline std::string_view next(std::string_view& text, const std::string_view mark = divider) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view before = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + mark.size()));
  return before;
}

// Each part becomes one of these files of folder(), in their order. A file whose part is missing or empty is
// not there.
inline void files(std::string_view parts, const std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const std::string_view part = next(parts); part.empty())
      std::filesystem::remove(folder() / name);
    else
      file(name, part);
  }
}

template <typename Read>
int accepts_or_refuses(const Read& read) {
  try {
    read();
  } catch (const Error&) { // refused
  }
  return 0;
}

// For what the program has written itself.
template <typename Read>
void must_accept(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    std::fprintf(stderr, "what was written is refused: %s\n", error.what());
    std::abort();
  }
}

} // namespace hydrascope::fuzz
