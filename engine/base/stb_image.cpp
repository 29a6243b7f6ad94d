// The implementation of stb_image, whose warnings and harmless overflows are not ours
// (tests/fuzz/CMakeLists.txt).
#include "engine/base/picture_memory.h"

#if defined(__GNUC__)
  #pragma GCC diagnostic push
  #pragma GCC diagnostic ignored "-Wconversion"
  #pragma GCC diagnostic ignored "-Wsign-conversion"
  #pragma GCC diagnostic ignored "-Wshadow"
  #pragma GCC diagnostic ignored "-Wextra"
  #pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STBI_NO_HDR
#define STBI_NO_PIC
#define STBI_NO_PNM // it reads out of bounds for 16 bits, and accepts truncated files
#define STBI_NO_STDIO
#define STBI_MALLOC(bytes) hydrascope::PictureMemory::allocate(bytes)
#define STBI_REALLOC(memory, bytes) hydrascope::PictureMemory::reallocate(memory, bytes)
#define STBI_FREE(memory) hydrascope::PictureMemory::release(memory)
#define STBI_ASSERT(condition) ((condition) ? static_cast<void>(0) : throw hydrascope::PictureFault())
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#if defined(__GNUC__)
  #pragma GCC diagnostic pop
#endif
