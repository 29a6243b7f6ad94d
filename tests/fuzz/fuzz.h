// What the fuzz targets share: each is a reader that may refuse its input by an Error, and by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
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
