// Animated pictures as WebP.
#pragma once

#include <memory>
#include <string>

#include "engine/base/image.h"

namespace hydrascope {

// Encodes pictures of one size, each shown for its own time, in a loop without end. Equal neighbours become
// one.
class Animation {
public:
  // In pixels, each from 1 to 16383. Throws Error.
  Animation(int width, int height);
  ~Animation();
  Animation(const Animation&) = delete;
  Animation& operator=(const Animation&) = delete;

  // Throws Error if the picture has another size.
  void add(const Image& picture, int milliseconds);
  int milliseconds() const { return end_; } // of all pictures together
  // The bytes of the file; nothing can be added afterwards. Throws Error without a picture.
  std::string finish();

private:
  struct Encoder;
  std::unique_ptr<Encoder> encoder_;
  Image last_;
  int end_ = 0; // of last_
};

} // namespace hydrascope
