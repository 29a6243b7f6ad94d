#include "engine/base/capture.h"

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/capture_reader.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/base/tensor_numbers.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

bool leaves_folder(const std::filesystem::path& named) {
  return named.is_absolute() || std::ranges::find(named, "..") != named.end();
}

// "encoder.layer.0.attention" and "encoder.layer.1.attention" → "encoder.layer.*.attention".
std::string without_numbers(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    if (letter < '0' || letter > '9')
      text += letter;
    else if (text.empty() || text.back() != '*')
      text += '*';
  }
  return text;
}

std::vector<CapturePart> parts_of(const std::vector<CaptureLayer>& layers) {
  std::vector<CapturePart> parts;
  const auto shape = [&](const CaptureLayer& layer) {
    return std::tie(layer.batch, layer.heads, layer.key_heads, layer.queries, layer.keys, layer.width,
                    layer.causal, layer.mask);
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto same = std::ranges::find_if(parts, [&](const CapturePart& part) {
      return shape(layers[part.layers.front()]) == shape(layers[i]);
    });
    if (same == parts.end())
      parts.push_back({{i}, without_numbers(layers[i].name)});
    else
      same->layers.push_back(i);
  }
  return parts;
}

// The files of a capture that is spread over a folder.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

bool holds(const SafetensorsFile& file, const char* name) { return file.tensors().contains(name); }

// Whether the file begins as a safetensors file whose header names layers.0.q, damaged or not.
bool names_layers(const std::filesystem::path& file) {
  try {
    const FileMapping mapping(file);
    const std::span<const std::byte> bytes = mapping.bytes();
    constexpr std::size_t most = std::size_t{1} << 20;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), most));
    return text.find("\"layers.0.q\"") != std::string_view::npos ||
           text.find("\"hydrascope_capture\"") != std::string_view::npos;
  } catch (const Error&) {
    return false;
  }
}

// Where the file's or the folder's name ends in an address: before the colon after a file's ending, or else
// after a folder that is there; npos if it names no part.
std::size_t end_of_name(const std::string& text) {
  constexpr std::string_view ending = ".safetensors:";
  if (const std::size_t at = text.rfind(ending); at != std::string::npos) return at + ending.size() - 1;
  std::error_code none;
  std::size_t colon = text.rfind(':');
  while (colon != std::string::npos && colon > 0 &&
         !std::filesystem::is_directory(text.substr(0, colon), none))
    colon = text.rfind(':', colon - 1);
  return colon == 0 ? std::string::npos : colon;
}

// FILE; FILE:PART or FILE:PART:SEQUENCE where no file has the whole name.
CaptureAddress split_address(const std::filesystem::path& named) {
  std::error_code none;
  CaptureAddress address;
  address.path = named;
  if (std::filesystem::exists(named, none)) return address;
  const std::string text = named.string();
  const std::size_t end = end_of_name(text);
  if (end == std::string::npos) return address;
  address.path = text.substr(0, end);
  address.part = text.substr(end + 1);
  if (const std::size_t colon = address.part.find(':'); colon != std::string::npos) {
    const auto item = whole_number(std::string_view(address.part).substr(colon + 1));
    address.item = item.value_or(-1); // part_of() refuses it
    address.has_item = true;
    address.part.resize(colon);
  }
  return address;
}

} // namespace

Capture Capture::open(const std::filesystem::path& path) {
  Capture capture;
  capture.path_ = path;
  if (std::filesystem::is_directory(path))
    for (const std::filesystem::path& file : files_in(path))
      capture.files_.push_back(SafetensorsFile::open(file));
  else
    capture.files_.push_back(SafetensorsFile::open(path));
  const bool any = std::ranges::any_of(capture.files_, [](const SafetensorsFile& file) {
    return holds(file, "layers.0.q") || file.metadata().contains("hydrascope_capture");
  });
  if (!any)
    throw ForeignFile(path.string(), "is no capture: it holds no tensor layers.0.q",
                      "record one with tools/capture.py (docs/captures.md)");
  CaptureContent content = read_capture(path, capture.files_);
  capture.layers_ = std::move(content.layers);
  capture.tokens_ = std::move(content.tokens);
  capture.source_ = std::move(content.source);
  capture.parts_ = parts_of(capture.layers_);
  const std::filesystem::path folder = std::filesystem::is_directory(path) ? path : path.parent_path();
  std::set<std::int64_t> lengths, unused;
  for (const CaptureLayer& layer : capture.layers_) lengths.insert({layer.queries, layer.keys});
  for (CaptureTokens& tokens : capture.tokens_) {
    // A stranger's capture names none of the user's other files.
    if (leaves_folder(tokens.image)) {
      capture.notes_.push_back(
          fmt::format("the picture {} is not shown: it lies outside the capture's "
                      "folder; record the capture again to have it copied there",
                      tokens.image.string()));
      tokens.image.clear();
    }
    if (!tokens.image.empty()) tokens.image = folder / tokens.image;
    if (!lengths.contains(tokens.count()) && unused.insert(tokens.count()).second)
      capture.notes_.push_back(
          fmt::format("the capture names {} tokens, and no layer has as many", tokens.count()));
  }
  return capture;
}

