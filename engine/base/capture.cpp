#include "engine/base/capture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

using nlohmann::json;

constexpr const char* const record_again = "record it again with tools/capture.py (docs/captures.md)";
constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_extent = std::int64_t{1} << 20;
// What a mask adds to scores that do not count is at least as low.
constexpr double far_below = -1e4;

std::string extents(const TensorView& view) { return fmt::format("({})", fmt::join(view.shape, ",")); }

// layers.INDEX.NAME
std::optional<std::pair<std::int64_t, std::string_view>> layer_tensor(std::string_view name) {
  constexpr std::string_view prefix = "layers.";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc{} || end == name.data() + name.size() || *end != '.' || index < 0)
    return std::nullopt;
  return std::pair{index, name.substr(static_cast<std::size_t>(end - name.data()) + 1)};
}

double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

template <typename Stored, typename Convert>
void convert_each(const std::byte* at, std::span<double> numbers, Convert convert) {
  for (double& number : numbers) {
    Stored stored;
    std::memcpy(&stored, at, sizeof stored);
    number = convert(stored);
    at += sizeof stored;
  }
}

// As many numbers of a tensor of masks as there is place for, from `index` on.
void read_numbers(const TensorView& view, std::size_t index, std::span<double> numbers) {
  const std::byte* const at = view.bytes.data() + index * element_size(view.type);
  const auto plain = [](auto stored) { return static_cast<double>(stored); };
  const auto brain = [](std::uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  };
  switch (view.type) {
    case ElementType::f64: return convert_each<double>(at, numbers, plain);
    case ElementType::f32: return convert_each<float>(at, numbers, plain);
    case ElementType::f16: return convert_each<std::uint16_t>(at, numbers, half);
    case ElementType::bf16: return convert_each<std::uint16_t>(at, numbers, brain);
    case ElementType::i64: return convert_each<std::int64_t>(at, numbers, plain);
    case ElementType::i32: return convert_each<std::int32_t>(at, numbers, plain);
    case ElementType::i16: return convert_each<std::int16_t>(at, numbers, plain);
    case ElementType::i8: return convert_each<std::int8_t>(at, numbers, plain);
    default: return convert_each<std::uint8_t>(at, numbers, plain);
  }
}

bool is_floating(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

// Whether all numbers are finite: none has an exponent of ones alone.
template <typename Bits>
bool finite_bits(std::span<const std::byte> bytes, Bits exponent) {
  bool finite = true;
  for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite = finite && (bits & exponent) != exponent;
  }
  return finite;
}

