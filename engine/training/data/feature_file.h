// The file that caches the features of a set of pictures. Several processes that train on the same pictures,
// on one machine or on several with a common cache folder, fill it together, piece by piece.
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
  // `key`: a hash of everything that the features depend on. Throws Error (the folder cannot be created).
  FeatureFile(const std::string& key, std::int64_t pictures, int copies, int pictures_a_piece);

  // The state that was last read from the file.
  std::int64_t filled() const; // pictures
  bool complete() const { return filled() == pictures_; }
  bool empty() const { return width_ == 0; } // no picture could be read
  const TokenLayout& layout() const { return layout_; }
  const std::map<std::int64_t, std::string>& skipped() const { return skipped_; } // pictures, with reasons

  // Pictures first … last−1, which this process alone fills while it holds the lock.
  struct Piece {
    ItemLock lock;
    std::int64_t index = 0, first = 0, last = 0;
    // To fill: (its pictures × copies, N, D) float16, undefined if none could be read; and the skipped
    // pictures.
    at::Tensor hidden = {};
    TokenLayout layout = {};
    std::map<std::int64_t, std::string> skipped = {};
  };
  // A piece that is neither filled nor held by another process; nullopt if there is none now. Reads the state
  // again after locking it.
  std::optional<Piece> take();
  // Writes a filled piece. Throws Cancelled, Error (disk full).
  void store(const Piece& piece, const std::stop_token& stop);

  // (pictures × copies, N, D) float16, mapped; undefined if the file is empty.
  at::Tensor map() const;

private:
  // False where the state is missing or does not fit the data: then everything stays as it is.
  bool read_state();
  // Whether the data's file is as long as the features of all pictures.
  bool holds_data(const TokenLayout& layout, std::int64_t width) const;
  void write(const Piece& piece, const std::stop_token& stop);

  std::filesystem::path data_, state_, state_lock_, piece_locks_;
  std::int64_t pictures_ = 0, copies_ = 1, pictures_a_piece_ = 1;
  std::vector<bool> done_; // by piece
  std::map<std::int64_t, std::string> skipped_;
  TokenLayout layout_;
  std::int64_t width_ = 0; // 0 until the first piece is stored
};

} // namespace hydrascope::training