const CaptureTokens* Capture::tokens(std::int64_t count, std::int64_t item) const {
  const CaptureTokens* first = nullptr;
  for (const CaptureTokens& tokens : tokens_) {
    if (tokens.count() != count) continue;
    if (first == nullptr) first = &tokens;
    if (item-- == 0) return &tokens;
  }
  return first; // one set for all sequences
}

std::string Capture::model_hash() const {
  std::string text = source_;
  for (const CaptureLayer& layer : layers_)
    text += fmt::format("|{} {} {} {}", layer.name, layer.heads, layer.key_heads, layer.width);
  return sha256_of_text(text);
}

std::string Capture::content_hash() const {
  constexpr std::size_t sample = 1024;
  std::string text;
  for (const SafetensorsFile& file : files_)
    for (const auto& [name, view] : file.tensors()) {
      text += fmt::format("|{} {} {}|", name, element_name(view.type), shape_text(view));
      const std::string_view bytes(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
      text += bytes.substr(0, sample);
      text += bytes.substr(bytes.size() - std::min(bytes.size(), sample));
    }
  return sha256_of_text(text);
}

const SafetensorsFile& Capture::file_of(const TensorView& view) const {
  const auto found = std::ranges::find_if(files_, [&](const SafetensorsFile& file) {
    return std::ranges::any_of(
        file.tensors(), [&](const auto& tensor) { return tensor.second.bytes.data() == view.bytes.data(); });
  });
  return found == files_.end() ? files_.front() : *found;
}

void Capture::check_numbers(std::size_t layer, std::int64_t item) const {
  const CaptureLayer& one = layers_.at(layer);
  const bool square = one.queries == one.keys;
  for (const auto& [name, view, of_keys] :
       {std::tuple{"q", &one.q, square}, std::tuple{"k", &one.k, true}, std::tuple{"v", &one.v, true}}) {
    const auto heads = static_cast<std::size_t>(view->shape[1]);
    const auto tokens = static_cast<std::size_t>(view->shape[2]);
    const std::size_t row = static_cast<std::size_t>(one.width) * element_size(view->type);
    const std::size_t first = static_cast<std::size_t>(item) * heads * tokens * row;
    if (all_finite(view->type, view->bytes.subspan(first, heads * tokens * row))) continue;
    for (std::size_t at = 0; at < heads * tokens; ++at) {
      const std::size_t token = at % tokens;
      const bool padding =
          of_keys && !one.mask.empty() && !one.mask[static_cast<std::size_t>(item * one.keys) + token];
      if (!padding && !all_finite(view->type, view->bytes.subspan(first + at * row, row)))
        throw BrokenFile(path_.string(),
                         fmt::format("layers.{}.{} holds NaN or infinity at token {}, head {}", layer, name,
                                     token, at / tokens),
                         "find out in the model where it comes from, and record it again");
    }
  }
}

std::filesystem::path capture_path(const std::filesystem::path& named) { return split_address(named).path; }

std::optional<CaptureAddress> capture_address(const std::filesystem::path& named) {
  namespace fs = std::filesystem;
  std::error_code none;
  CaptureAddress address = split_address(named);
  if (fs::is_directory(address.path, none)) {
    const std::vector<fs::path> files = files_in(address.path);
    const auto with = std::ranges::count_if(files, names_layers);
    return with >= 1 && files.size() > 1 && captures_in(address.path).size() == 1
               ? std::optional(std::move(address))
               : std::nullopt;
  }
  if (!fs::is_regular_file(address.path, none) || !names_layers(address.path)) return std::nullopt;
  return address;
}

std::size_t part_of(const Capture& capture, const CaptureAddress& address) {
  const std::vector<CapturePart>& parts = capture.parts();
  const auto listed = [&] {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(fmt::format("{}: {}", i, parts[i].name));
    return fmt::format("name one of them after a colon: {}", fmt::join(all, ", "));
  };
  std::size_t chosen = 0;
  if (const std::optional<int> number = whole_number(address.part)) {
    if (*number < 0 || static_cast<std::size_t>(*number) >= parts.size())
      throw UsageError(address.path.string(), fmt::format("it has no part {}", address.part), listed());
    chosen = static_cast<std::size_t>(*number);
  } else if (!address.part.empty()) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].name.find(address.part) != std::string::npos) fitting.push_back(i);
    if (fitting.size() != 1)
      throw UsageError(address.path.string(),
                       fmt::format("{} of its parts have '{}' in their names",
                                   fitting.empty() ? "none" : "several", address.part),
                       listed());
    chosen = fitting.front();
  }
  const std::int64_t batch = capture.layers()[parts[chosen].layers.front()].batch;
  if (address.item < 0 || address.item >= batch)
    throw UsageError(address.path.string(), "it has no such sequence",
                     fmt::format("name 0 to {} after the second colon", batch - 1));
  return chosen;
}

std::vector<std::filesystem::path> captures_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> captures, pieces;
  for (const std::filesystem::path& file : files_in(folder)) {
    if (names_layers(file)) {
      captures.push_back(file);
      continue;
    }
    try {
      const SafetensorsFile opened = SafetensorsFile::open(file);
      if (std::ranges::any_of(opened.tensors(),
                              [](const auto& one) { return layer_tensor(one.first).has_value(); }))
        pieces.push_back(file);
    } catch (const Error&) {
      continue; // of another program
    }
  }
  if (captures.size() == 1 && !pieces.empty()) return {folder};
  return captures;
}

} // namespace hydrascope
