#include "engine/training/data/feature_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <ATen/ops/from_file.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"

namespace hydrascope::training {
namespace {

using nlohmann::json;

// The longest plausible rows, columns, prefix and width; ConfigLimits::width is as large.
constexpr std::int64_t most_of_a_side = 1 << 15;

constexpr const char* no_cache_remedy = "set XDG_CACHE_HOME to a folder that can be written";

// The path of a key's files, without an ending. Creates the folder.
std::filesystem::path cache_file(const std::string& key) {
  const auto folder = cache_folder() / "features";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(folder.string(), "cannot be made (" + failed.message() + ")", no_cache_remedy);
  return folder / key;
}

// The data's file, open for writing. Closing it makes the data visible to processes that map it later, on
// other machines too (NFS).
class DataFile {
public:
  explicit DataFile(const std::filesystem::path& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw Error(path_.string(), std::strerror(errno), no_cache_remedy);
  }
  ~DataFile() { close(descriptor_); }
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  // Allocates the file, so that a full disk is an error before the work and not after. By one process at a
  // time: on file systems without this operation every block is read and written again.
  void reserve(const std::int64_t bytes) const {
    if (static_cast<std::int64_t>(std::filesystem::file_size(path_)) >= bytes) return;
    const int result = posix_fallocate(descriptor_, 0, bytes);
    if (result == 0) return;
    std::filesystem::remove(path_);
    throw Error(path_.string(),
                fmt::format("no room for {:.1f} GB of features ({})", static_cast<double>(bytes) * 1e-9,
                            std::strerror(result)),
                "free some space, set XDG_CACHE_HOME to another disk, or use fewer images or copies");
  }

  void write(std::string_view bytes, std::int64_t at) const {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        throw Error(path_.string(), std::strerror(errno),
                    "free some space, or set XDG_CACHE_HOME to another disk");
      bytes.remove_prefix(static_cast<std::size_t>(written));
      at += written;
    }
    // The state, which says that they are there, must not survive a loss of power without them.
    if (fdatasync(descriptor_) != 0) throw Error(path_.string(), std::strerror(errno), no_cache_remedy);
  }

private:
  std::filesystem::path path_;
  int descriptor_;
};

} // namespace

FeatureFile::FeatureFile(const std::string& key, const std::int64_t pictures, const int copies,
                         const int pictures_a_piece)
    : data_(cache_file(key) += ".half"),
      state_(cache_file(key) += ".json"),
      state_lock_(cache_file(key) += ".lock"),
      piece_locks_(cache_file(key) += ".pieces"),
      pictures_(pictures),
      copies_(copies),
      pictures_a_piece_(pictures_a_piece),
      done_(static_cast<std::size_t>((pictures + pictures_a_piece - 1) / pictures_a_piece)) {
  read_state();
}

std::int64_t FeatureFile::filled() const {
  std::int64_t pictures = pictures_a_piece_ * std::ranges::count(done_, true);
  if (!done_.empty() && done_.back()) // the last piece may be smaller
    pictures -= pictures_a_piece_ * static_cast<std::int64_t>(done_.size()) - pictures_;
  return pictures;
}

bool FeatureFile::read_state() {
  if (!std::filesystem::exists(state_)) return false;
  try {
    const auto state = parse_json<json>(read_text_file(state_));
    auto done = state.at("done").get<std::vector<bool>>();
    const std::int64_t width = state.at("width");
    const TokenLayout layout{state.at("prefix"), state.at("rows"), state.at("columns")};
    auto skipped = state.at("skipped").get<std::map<std::int64_t, std::string>>();
    if (state.at("pictures_a_piece").get<std::int64_t>() != pictures_a_piece_ || done.size() != done_.size())
      return false;
    if (!skipped.empty() && (skipped.begin()->first < 0 || skipped.rbegin()->first >= pictures_))
      return false;
    for (const std::int64_t length : {width, layout.prefix, layout.rows, layout.columns})
      if (length < 0 || length > most_of_a_side) return false;
    if (width > 0 && !holds_data(layout, width)) return false;
    skipped_ = std::move(skipped);
    layout_ = layout;
    width_ = width;
    done_ = std::move(done);
    return true;
  } catch (const json::exception&) {
    return false; // a cache that cannot be read is filled again
  }
}

bool FeatureFile::holds_data(const TokenLayout& layout, const std::int64_t width) const {
  std::error_code missing;
  const std::uintmax_t bytes = std::filesystem::file_size(data_, missing);
  const std::int64_t tokens = layout.prefix + layout.rows * layout.columns, rows = pictures_ * copies_;
  if (missing || tokens == 0 || rows == 0) return false;
  return bytes / sizeof(at::Half) / static_cast<std::uintmax_t>(rows) >=
         static_cast<std::uintmax_t>(tokens * width);
}

std::optional<FeatureFile::Piece> FeatureFile::take() {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i]) continue;
    const auto index = static_cast<std::int64_t>(i);
    auto lock = ItemLock::take(piece_locks_, index, no_cache_remedy);
    if (!lock) continue;
    read_state(); // another process may have filled it before
    if (done_[i]) continue;
    const std::int64_t first = index * pictures_a_piece_;
    return Piece{.lock = std::move(*lock),
                 .index = index,
                 .first = first,
                 .last = std::min(pictures_, first + pictures_a_piece_)};
  }
  return std::nullopt;
}

void FeatureFile::write(const Piece& piece, const std::stop_token& stop) {
  const DataFile file(data_);
  const at::Tensor rows = piece.hidden.contiguous();
  const auto row_bytes = static_cast<std::int64_t>(rows.nbytes()) / rows.size(0);
  {
    const FileLock lock(state_lock_, stop, no_cache_remedy);
    if (!read_state()) { // what is there does not fit, or was removed meanwhile: nothing is filled
      // Before the data's file has its length, and fits again. Not removed, as another process may be opening
      // it.
      write_file_atomically(state_, "");
      done_.assign(done_.size(), false);
      skipped_.clear();
    }
    file.reserve(pictures_ * copies_ * row_bytes);
  }
  file.write({static_cast<const char*>(rows.const_data_ptr()), rows.nbytes()},
             piece.first * copies_ * row_bytes);
}

void FeatureFile::store(const Piece& piece, const std::stop_token& stop) {
  if (piece.hidden.defined()) write(piece, stop);
  const FileLock lock(state_lock_, stop, no_cache_remedy);
  read_state();
  if (piece.hidden.defined()) {
    layout_ = piece.layout;
    width_ = piece.hidden.size(2);
  }
  done_[static_cast<std::size_t>(piece.index)] = true;
  skipped_.insert(piece.skipped.begin(), piece.skipped.end());
  const json state = {{"done", done_},
                      {"pictures_a_piece", pictures_a_piece_},
                      {"skipped", skipped_},
                      {"width", width_},
                      {"prefix", layout_.prefix},
                      {"rows", layout_.rows},
                      {"columns", layout_.columns}};
  write_file_atomically(state_, text_of_json(state));
}

at::Tensor FeatureFile::map() const {
  if (empty()) return {};
  const std::int64_t rows = pictures_ * copies_, tokens = layout_.prefix + layout_.rows * layout_.columns;
  return at::from_file(data_.string(), true, rows * tokens * width_, at::TensorOptions(at::kHalf))
      .view({rows, tokens, width_});
}

} // namespace hydrascope::training
