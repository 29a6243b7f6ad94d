#include "engine/base/capture_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/tensor_numbers.h"

namespace hydrascope {
namespace {

using nlohmann::json;

constexpr const char* const record_again = "record it again with tools/capture.py (docs/captures.md)";
constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_extent = std::int64_t{1} << 20;
// What a mask adds to scores that do not count is at least as low.
constexpr double far_below = -1e4;

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
    if (const char* const why = why_not_parsed(found->second))
      fail(fmt::format("its metadata '{}' {}", key, why));
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
    if (view->shape.size() != 4) describe(fmt::format("has the shape {}, not (B,H,N,d)", shape_text(*view)));
    for (const std::int64_t extent : view->shape)
      if (extent < 1 || extent > most_extent) describe(fmt::format("has the shape {}", shape_text(*view)));
    return *view;
  }

  void read_shapes(std::size_t i, CaptureLayer& layer) const {
    const TensorView &q = required(i, "q"), &k = required(i, "k"), &v = required(i, "v");
    const auto against = [&](const char* name, const TensorView& view, const char* why) {
      fail(fmt::format("layers.{}.{} has the shape {} where q has {}: {}", i, name, shape_text(view),
                       shape_text(q), why));
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
                         shape_text(*out), shape_text(layer.q)));
      layer.out = *out;
    }
    if (const TensorView* const wo = find(i, "wo")) {
      if (!is_floating(wo->type) || wo->shape.size() != 2 || wo->shape[0] < 1 ||
          wo->shape[1] != layer.heads * layer.width)
        fail(fmt::format("layers.{}.wo is {} {}, not a matrix with {} columns", i, element_name(wo->type),
                         shape_text(*wo), layer.heads * layer.width));
      layer.wo = *wo;
    }
  }

  // (B,M): real keys. (B,1,N,M) and what broadcasts to it: must be causal, or the same for every query. True
  // or not 0: may attend; of floating-point numbers, which are added to the scores, those near 0.
  void read_mask(std::size_t i, const TensorView& mask, CaptureLayer& layer) const {
    const auto describe = [&](const std::string& what, const char* remedy = record_again) {
      fail(fmt::format("layers.{}.mask {}", i, what), remedy);
    };
    const std::int64_t batch = layer.batch, queries = layer.queries, keys = layer.keys;
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
                           shape_text(mask), queries, keys));
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
    tokens.image = image->get<std::string>(); // Capture::open() looks where it lies
    return tokens;
  }

  std::filesystem::path path_;
  std::map<std::string, const TensorView*> tensors_;
  std::map<std::string, std::string> metadata_;
  std::int64_t count_ = 0;
};

} // namespace

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

CaptureContent read_capture(const std::filesystem::path& path, const std::vector<SafetensorsFile>& files) {
  const CaptureReader reader(path, files);
  if (const std::string format = reader.text("hydrascope_capture");
      !format.empty() && format != capture_format)
    throw BrokenFile(path.string(), fmt::format("is a capture of format {}", format),
                     "open it with a newer version of the program");
  CaptureContent content{reader.layers(), reader.tokens(), reader.text("source")};
  if (content.layers.empty()) throw BrokenFile(path.string(), "it holds no layers", record_again);
  return content;
}

} // namespace hydrascope
