// Adapter files: safetensors of the parameters that differ from a base, with metadata about their purpose
// (format "hydrascope-adapter-1").
#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/attention/interface/remedies.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/base/text.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/low_rank.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {
namespace {

using Metadata = std::map<std::string, std::string>;
constexpr const char* format_name = "hydrascope-adapter-1";

std::string text_of(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

class AdapterReader {
public:
  AdapterReader(const std::filesystem::path& file, const Metadata& metadata)
      : file_(file), metadata_(metadata) {}

  std::string text(const std::string& key) const { return text_of(metadata_, key); }

  int integer(const std::string& key) const {
    const std::string value = text(key);
    if (value.empty()) return 0;
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      fail(key + " is '" + value + "', not a whole number");
    return number;
  }

  // A JSON list; empty if it is absent.
  nlohmann::json list(const std::string& key) const {
    const std::string value = text(key);
    if (value.empty()) return nlohmann::json::array();
    if (const char* const why = why_not_parsed(value)) fail(fmt::format("{} {}", key, why));
    nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
    if (!parsed.is_array()) fail(key + " is not a JSON list");
    return parsed;
  }

  std::vector<AdapterInfo::Layer> layers() const {
    constexpr std::size_t most_entries = 1000,
                          most_maps = 64; // each map is compiled for the run, which may take a second
    std::vector<AdapterInfo::Layer> result;
    std::set<std::string> maps;
    const nlohmann::json entries = list("layers");
    if (entries.size() > most_entries) fail(fmt::format("layers has more than {} entries", most_entries));
    for (const auto& entry : entries) {
      const bool complete = entry.is_object() && entry.contains("layer") &&
                            entry["layer"].is_number_unsigned() && entry.contains("kernel") &&
                            entry["kernel"].is_string();
      if (!complete || entry["layer"].get<std::uint64_t>() > 100'000)
        fail("layers is not a list of layer and kernel");
      try {
        const auto kernel = entry["kernel"].get<std::string>();
        const bool typed = entry.contains("source") && entry["source"].is_string();
        if (typed && maps.insert(kernel).second && maps.size() > most_maps)
          fail(fmt::format("layers holds more than {} different maps", most_maps));
        result.push_back(
            {entry["layer"].get<int>(), typed ? kernel_with_source(kernel, entry["source"].get<std::string>())
                                              : parse_kernel_spec(kernel, "kernel")});
      } catch (const UsageError& error) {
        fail(error.what());
      }
    }
    return result;
  }

  // `base` is the last of them.
  std::vector<std::string> over(const std::string& base) const {
    std::vector<std::string> result;
    for (const auto& entry : list("over")) {
      if (!entry.is_string()) fail("over is not a list of hashes");
      result.push_back(entry.get<std::string>());
    }
    if (!result.empty() && result.back() != base) fail("over does not end with base");
    return result;
  }

  std::vector<AdapterInfo::Class> classes() const {
    std::vector<AdapterInfo::Class> result;
    for (const auto& entry : list("classes")) {
      if (!entry.is_object() || !entry.contains("label") || !entry["label"].is_string())
        fail("classes is not a list of id and label");
      const bool has_id = entry.contains("id") && entry["id"].is_string();
      result.push_back(
          {has_id ? entry["id"].get<std::string>() : std::string(), entry["label"].get<std::string>()});
    }
    return result;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw BrokenFile(file_.string(), reason, "train the adapter again, or fetch it again");
  }

private:
  const std::filesystem::path& file_;
  const Metadata& metadata_;
};

// "57 classes of Tiny ImageNet, 4,000 steps, loss 0.99, 77 % right"
std::string summary_of(const AdapterReader& reader) {
  std::vector<std::string> parts;
  if (const std::string data = reader.text("data"); !data.empty()) parts.push_back(data);
  if (const int steps = reader.integer("steps"); steps > 0) parts.push_back(fmt::format("{} steps", steps));
  if (const std::string loss = reader.text("loss"); !loss.empty()) parts.push_back("loss " + loss);
  if (const std::string accuracy = reader.text("accuracy"); !accuracy.empty())
    parts.push_back("accuracy " + accuracy);
  std::string summary;
  for (const std::string& part : parts) summary += (summary.empty() ? "" : ", ") + part;
  return summary;
}

// The layers that do not run exact softmax, with their kernels. Schedules are the same if these are.
std::set<std::pair<int, std::string>> replaced(const std::vector<AdapterInfo::Layer>& layers) {
  std::set<std::pair<int, std::string>> result;
  for (const auto& entry : layers)
    if (!kernel_info(entry.kernel).exact_softmax) result.emplace(entry.layer, entry.kernel.text());
  return result;
}

std::set<std::pair<int, std::string>> replaced(const Schedule& schedule) {
  std::vector<AdapterInfo::Layer> layers;
  for (std::size_t i = 0; i < schedule.layers.size(); ++i)
    layers.push_back({static_cast<int>(i), schedule.layers[i]});
  return replaced(layers);
}

// The adapters from the model to `last`, in order of application; empty if one of them is not available.
std::vector<AdapterInfo> chain_to(const AdapterInfo& last, const std::string& model_hash,
                                  const std::vector<AdapterInfo>& available) {
  std::vector<AdapterInfo> chain = adapters_below(last, available);
  chain.push_back(last);
  std::vector<std::string> hashes;
  for (const AdapterInfo& adapter : chain) {
    if (!fits_over(adapter, model_hash, hashes)) return {};
    hashes.push_back(adapter.hash);
  }
  return chain;
}

// Adds the weights that the file's low-rank factors update. Throws BrokenFile (half of the factors, no
// scale), Error (a weight that the model lacks).
void add_updates(const Model& model, const SafetensorsFile& file, std::map<std::string, at::Tensor>& to) {
  const auto fail = [&](const std::string& reason) {
    throw BrokenFile(file.path().string(), reason, "train the adapter again, or fetch it again");
  };
  const auto number = decimal_number(text_of(file.metadata(), "lora_alpha"));
  std::size_t factors = 0, pairs = 0;
  for (const auto& [name, view] : file.tensors()) {
    factors += name.ends_with(low_rank_a) || name.ends_with(low_rank_b) ? 1 : 0;
    if (!name.ends_with(low_rank_a)) continue;
    if (!number) fail("lora_alpha is not a number");
    const std::string weight = name.substr(0, name.size() - low_rank_a.size());
    const auto second = file.tensors().find(weight + std::string(low_rank_b));
    if (second == file.tensors().end()) fail("has no " + weight + std::string(low_rank_b));
    const auto& shape = second->second.shape;
    if (view.shape.size() != 2 || shape.size() != 2 || view.shape[0] != shape[1] || view.shape[0] < 1)
      fail("the factors of " + weight + " do not fit each other");
    const at::Tensor base = model.parameter(canonical_name(weight));
    const at::Device device = base.device();
    to[canonical_name(weight)] =
        with_low_rank(base, tensor_of(view, file).to(device, at::kFloat),
                      tensor_of(second->second, file).to(device, at::kFloat), *number);
    ++pairs;
  }
  if (factors != 2 * pairs) fail("has half of a pair of low-rank factors");
}

// A classifier that was trained on standardised labels then predicts in their unit. Throws BrokenFile (a
// scale that is none, or of no classifier).
void scale_to_labels(const SafetensorsFile& file, std::map<std::string, at::Tensor>& parameters) {
  if (text_of(file.metadata(), "label_deviation").empty()) return;
  const auto mean = decimal_number(text_of(file.metadata(), "label_mean"));
  const auto deviation = decimal_number(text_of(file.metadata(), "label_deviation"));
  const auto weight = parameters.find("classifier.weight"), bias = parameters.find("classifier.bias");
  const bool whole = weight != parameters.end() && bias != parameters.end();
  if (!mean || !deviation || *deviation <= 0 || !whole || bias->second.numel() != 1)
    throw BrokenFile(file.path().string(), "label_mean and label_deviation are no scale of its classifier",
                     "train the adapter again, or fetch it again");
  weight->second = weight->second * *deviation;
  bias->second = bias->second * *deviation + *mean;
}

} // namespace

AdapterInfo read_adapter_info(const std::filesystem::path& file) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  const Metadata& metadata = opened.metadata();
  if (text_of(metadata, "format") != format_name)
    throw ForeignFile(file.string(), "is not a Hydrascope adapter",
                      "give a file that distill or finetune has written");
  const AdapterReader reader(file, metadata);
  AdapterInfo info;
  info.path = file;
  info.name = reader.text("name");
  if (info.name.empty()) info.name = file.stem().string();
  info.base = reader.text("base");
  info.over = reader.over(info.base);
  info.role = reader.text("role");
  if (info.role != "tail" && info.role != "schedule" && info.role != "maps")
    reader.fail("role is '" + info.role + "', not tail, schedule or maps");
  info.layers = reader.layers();
  info.image_size = reader.integer("image_size");
  info.tokens = reader.integer("tokens");
  info.classes = reader.classes();
  info.summary = summary_of(reader);
  info.version = reader.text("version");
  info.data_hash = reader.text("data_hash");
  info.hash = sha256_of_file(file);
  return info;
}

std::vector<AdapterInfo> adapters_below(const AdapterInfo& adapter,
                                        const std::vector<AdapterInfo>& available) {
  const auto find = [&](const std::string& hash) {
    return std::ranges::find(available, hash, &AdapterInfo::hash);
  };
  std::vector<AdapterInfo> below;
  const AdapterInfo* lowest = &adapter;
  while (lowest->over.empty() && below.size() <= available.size()) { // ends, whatever the hashes are
    const auto base = find(lowest->base);
    if (base == available.end()) return below;
    below.insert(below.begin(), *base);
    lowest = &*base;
  }
  std::vector<AdapterInfo> named;
  for (const std::string& hash : lowest->over)
    if (const auto found = find(hash); found != available.end()) named.push_back(*found);
  below.insert(below.begin(), named.begin(), named.end());
  return below;
}

bool fits_over(const AdapterInfo& adapter, const std::string& model_hash,
               const std::vector<std::string>& applied) {
  if (adapter.over.empty())
    return adapter.base == model_hash || std::ranges::find(applied, adapter.base) != applied.end();
  auto next = applied.begin();
  for (const std::string& hash : adapter.over) {
    next = std::find(next, applied.end(), hash);
    if (next == applied.end()) return false;
    ++next;
  }
  return true;
}

std::vector<AdapterInfo> select_adapters(const std::string& model_hash, const Schedule& schedule,
                                         const std::vector<AdapterInfo>& available) {
  std::vector<AdapterInfo> chosen;
  const auto required = replaced(schedule);
  // An adapter for exactly this schedule, on the adapters that it was trained over; else the model's own
  // tail.
  for (const AdapterInfo& adapter : available) {
    if (required.empty() || adapter.role != "schedule" || replaced(adapter.layers) != required) continue;
    chosen = chain_to(adapter, model_hash, available);
    if (!chosen.empty()) break;
  }
  if (chosen.empty()) {
    const auto tail = std::find_if(available.begin(), available.end(), [&](const AdapterInfo& adapter) {
      return adapter.role == "tail" && adapter.base == model_hash;
    });
    if (tail != available.end()) chosen.push_back(*tail);
  }
  // Trained maps: those with layers that no other adapter provides.
  std::vector<std::string> bases;
  std::set<std::pair<int, std::string>> missing = required;
  for (const AdapterInfo& adapter : chosen) {
    bases.push_back(adapter.hash);
    for (const auto& part : replaced(adapter.layers)) missing.erase(part);
  }
  for (const AdapterInfo& adapter : available) {
    if (adapter.role != "maps" || !fits_over(adapter, model_hash, bases)) continue;
    bool useful = false;
    for (const auto& part : replaced(adapter.layers)) useful = missing.erase(part) > 0 || useful;
    if (useful) chosen.push_back(adapter);
  }
  return chosen;
}

std::optional<bool> trained_for(const Schedule& schedule, const std::vector<AdapterInfo>& applied) {
  const auto required = replaced(schedule);
  if (required.empty()) return std::nullopt;
  auto missing = required;
  bool converted = false;
  for (const AdapterInfo& adapter : applied) {
    const auto parts = replaced(adapter.layers);
    if (adapter.role != "maps") {
      if (parts == required) return true;
      converted = converted || !parts.empty();
    }
    for (const auto& part : parts) missing.erase(part);
  }
  return !converted && missing.empty();
}

std::vector<AdapterInfo> used_by(const Schedule& schedule, std::vector<AdapterInfo> applied) {
  const auto required = replaced(schedule);
  std::erase_if(applied, [&](const AdapterInfo& adapter) {
    return adapter.role == "maps" && std::ranges::none_of(replaced(adapter.layers), [&](const auto& part) {
             return required.contains(part);
           });
  });
  return applied;
}

std::shared_ptr<const Model> apply_adapter(const std::shared_ptr<const Model>& model,
                                           const AdapterInfo& adapter,
                                           const std::vector<std::string>& applied) {
  const bool fits = fits_over(adapter, model->hash(), applied);
  if (!fits && !adapter.over.empty()) {
    std::string names;
    for (const std::string& hash : adapter.over)
      names += (names.empty() ? "" : ", ") + hash.substr(0, 12) + "…";
    const std::string reason =
        fmt::format("was trained over the adapters {}, which do not all come before it in this order", names);
    throw BrokenFile(adapter.path.string(), reason,
                     "choose its own model, and give these adapters first, in this order");
  }
  if (!fits)
    throw BrokenFile(adapter.path.string(),
                     fmt::format("was trained over another base ({}…), not over {} ({}…)",
                                 adapter.base.substr(0, 12), model->info().name, model->hash().substr(0, 12)),
                     "choose its own model, or give its base adapter first");
  const SafetensorsFile file = SafetensorsFile::open(adapter.path);
  std::map<std::string, at::Tensor> replacements;
  for (const auto& [name, view] : file.tensors())
    if (!name.ends_with(low_rank_a) && !name.ends_with(low_rank_b))
      replacements[canonical_name(name)] = tensor_of(view, file).to(at::kFloat);
  scale_to_labels(file, replacements);
  std::vector<std::string> labels;
  for (const auto& one : adapter.classes) labels.push_back(one.label);
  try {
    add_updates(*model, file, replacements);
    file.mapping()->require();
    // The image size of trained maps is that of their training, not a new size for the pictures.
    return model->with_parameters(replacements, labels, adapter.role == "maps" ? 0 : adapter.image_size);
  } catch (const UsageError&) {
    throw;
  } catch (const BrokenFile&) {
    throw;
  } catch (const Error& error) {
    throw BrokenFile(adapter.path.string(), error.what(), "train the adapter again, or fetch it again");
  } catch (const c10::Error&) {
    const Failure failure = caught_failure(model->device().str());
    if (failure.kind != Failure::Kind::other) throw; // no fault of the file
    throw BrokenFile(adapter.path.string(), failure.reason, "fetch it again");
  }
}

} // namespace hydrascope
