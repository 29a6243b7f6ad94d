// The safetensors format: reading by memory mapping, without a copy, and writing.
// Format: https://github.com/huggingface/safetensors (8-byte little-endian header length, JSON, data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hydrascope {

class FileMapping;

enum class ElementType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
std::size_t element_size(ElementType type);
const char* element_name(ElementType type); // as in the file: "F32", "BF16", …

struct TensorView {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes; // into the mapping
};

class SafetensorsFile {
public:
  // Maps the file. Throws Error (missing), ForeignFile (not safetensors), BrokenFile (offsets, overflow,
  // truncation, trailing bytes, bad JSON).
  static SafetensorsFile open(const std::filesystem::path& file);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }
  // The mapping, to be kept for as long as a view of it is used.
  std::shared_ptr<const FileMapping> mapping() const { return mapping_; }

private:
  std::filesystem::path path_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const FileMapping> mapping_;
};

// Writes all tensors to `file`, as write_file_atomically(). Throws Error (disk full, no permission).
void write_safetensors(const std::filesystem::path& file, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

} // namespace hydrascope
