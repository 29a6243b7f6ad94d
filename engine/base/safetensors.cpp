#include "engine/base/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"

namespace hydrascope {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

// The reference implementation also rejects longer headers.
constexpr std::uint64_t largest_header = 100'000'000;
const char* const remedy = "fetch or convert the file again";

struct TypeName {
  ElementType type;
  const char* name;
  std::size_t size;
};
constexpr std::array<TypeName, 10> type_names{{{ElementType::f64, "F64", 8},
                                               {ElementType::f32, "F32", 4},
                                               {ElementType::f16, "F16", 2},
                                               {ElementType::bf16, "BF16", 2},
                                               {ElementType::i64, "I64", 8},
                                               {ElementType::i32, "I32", 4},
                                               {ElementType::i16, "I16", 2},
                                               {ElementType::i8, "I8", 1},
                                               {ElementType::u8, "U8", 1},
                                               {ElementType::boolean, "BOOL", 1}}};

const TypeName& type_entry(ElementType type) {
  return *std::find_if(type_names.begin(), type_names.end(),
                       [&](const TypeName& t) { return t.type == type; });
}

[[noreturn]] void broken(const std::filesystem::path& file, const std::string& reason) {
  throw BrokenFile(file.string(), reason, remedy);
}

std::optional<std::uint64_t> unsigned_value(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

// Bytes of a tensor; nothing if the product overflows.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, std::size_t element) {
  std::uint64_t count = element;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t extent : shape) {
    const auto factor = static_cast<std::uint64_t>(extent);
    if (count > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / factor) return std::nullopt;
    count *= factor;
  }
  return count;
}

TensorView read_entry(const std::filesystem::path& file, const std::string& name, const nlohmann::json& entry,
                      std::span<const std::byte> data) {
  const std::string subject = "tensor '" + name + "' ";
  if (!entry.is_object()) broken(file, subject + "is not described by an object");
  const auto dtype = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto offsets = entry.find("data_offsets");
  if (dtype == entry.end() || !dtype->is_string() || shape == entry.end() || !shape->is_array() ||
      offsets == entry.end() || !offsets->is_array() || offsets->size() != 2)
    broken(file, subject + "lacks dtype, shape or data_offsets");

  TensorView view;
  const auto& text = dtype->get_ref<const std::string&>();
  const auto* known =
      std::find_if(type_names.begin(), type_names.end(), [&](const TypeName& t) { return text == t.name; });
  if (known == type_names.end()) broken(file, subject + "has the unsupported element type " + text);
  view.type = known->type;
  for (const auto& extent : *shape) {
    const auto value = unsigned_value(extent);
    if (!value || *value > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      broken(file, subject + "has a shape that is not made of whole numbers");
    view.shape.push_back(static_cast<std::int64_t>(*value));
  }
  const auto begin = unsigned_value((*offsets)[0]);
  const auto end = unsigned_value((*offsets)[1]);
  if (!begin || !end || *begin > *end || *end > data.size())
    broken(file, subject + "lies outside the file (truncated?)");
  const auto needed = byte_count(view.shape, known->size);
  if (!needed || *needed != *end - *begin) broken(file, subject + "has a shape that does not fit its bytes");
  view.bytes = data.subspan(static_cast<std::size_t>(*begin), static_cast<std::size_t>(*end - *begin));
  return view;
}

// The tensors must tile the data without gaps or overlap, as the reference implementation requires.
void check_tiling(const std::filesystem::path& file, const std::map<std::string, TensorView>& tensors,
                  std::span<const std::byte> data) {
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const auto& [name, view] : tensors)
    if (!view.bytes.empty()) spans.emplace_back(view.bytes.data(), view.bytes.data() + view.bytes.size());
  std::sort(spans.begin(), spans.end());
  const std::byte* reached = data.data();
  for (const auto& [begin, end] : spans) {
    if (begin < reached) broken(file, "two tensors overlap");
    if (begin > reached) broken(file, "there is a gap between two tensors");
    reached = end;
  }
  if (reached != data.data() + data.size()) broken(file, "there are bytes after the last tensor");
}

nlohmann::json parse_header(const std::filesystem::path& file, std::string_view text) {
  if (const char* const why = why_not_parsed(text)) broken(file, std::string("its header ") + why);
  // The parser keeps the last of two values of one name, which would hide a tensor.
  std::set<std::string> names;
  std::string twice;
  const auto note_names = [&](const int depth, const nlohmann::json::parse_event_t event,
                              const nlohmann::json& name) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key &&
        !names.insert(name.get<std::string>()).second)
      twice = name.get<std::string>();
    return true;
  };
  nlohmann::json header = nlohmann::json::parse(text, note_names, false);
  if (!twice.empty()) broken(file, "tensor '" + twice + "' is there twice");
  if (header.is_discarded() || !header.is_object()) {
    // The first bytes of other formats rarely are a small length followed by a brace.
    if (text.empty() || text.front() != '{')
      throw ForeignFile(file.string(), "is not a safetensors file", "name a .safetensors file");
    broken(file, "its header is not valid JSON");
  }
  return header;
}

} // namespace

std::size_t element_size(ElementType type) { return type_entry(type).size; }
const char* element_name(ElementType type) { return type_entry(type).name; }

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& file) {
  const auto mapping = std::make_shared<const FileMapping>(file);
  const auto bytes = mapping->bytes();
  if (bytes.size() < 8) throw ForeignFile(file.string(), "is too short for a safetensors file", remedy);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const bool brace = bytes.size() > 8 && static_cast<char>(bytes[8]) == '{';
  if (length > bytes.size() - 8 || length > largest_header) {
    if (!brace) throw ForeignFile(file.string(), "is not a safetensors file", "name a .safetensors file");
    broken(file, "its header is longer than the file (truncated?)");
  }
  const auto header =
      parse_header(file, {reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length)});
  const auto data = bytes.subspan(8 + static_cast<std::size_t>(length));

  SafetensorsFile result;
  result.path_ = file;
  result.mapping_ = mapping;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      result.tensors_.emplace(name, read_entry(file, name, entry, data));
      continue;
    }
    if (!entry.is_object()) broken(file, "its metadata is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string())
        broken(file, "its metadata holds something other than text under '" + key + "'");
      result.metadata_.emplace(key, value.get<std::string>());
    }
  }
  check_tiling(file, result.tensors_, data);
  return result;
}

void write_safetensors(const std::filesystem::path& file, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const auto& [name, view] : tensors) {
    header[name] = {{"dtype", element_name(view.type)},
                    {"shape", view.shape},
                    {"data_offsets", {offset, offset + view.bytes.size()}}};
    offset += view.bytes.size();
  }
  // Text from outside (a command line, a label) may be invalid UTF-8, which is replaced.
  std::string text = text_of_json(header);
  text.append((8 - text.size() % 8) % 8, ' '); // aligns the data, as the reference implementation does

  const std::uint64_t length = text.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, text};
  for (const auto& [name, view] : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  write_file_atomically(file, parts);
}

} // namespace hydrascope
