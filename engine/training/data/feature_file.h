// The file in which the features of a set of pictures are cached, filled piece by piece, by several processes
// at once where they train on the same pictures: on one machine, or on several that share the cache's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/files.h"

namespace hydrascope::training {

class FeatureFile {
public:
  // `key`: everything that the features depend on. Throws Error (the folder cannot be made).
  FeatureFile(const std::string& key, std::int64_t pictures, int copies, int pictures_a_piece);

  // As the last look at the file found it.
  std::int64_t filled() const; // pictures
  bool complete() const { return filled() == pictures_; }
  bool empty() const { return width_ == 0; } // not one picture that could be read
  const TokenLayout& layout() const { return layout_; }
  const std::map<std::int64_t, std::string>& skipped() const { return skipped_; } // pictures, and why

  // Pictures first … last−1, this process's to fill for as long as it holds them.
  struct Piece {
    ItemLock lock;
    std::int64_t index = 0, first = 0, last = 0;
    // To be filled in: (its pictures × copies, N, D) float16, undefined if none could be read; those skipped.
    at::Tensor hidden = {};
    TokenLayout layout = {};
    std::map<std::int64_t, std::string> skipped = {};
  };
  // One that is neither filled nor held by another; nothing if there is none now. Looks at the file again
  // where it holds one.
  std::optional<Piece> take();
  // Throws Cancelled, Error (disk full).
  void keep(const Piece& piece, const std::stop_token& stop);

  // (pictures × copies, N, D) float16, mapped; undefined if it is empty.
  at::Tensor map() const;

private:
  void look();
  void write(const Piece& piece, const std::stop_token& stop) const;

  std::filesystem::path data_, state_, state_lock_, piece_locks_;
  std::int64_t pictures_ = 0, copies_ = 1, pictures_a_piece_ = 1;
  std::vector<bool> done_; // by piece
  std::map<std::int64_t, std::string> skipped_;
  TokenLayout layout_;
  std::int64_t width_ = 0; // 0 until the first piece is kept
};

} // namespace hydrascope::training
