#include "engine/attention/own/map_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

constexpr std::size_t hash_digits = 16;

constexpr const char* default_text = R"(logarithm = True


def phi(x):
    return torch.cat([x, -x], -1)
)";

struct KnownSources {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const MapSource>> by_id; // NAME@HASH
};

KnownSources& known_sources() {
  static KnownSources sources;
  return sources;
}

// An editor adds the last line's end: with and without it the source is the same.
std::string hash_of(const std::string& text) {
  return sha256_of_text(text.ends_with('\n') ? text : text + "\n").substr(0, hash_digits);
}

std::string clean_name(std::string name) {
  for (char& c : name)
    if (!is_name_letter(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return name.empty() ? "map" : name;
}

KernelSpec spec_of(const std::string& id) { return {.name = "phi", .parameters = {{"map", id}}}; }

const MapSource& remembered(const std::string& id, const std::string& text) {
  KnownSources& known = known_sources();
  {
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.by_id.find(id); found != known.by_id.end()) return *found->second;
  }
  auto parsed = std::make_unique<const MapSource>(parse_map_source(id.substr(0, id.find('@')), text));
  const std::lock_guard lock(known.mutex);
  return *known.by_id.emplace(id, std::move(parsed)).first->second;
}

std::string id_of(const std::string& name, const std::string& text) {
  return clean_name(name) + "@" + hash_of(text);
}

bool is_id(const std::string_view value) {
  const std::size_t at = value.rfind('@');
  return at != std::string_view::npos && value.size() - at - 1 == hash_digits &&
         std::ranges::all_of(value.substr(at + 1), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::filesystem::path bundled_folder() { return assets_folder() / "maps"; }

std::vector<std::string> maps_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

} // namespace

KernelInfo info_of(const MapSource& source) {
  using Form = MapSource::Form;
  KernelInfo info;
  info.name = "phi";
  info.family = KernelFamily::own;
  const bool score = source.form == Form::score, hydra = source.form == Form::hydra;
  info.definition = score ? fmt::format("weights by {}'s score(q, k)", source.name)
                          : fmt::format("φ(x) by {}'s source", source.name);
  info.complexity = score ? "O(N² D)" : hydra ? "O(N D)" : "O(N D d′)";
  info.feature_width = score ? "—" : hydra ? "D" : "d′";
  info.source = "your own";
  info.normalised = score ? source.divided_by_sums : source.form == Form::normalised;
  info.weights_positive = info.normalised && !source.negative_weights;
  info.trainable = std::ranges::any_of(source.parameters, [](const MapParameter& one) { return !one.fixed; });
  info.implied_weights = hydra;
  info.query_map = info.key_map = {.takes_negatives = source.negative_features};
  info.positional = source.positional();
  info.parameters = {{.name = "map",
                      .kind = ParameterInfo::Kind::source,
                      .meaning = "a file, or the name of one in your folder of maps or of a bundled one",
                      .initial = "[exp x, exp −x]"}};
  info.devices = {"cpu", "cuda"};
  return info;
}

KernelSpec kernel_of_source(const std::string& name, const std::string& text) {
  const std::string id = id_of(name, text);
  remembered(id, text);
  return spec_of(id);
}

const MapSource& source_of(const KernelSpec& spec) {
  const auto map = spec.parameters.find("map");
  if (map == spec.parameters.end()) return remembered(id_of("default", default_text), default_text);
  KnownSources& known = known_sources();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_id.find(map->second);
  if (found == known.by_id.end())
    throw UsageError(spec.text(), "this source is not known here",
                     "open the session or the adapter that holds it, or name its file as phi:FILE");
  return *found->second;
}

std::string text_of_source(const KernelSpec& spec) {
  return spec.name == "phi" && spec.parameters.contains("map") ? source_of(spec).text : std::string();
}

KernelSpec kernel_with_source(const std::string& kernel, const std::string& text) {
  constexpr std::string_view start = "phi:map=";
  const std::size_t at = kernel.rfind('@');
  if (!kernel.starts_with(start) || at == std::string::npos)
    throw UsageError(kernel, "only the kernel phi has a source", "write phi:map=NAME@HASH");
  const KernelSpec spec = kernel_of_source(kernel.substr(start.size(), at - start.size()), text);
  if (spec.text() != kernel)
    throw UsageError(kernel, "the source that stands beside it is another one",
                     "the file was changed by hand");
  return parse_kernel_spec(kernel);
}

KernelSpec resolved_map(const KernelSpec& spec) {
  const auto map = spec.parameters.find("map");
  if (map == spec.parameters.end()) return spec;
  const std::string& value = map->second;
  if (is_id(value)) {
    source_of(spec); // throws if it is not known
    return spec;
  }
  std::vector<std::filesystem::path> places{value};
  if (value.find('/') == std::string::npos)
    for (const auto& folder : {maps_folder(), bundled_folder()}) places.push_back(folder / (value + ".py"));
  for (const std::filesystem::path& place : places) {
    std::error_code failure;
    if (std::filesystem::is_regular_file(place, failure))
      return kernel_of_source(place.stem().string(), read_text_file(place));
  }
  throw UsageError("phi:" + value, "there is no such file, and no map of this name",
                   fmt::format("bundled maps: {}; your own lie in {}", fmt::join(bundled_maps(), ", "),
                               maps_folder().string()));
}

std::filesystem::path maps_folder() { return data_folder() / "maps"; }

std::vector<std::string> own_maps() { return maps_in(maps_folder()); }

std::vector<std::string> bundled_maps() { return maps_in(bundled_folder()); }

std::string bundled_map(const std::string& name) { return read_text_file(bundled_folder() / (name + ".py")); }

} // namespace hydrascope
