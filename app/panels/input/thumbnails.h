// Small squares of pictures, made on a thread of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "app/ui/graphics.h"
#include "engine/base/image.h"

namespace hydrascope::app {

// The whole picture's centre square, `side` pixels wide, made small by averaging.
Image thumbnail_of(const Image& whole, int side);

class Thumbnails {
public:
  explicit Thumbnails(int side);
  ~Thumbnails();
  Thumbnails(const Thumbnails&) = delete;
  Thumbnails& operator=(const Thumbnails&) = delete;

  struct Thumbnail {
    PictureTexture picture;   // empty while it is being made
    std::string problem;      // why there will be none
    std::uint64_t wanted = 0; // when it was last asked for
  };
  // Asks for it where it is not known yet; what was asked for last comes first.
  Thumbnail& get(const std::filesystem::path& file);
  // Once per frame: takes what has been made. Returns whether more is to come.
  bool collect();

private:
  class Maker;
  std::map<std::filesystem::path, Thumbnail> known_;
  std::uint64_t frame_ = 0;
  std::unique_ptr<Maker> maker_;
};

} // namespace hydrascope::app