bool all_finite(ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::f64: return finite_bits<std::uint64_t>(bytes, 0x7ff0'0000'0000'0000);
    case ElementType::f32: return finite_bits<std::uint32_t>(bytes, 0x7f80'0000);
    case ElementType::f16: return finite_bits<std::uint16_t>(bytes, 0x7c00);
    default: return finite_bits<std::uint16_t>(bytes, 0x7f80);
  }
}

// Reads the layers and the metadata of one capture.
class CaptureReader {
public:
  CaptureReader(const std::filesystem::path& path, const std::vector<SafetensorsFile>& files) : path_(path) {
    for (const SafetensorsFile& file : files) {
      for (const auto& [name, view] : file.tensors()) {
        const auto found = layer_tensor(name);
        if (!found) continue;
        if (found->first >= most_layers)
          fail(fmt::format("'{}': there can be no more than {} layers", name, most_layers));
        const bool added = tensors_.try_emplace(std::string(name), &view).second;
        if (!added) fail(fmt::format("'{}' is in two of its files", name));
        count_ = std::max(count_, found->first + 1);
      }
      for (const auto& [key, text] : file.metadata()) metadata_.emplace(key, text);
    }
  }

  std::vector<CaptureLayer> layers() const {
    const auto count = static_cast<std::size_t>(count_);
    const std::vector<std::string> names = layer_names(count);
    const std::vector<bool> causal = each<bool>("causal", count, false);
    const std::vector<double> scale = each<double>("scale", count, 0);
    std::vector<CaptureLayer> all;
    for (std::size_t i = 0; i < count; ++i) {
      CaptureLayer layer;
      layer.name = names[i];
      read_shapes(i, layer);
      layer.causal = causal[i] && layer.queries > 1;
      layer.scale = scale[i] > 0 ? scale[i] : 1 / std::sqrt(static_cast<double>(layer.width));
      if (const TensorView* const mask = find(i, "mask")) read_mask(i, *mask, layer);
      if (layer.causal && layer.queries != layer.keys)
        fail(fmt::format("layer {} is causal with {} queries and {} keys", i, layer.queries, layer.keys),
             "record a pass over the whole text, without a cache of keys (use_cache=False)");
      read_extras(i, layer);
      all.push_back(std::move(layer));
    }
    return all;
  }

  std::vector<CaptureTokens> tokens() const {
    const auto parsed = value("tokens");
    if (!parsed) return {};
    std::vector<CaptureTokens> sets;
    const bool several =
        parsed->is_array() && std::ranges::any_of(*parsed, [](const json& one) { return !one.is_string(); });
    if (!several) return {token_set(*parsed)};
    for (const json& one : *parsed) sets.push_back(token_set(one));
    return sets;
  }

  std::string text(const std::string& key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? std::string() : found->second;
  }

private:
  [[noreturn]] void fail(const std::string& reason, const char* remedy = record_again) const {
    throw BrokenFile(path_.string(), reason, remedy);
  }

  const TensorView* find(std::size_t layer, std::string_view name) const {
    const auto found = tensors_.find(fmt::format("layers.{}.{}", layer, name));
    return found == tensors_.end() ? nullptr : found->second;
  }

  std::optional<json> value(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) return std::nullopt;
    json parsed = json::parse(found->second, nullptr, false);
    if (parsed.is_discarded()) fail(fmt::format("its metadata '{}' is not JSON", key));
    return parsed;
  }

  std::vector<std::string> layer_names(std::size_t count) const {
    std::vector<std::string> names;
    if (const auto parsed = value("layers")) {
      if (!parsed->is_array() || parsed->size() != count)
        fail(fmt::format("its metadata 'layers' is not a list of {} names", count));
      for (const json& one : *parsed) {
        if (!one.is_string()) fail("its metadata 'layers' holds something other than names");
        names.push_back(one.get<std::string>());
      }
      return names;
    }
    for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("layer {}", i));
    return names;
  }

  // One value for all layers, or a list with one for each.
  template <typename Value>
  std::vector<Value> each(const char* key, std::size_t count, Value fallback) const {
    const auto parsed = value(key);
    if (!parsed) return std::vector<Value>(count, fallback);
    const auto read = [&](const json& one) {
      if constexpr (std::is_same_v<Value, bool>) {
        if (one.is_boolean()) return one.get<bool>();
        fail(fmt::format("its metadata '{}' is neither true nor false", key));
      } else {
        const double number = one.is_number() ? one.get<double>() : 0;
        if (number > 0 && std::isfinite(number)) return number;
        fail(fmt::format("its metadata '{}' is not a positive number", key));
      }
    };
    if (!parsed->is_array()) return std::vector<Value>(count, read(*parsed));
    if (parsed->size() != count)
      fail(fmt::format("its metadata '{}' has {} entries for {} layers", key, parsed->size(), count));
    std::vector<Value> values;
    for (const json& one : *parsed) values.push_back(read(one));
    return values;
  }

  const TensorView& required(std::size_t layer, const char* name) const {
    const TensorView* const view = find(layer, name);
    if (view == nullptr) fail(fmt::format("it lacks layers.{}.{} of {} layers", layer, name, count_));
    const auto describe = [&](const std::string& what) {
      fail(fmt::format("layers.{}.{} {}", layer, name, what));
    };
    if (!is_floating(view->type))
      describe(fmt::format("is {}, not floating-point numbers", element_name(view->type)));
    if (view->shape.size() != 4) describe(fmt::format("has the shape {}, not (B,H,N,d)", extents(*view)));
    for (const std::int64_t extent : view->shape)
      if (extent < 1 || extent > most_extent) describe(fmt::format("has the shape {}", extents(*view)));
    return *view;
  }

  void read_shapes(std::size_t i, CaptureLayer& layer) const {
    const TensorView &q = required(i, "q"), &k = required(i, "k"), &v = required(i, "v");
    const auto against = [&](const char* name, const TensorView& view, const char* why) {
      fail(fmt::format("layers.{}.{} has the shape {} where q has {}: {}", i, name, extents(view), extents(q),
                       why));
    };
    for (const auto& [name, view] : {std::pair{"k", &k}, std::pair{"v", &v}}) {
      if (view->type != q.type)
        fail(fmt::format("layers.{}.{} is {} where q is {}", i, name, element_name(view->type),
                         element_name(q.type)));
      if (view->shape[0] != q.shape[0]) against(name, *view, "other sequences");
      if (view->shape[3] != q.shape[3]) against(name, *view, "queries, keys and values need one width");
      if (q.shape[1] % view->shape[1] != 0) against(name, *view, "its heads do not divide q's");
    }
    if (k.shape != v.shape) fail(fmt::format("layers.{}.k and layers.{}.v differ in shape", i, i));
    layer.q = q;
    layer.k = k;
    layer.v = v;
    layer.batch = q.shape[0];
    layer.heads = q.shape[1];
    layer.key_heads = k.shape[1];
    layer.queries = q.shape[2];
    layer.keys = k.shape[2];
    layer.width = q.shape[3];
  }

  void read_extras(std::size_t i, CaptureLayer& layer) const {
    if (const TensorView* const out = find(i, "out")) {
      if (!is_floating(out->type) || out->shape != layer.q.shape)
        fail(fmt::format("layers.{}.out is {} {}, not numbers of q's shape {}", i, element_name(out->type),
                         extents(*out), extents(layer.q)));
      layer.out = *out;
    }
    if (const TensorView* const wo = find(i, "wo")) {
      if (!is_floating(wo->type) || wo->shape.size() != 2 || wo->shape[0] < 1 ||
          wo->shape[1] != layer.heads * layer.width)
        fail(fmt::format("layers.{}.wo is {} {}, not a matrix with {} columns", i, element_name(wo->type),
                         extents(*wo), layer.heads * layer.width));
      layer.wo = *wo;
    }
  }

  // (B,M): real keys. (B,1,N,M) and what broadcasts to it: must be causal, or the same for every query. True
  // or not 0: may attend; of floating-point numbers, which are added to the scores, those near 0.
  void read_mask(std::size_t i, const TensorView& mask, CaptureLayer& layer) const {
    const auto describe = [&](const std::string& what, const char* remedy = record_again) {
      fail(fmt::format("layers.{}.mask {}", i, what), remedy);
    };
    const auto [batch, queries, keys] = std::tuple{layer.batch, layer.queries, layer.keys};
    std::array<std::int64_t, 4> shape{1, 1, 1, 1}; // B, H, N, M
    if (mask.shape.size() == 2)
      shape = {mask.shape[0], 1, 1, mask.shape[1]};
    else if (mask.shape.size() == 4)
      std::ranges::copy(mask.shape, shape.begin());
    const bool fits = (mask.shape.size() == 2 || mask.shape.size() == 4) &&
                      (shape[0] == 1 || shape[0] == batch) && (shape[1] == 1 || shape[1] == layer.heads) &&
                      (shape[2] == 1 || shape[2] == queries) && shape[3] == keys;
    if (!fits)
      describe(fmt::format("has the shape {}, neither (B,M) nor (B,1,N,M) of {} queries and {} keys",
                           extents(mask), queries, keys));
    const bool added = is_floating(mask.type);
    bool bias = false, broken = false;
    std::vector<double> numbers(static_cast<std::size_t>(keys));
    // Calls with each key and whether the query may attend to it.
    const auto each_key = [&](std::int64_t b, std::int64_t h, std::int64_t n, const auto& call) {
      read_numbers(mask, static_cast<std::size_t>(((b * shape[1] + h) * shape[2] + n) * keys), numbers);
      for (std::int64_t m = 0; m < keys; ++m) {
        const double number = numbers[static_cast<std::size_t>(m)];
        broken = broken || std::isnan(number);
        bias = bias || (added && number > far_below && number != 0);
        call(m, added ? number > far_below : number != 0);
      }
    };
    constexpr const char* other =
        "only causal masks and masks of whole keys can be shown: kernels know no other";
    // Of the sequences that the mask has: one where it is the same for all.
    layer.mask.assign(static_cast<std::size_t>(shape[0] * keys), false);
    const auto real = [&](std::int64_t b, std::int64_t m) {
      return layer.mask[static_cast<std::size_t>(b * keys + m)];
    };
    bool upper = false; // some query attends to a later key
    for (std::int64_t b = 0; b < shape[0]; ++b)
      for (std::int64_t n = 0; n < shape[2]; ++n)
        each_key(b, 0, n, [&](std::int64_t m, bool may) {
          if (!may) return;
          layer.mask[static_cast<std::size_t>(b * keys + m)] = true;
          upper = upper || m > n;
        });
    const auto refuse_numbers = [&] {
      if (broken) describe("holds NaN");
      if (bias) describe("adds a bias to the scores, such as ALiBi or relative positions", other);
    };
    refuse_numbers();
    const bool square = shape[2] > 1 && queries == keys;
    const bool causal = square && !upper;
    // The row of a query that is padding may hold anything.
    for (std::int64_t b = 0; b < shape[0]; ++b)
      for (std::int64_t h = 0; h < shape[1]; ++h)
        for (std::int64_t n = 0; n < shape[2]; ++n) {
          if (square && !real(b, n)) continue;
          each_key(b, h, n, [&](std::int64_t m, bool may) {
            if (may != (real(b, m) && (!causal || m <= n)))
              describe("lets queries attend to different keys, and is not causal", other);
          });
        }
    refuse_numbers(); // of the other heads
    if (shape[0] < batch) {
      const std::vector<bool> first = layer.mask;
      for (std::int64_t b = 1; b < batch; ++b)
        layer.mask.insert(layer.mask.end(), first.begin(), first.end());
    }
    layer.causal = layer.causal || causal;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto first = layer.mask.begin() + b * keys;
      if (std::find(first, first + keys, true) == first + keys)
        describe(fmt::format("leaves no real token in sequence {}", b));
    }
    if (std::ranges::find(layer.mask, false) == layer.mask.end()) layer.mask.clear();
  }

  CaptureTokens token_set(const json& set) const {
    CaptureTokens tokens;
    if (set.is_array()) {
      for (const json& one : set) {
        if (!one.is_string()) fail("its metadata 'tokens' holds something other than texts");
        tokens.texts.push_back(one.get<std::string>());
      }
      if (tokens.texts.empty()) fail("its metadata 'tokens' is an empty list");
      return tokens;
    }
    if (!set.is_object())
      fail("its metadata 'tokens' is neither a list of texts nor a grid {rows, columns, prefix, image}");
    const auto number = [&](const char* key, std::int64_t least, std::int64_t fallback) {
      const auto found = set.find(key);
      if (found == set.end() && fallback >= least) return fallback;
      const bool whole = found != set.end() && found->is_number_integer();
      const std::int64_t read = whole ? found->get<std::int64_t>() : -1;
      if (read < least || read > 65'536)
        fail(fmt::format("its metadata 'tokens' has no whole number {}", key));
      return read;
    };
    tokens.rows = number("rows", 1, -1);
    tokens.columns = number("columns", 1, -1);
    tokens.prefix = number("prefix", 0, 0);
    const auto image = set.find("image");
    if (image == set.end()) return tokens;
    if (!image->is_string()) fail("its metadata 'tokens' names no file as image");
    tokens.image = image->get<std::string>(); // open() looks where it lies
    return tokens;
  }

  std::filesystem::path path_;
  std::map<std::string, const TensorView*> tensors_;
  std::map<std::string, std::string> metadata_;
  std::int64_t count_ = 0;
};

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
  const CaptureReader reader(path, capture.files_);
  if (const std::string format = reader.text("hydrascope_capture"); !format.empty() && format != "1")
    throw BrokenFile(path.string(), fmt::format("is a capture of format {}", format),
                     "open it with a newer version of the program");
  capture.layers_ = reader.layers();
  if (capture.layers_.empty()) throw BrokenFile(path.string(), "it holds no layers", record_again);
  capture.tokens_ = reader.tokens();
  capture.source_ = reader.text("source");
  capture.parts_ = parts_of(capture.layers_);
  const std::filesystem::path folder = std::filesystem::is_directory(path) ? path : path.parent_path();
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
    const bool used = std::ranges::any_of(capture.layers_, [&](const CaptureLayer& layer) {
      return tokens.count() == layer.queries || tokens.count() == layer.keys;
    });
    if (!used)
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
      text += fmt::format("|{} {} {}|", name, element_name(view.type), extents(view));
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

std::optional<CaptureAddress> capture_address(const std::filesystem::path& named) {
  namespace fs = std::filesystem;
  std::error_code none;
  CaptureAddress address;
  address.path = named;
  if (!fs::exists(named, none)) { // FILE:PART:SEQUENCE
    const std::string text = named.string();
    constexpr std::string_view ending = ".safetensors:";
    const std::size_t at = text.rfind(ending);
    if (at == std::string::npos) return std::nullopt;
    address.path = text.substr(0, at + ending.size() - 1);
    address.part = text.substr(at + ending.size());
    if (const std::size_t colon = address.part.find(':'); colon != std::string::npos) {
      const auto item = whole_number(std::string_view(address.part).substr(colon + 1));
      address.item = item.value_or(-1); // part_of() refuses it
      address.has_item = true;
      address.part.resize(colon);
    }
  }
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
