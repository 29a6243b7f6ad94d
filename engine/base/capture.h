// Captures: q, k and v of every attention layer of a model, recorded in safetensors files by tools/capture.py
// or by hand (docs/captures.md has the format). The files are mapped, not read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/safetensors.h"

namespace hydrascope {

inline constexpr std::string_view capture_format = "1"; // the newest that is read: `hydrascope_capture`

// Tokens as texts, or as the patches of a picture after `prefix` other tokens.
struct CaptureTokens {
  std::vector<std::string> texts; // empty: patches
  std::int64_t prefix = 0, rows = 0, columns = 0;
  std::filesystem::path image; // in the capture's folder or below; may be empty

  std::int64_t count() const {
    return texts.empty() ? prefix + rows * columns : static_cast<std::int64_t>(texts.size());
  }
};

// One layer's attention softmax(scale · q kᵀ) v, computed for queries (B,H,N,d) on keys and values (B,h,M,d),
// h a divisor of H.
struct CaptureLayer {
  std::string name;
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
  bool causal = false;
  double scale = 0;
  TensorView q, k, v;
  std::optional<TensorView> out; // (B,H,N,d), recorded
  std::optional<TensorView> wo;  // W_o (D,H·d), as (out,in)
  std::vector<bool> mask;        // (B·M), true: a real key; empty: all are
};

// The layers of a capture that have one shape, one mask and one order of tokens, such as the encoder of an
// encoder-decoder: what can be shown together.
struct CapturePart {
  std::vector<std::size_t> layers; // indices, ascending
  std::string name;                // what the layers' names have in common: "decoder.layers.*.self_attn"
};

class Capture {
public:
  // A file, or a folder whose files hold one capture together. Throws Error (missing), ForeignFile (holds no
  // layers.0.q), BrokenFile (damaged, or what it holds does not fit together).
  static Capture open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::string& source() const { return source_; } // a line about the model; may be empty
  const std::vector<CaptureLayer>& layers() const { return layers_; }
  const std::vector<CapturePart>& parts() const { return parts_; }
  const std::vector<std::string>& notes() const { return notes_; } // for the user

  // The tokens of `count` queries or keys in sequence `item` of the batch; null if the capture does not say.
  const CaptureTokens* tokens(std::int64_t count, std::int64_t item) const;
  // Which model was recorded, apart from the numbers: equal for captures of the same model.
  std::string model_hash() const;
  // Of the numbers: of names, types and shapes, and of the first and the last kilobyte of each tensor.
  // Figures keep it, so that it stays as it is; where a change in between matters, file_stamp() tells.
  std::string content_hash() const;
  // The files, which stay mapped for as long as one of them is held.
  const std::vector<SafetensorsFile>& files() const { return files_; }
  // The file that holds this tensor.
  const SafetensorsFile& file_of(const TensorView& view) const;

  // Reads a layer's numbers. Throws BrokenFile that names the tensor if q, k or v holds NaN or infinity at a
  // real token of this sequence.
  void check_numbers(std::size_t layer, std::int64_t item) const;

private:
  std::filesystem::path path_;
  std::string source_;
  std::vector<SafetensorsFile> files_;
  std::vector<CaptureLayer> layers_;
  std::vector<CapturePart> parts_;
  std::vector<CaptureTokens> tokens_;
  std::vector<std::string> notes_;
};

// What a user names: FILE, FILE:PART or FILE:PART:SEQUENCE, both counted from 0; FILE may be a folder that
// holds one capture, and PART a part of the layers' names.
struct CaptureAddress {
  std::filesystem::path path;
  std::string part;
  std::int64_t item = 0;
  bool has_item = false; // the address names the sequence
};
// The file or folder that an address names, whether it is there or not.
std::filesystem::path capture_path(const std::filesystem::path& named);
// nullopt if there is no such file, or it holds no capture; damaged captures are recognised all the same.
std::optional<CaptureAddress> capture_address(const std::filesystem::path& named);
// The part that an address names; the first if it names none. Throws UsageError that lists the parts, also
// for a sequence that does not exist.
std::size_t part_of(const Capture& capture, const CaptureAddress& address);

// The captures in a folder, sorted by name: files that hold one each, or the folder itself.
std::vector<std::filesystem::path> captures_in(const std::filesystem::path& folder);

} // namespace hydrascope
