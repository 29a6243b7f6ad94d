#include "app/commands/run_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "app/commands/output.h"
#include "app/views/focus_view.h"
#include "app/views/table_views.h"
#include "app/views/timing_view.h"
#include "app/views/weights_check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/recorded_output.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/token_loss.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {
namespace {

using Json = nlohmann::ordered_json;

std::array<std::pair<const char*, const DeletionCurve*>, 3> curves_of(const DeletionResult& deletion) {
  return {{{"most_first", &deletion.most_first},
           {"least_first", &deletion.least_first},
           {"random", &deletion.random}}};
}

// Distances by layer and head, null where undefined, and the ten nearest heads.
Json similar_heads_json(const SimilarHeads& similar) {
  Json json = {{"layer", similar.head.layer},
               {"head", similar.head.head},
               {"metric", distance_quantity(similar.metric)},
               {"nearest", Json::array()},
               {"distances", Json::array()}};
  for (const NearHead& near : nearest_heads(similar, 10))
    json["nearest"].push_back(
        {{"layer", near.head.layer}, {"head", near.head.head}, {"distance", near.distance}});
  for (std::int64_t layer = 0; layer < similar.distances.extent(0); ++layer) {
    Json row = Json::array();
    for (const float distance : similar.distances.slice(layer)) row.push_back(number_or_null(distance));
    json["distances"].push_back(std::move(row));
  }
  return json;
}

// Steps, shares, and for each order values, probabilities and the area under them.
Json deletion_json(const DeletionResult& deletion) {
  Json json = {{"layer", deletion.key.layer},
               {"target", deletion.target},
               {"hidden", deletion.hidden},
               {"shares", deletion.shares}};
  for (const auto& [name, curve] : curves_of(deletion)) {
    json[name] = {{"values", curve->values}, {"area", curve->area}};
    if (!curve->probabilities.empty()) json[name]["probabilities"] = curve->probabilities;
  }
  return json;
}

void print_similar_heads(std::ostream& out, const SimilarHeads& similar) {
  fmt::print(out, "heads like head {} of layer {}, {}\n", similar.head.head, similar.head.layer,
             distance_quantity(similar.metric));
  for (const NearHead& near : nearest_heads(similar, 10))
    fmt::print(out, "  layer {:>2}, head {:>2}  {:.4f}\n", near.head.layer, near.head.head, near.distance);
}

void print_deletion(std::ostream& out, const DeletionResult& deletion) {
  const bool probabilities = !deletion.most_first.probabilities.empty();
  fmt::print(out,
             "deletion by the focus map of layer {}: {}{}\n  hidden  most important first  "
             "least important first  random\n",
             deletion.key.layer, deletion.target, probabilities ? ", as a probability" : "");
  const auto number = [&](const DeletionCurve& curve, std::size_t step) {
    return (probabilities ? curve.probabilities : curve.values).at(step);
  };
  for (std::size_t step = 0; step < deletion.hidden.size(); ++step)
    fmt::print(out, "  {:>6}  {:>20.4f}  {:>21.4f}  {:>6.4f}\n", deletion.hidden[step],
               number(deletion.most_first, step), number(deletion.least_first, step),
               number(deletion.random, step));
  fmt::print(out, "  {:>6}  {:>20.4f}  {:>21.4f}  {:>6.4f}\n", "area", deletion.most_first.area,
             deletion.least_first.area, deletion.random.area);
}

constexpr std::size_t kShownPredictions = 5;

NamedArray batched(std::string name, Array array) {
  array.shape.insert(array.shape.begin(), 1);
  return {std::move(name), std::move(array)};
}

Array one_head(const Array& weights, std::int64_t head) {
  const auto values = weights.slice(head);
  return {{1, weights.extent(1), weights.extent(2)}, {values.begin(), values.end()}};
}

// The only result of this type of key; null if it was not requested.
template <KeyOfQuantity K>
const typename K::Result* only(const RunResult& result) {
  const auto all = result.quantities.all<K>();
  return all.empty() ? nullptr : all.front().result;
}

// The mean of one part over the heads; null if any head is undefined.
nlohmann::ordered_json mean_over_heads(const HeadTable& table, std::size_t layer, std::size_t part,
                                       std::size_t parts) {
  const auto row = table.values.slice(static_cast<std::int64_t>(layer));
  double sum = 0;
  for (std::size_t i = part; i < row.size(); i += parts) sum += static_cast<double>(row[i]);
  if (row.empty()) return nullptr;
  const std::size_t heads = row.size() / parts;
  return number_or_null(sum / static_cast<double>(heads));
}

nlohmann::ordered_json heads_json(const HeadTable& table, std::size_t layer) {
  const auto& parts = head_quantity_info(table.key.quantity).parts;
  if (parts.size() == 1) return mean_over_heads(table, layer, 0, 1);
  nlohmann::ordered_json numbers;
  for (std::size_t part = 0; part < parts.size(); ++part)
    numbers[parts[part].name] = mean_over_heads(table, layer, part, parts.size());
  return numbers;
}

nlohmann::ordered_json check_json(const WeightsResult& weights) {
  const KernelInfo& info = kernel_info(weights.kernel);
  nlohmann::ordered_json json = {
      {"worst", weights.check}, {"rows", weights.rows.size()}, {"checked", checked_text(info)}};
  if (info.implied_weights) json["weights"] = implied_weights_text(info);
  return json;
}

// What was recorded of a layer, and how far softmax's output lies from the recorded one.
nlohmann::ordered_json recorded_json(const RunResult& result, std::size_t index) {
  const CaptureInfo& capture = *result.model.capture;
  nlohmann::ordered_json json = {{"name", capture.layer_names.at(index)},
                                 {"heads", result.model.heads},
                                 {"key_heads", capture.key_heads},
                                 {"tokens", capture.queries > 0 ? capture.queries : capture.tokens},
                                 {"d", result.model.width / result.model.heads}};
  if (capture.queries > 0) json["keys"] = capture.tokens - capture.queries;
  if (const auto* const checks = only<RecordedOutputKey>(result))
    json["check"] = number_or_null(checks->at(index));
  return json;
}

nlohmann::ordered_json layer_json(const RunResult& result, std::size_t index) {
  const LayerRun& layer = result.layers[index];
  nlohmann::ordered_json entry = {{"kernel", layer.kernel.text()},
                                  {"path", layer.path},
                                  {"seconds", layer.seconds},
                                  {"untrained", layer.untrained},
                                  {"other_resolution", layer.other_resolution},
                                  {"zero_denominators", layer.zero_denominators}};
  if (result.model.capture) entry.update(recorded_json(result, index));
  for (const auto& [key, table] : result.quantities.all<HeadTableKey>())
    if (!key.kernel) entry[key.quantity] = heads_json(*table, index);
  for (const auto& [key, weights] : result.quantities.all<WeightsKey>())
    if (static_cast<std::size_t>(key.layer) == index) entry["weights_check"] = check_json(*weights);
  return entry;
}

nlohmann::ordered_json adapter_json(const AdapterInfo& adapter) {
  auto layers = nlohmann::ordered_json::array();
  for (const AdapterInfo::Layer& layer : adapter.layers)
    layers.push_back({{"layer", layer.layer}, {"kernel", layer.kernel.text()}});
  nlohmann::ordered_json json = {
      {"name", adapter.name}, {"hash", adapter.hash}, {"layers", std::move(layers)}};
  if (!adapter.version.empty()) json["version"] = adapter.version;
  if (!adapter.data_hash.empty()) json["data_hash"] = adapter.data_hash;
  return json;
}

nlohmann::ordered_json focus_json(const RunResult& result) {
  auto layers = nlohmann::ordered_json::array();
  for (const auto& [key, focus] : result.quantities.all<FocusKey>()) {
    double sum = 0;
    for (const float value : focus->contributions.values) sum += static_cast<double>(value);
    layers.push_back({{"layer", key.layer},
                      {"total", focus->total},
                      {"sum", sum},
                      {"share", number_or_null(focus->share)},
                      {"zero_gradient", focus->zero_gradient}});
  }
  nlohmann::ordered_json query = "all";
  if (result.query) query = *result.query;
  return {{"target", result.target},
          {"value", number_or_null(result.target_value)},
          {"query", query},
          {"layers", layers}};
}

nlohmann::ordered_json predictions_json(const std::vector<Prediction>& predictions, const ModelInfo& model) {
  auto shown = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < std::min(kShownPredictions, predictions.size()); ++i)
    if (predicts_number(model))
      shown.push_back({{"label", predictions[i].label}, {"number", predictions[i].logit}, {"index", 0}});
    else
      shown.push_back({{"label", predictions[i].label},
                       {"probability", predictions[i].probability},
                       {"index", predictions[i].index}});
  return shown;
}

// Which part and sequence of which capture.
nlohmann::ordered_json capture_json(const CaptureInfo& capture) {
  return {{"file", capture.file.string()}, {"source", capture.source}, {"part", capture.part},
          {"parts", capture.parts.size()}, {"sequence", capture.item}, {"sequences", capture.items}};
}

// Of the layers whose output was recorded; NaN where none was.
double worst_check(const std::vector<double>& checks) {
  double worst = -1;
  for (const double check : checks) worst = std::max(worst, check); // NaN: not recorded
  return worst < 0 ? std::numeric_limits<double>::quiet_NaN() : worst;
}

// What was recorded, and how far softmax's output lies from the recorded one, in a line.
std::string capture_text(const RunResult& result) {
  const CaptureInfo& capture = *result.model.capture;
  std::string text = fmt::format("{}: {} layer{}, {} heads of {}", result.model.name, result.model.layers,
                                 result.model.layers == 1 ? "" : "s", result.model.heads,
                                 result.model.width / result.model.heads);
  if (capture.key_heads != result.model.heads)
    text += fmt::format(" ({} of keys and values)", capture.key_heads);
  text += capture.queries > 0
              ? fmt::format("; {} queries, {} keys", capture.queries, capture.tokens - capture.queries)
              : fmt::format("; {} tokens", capture.tokens);
  if (const auto* const checks = only<RecordedOutputKey>(result)) {
    const double worst = worst_check(*checks);
    text += std::isnan(worst)
                ? "; no output was recorded"
                : fmt::format("; softmax's output lies within {:.1e} of the recorded one", worst);
  }
  return text;
}

nlohmann::ordered_json muted_json(const RunResult& result) {
  auto heads = nlohmann::ordered_json::array();
  for (const HeadIndex& each : result.muted_heads)
    heads.push_back({{"layer", each.layer}, {"head", each.head}});
  return heads;
}

std::string remarks(const LayerRun& layer) {
  std::string text;
  if (layer.untrained) text += "untrained";
  if (layer.other_resolution) text += text.empty() ? "other resolution" : ", other resolution";
  if (layer.zero_denominators > 0)
    text +=
        fmt::format("{}{} rows with a zero denominator", text.empty() ? "" : ", ", layer.zero_denominators);
  return text;
}

} // namespace

const std::vector<std::string>& run_tensor_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"pixels", "logits", "hidden", "attention", "focus", "rollout", "loss"};
    for (const HeadQuantityInfo& quantity : head_quantity_infos()) all.push_back(quantity.name);
    return all;
  }();
  return names;
}

std::set<std::string> parse_run_tensors(std::string_view list) {
  const auto& known = run_tensor_names();
  std::set<std::string> asked;
  for (const std::string_view part : split(list, ',')) {
    const std::string name(part);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("--tensors", fmt::format("unknown tensor '{}'", name),
                       fmt::format("known are {}", fmt::join(known, ", ")));
    asked.insert(name);
  }
  return asked;
}

std::vector<NamedArray> run_tensors(const RunResult& result, const std::set<std::string>& asked,
                                    std::optional<int> head, std::vector<std::string>& notes) {
  std::vector<NamedArray> tensors;
  const auto whole = [&](const std::string& name, const Array* array, const char* reason) {
    if (!asked.contains(name)) return;
    if (array == nullptr || array->empty())
      notes.push_back(fmt::format("{} left out: {}", name, reason));
    else
      tensors.push_back({name, *array});
  };
  const RolloutResult* rollout = only<RolloutKey>(result);
  whole("pixels", only<PixelsKey>(result), "the model takes text");
  whole("logits", only<LogitsKey>(result), "the model has no classifier");
  const TokenLoss* loss = only<TokenLossKey>(result);
  whole("loss", loss ? &loss->loss : nullptr, "the model predicts no next token");
  whole("rollout", rollout ? &rollout->weights : nullptr, "there is no attention");
  if (const std::string lacking = rollout ? lacking_layers_text(*rollout) : ""; !lacking.empty())
    notes.push_back("rollout: " + lacking);
  for (const HeadQuantityInfo& quantity : head_quantity_infos()) {
    const HeadTable* table = result.quantities.find(HeadTableKey{quantity.name});
    whole(quantity.name, table ? &table->values : nullptr, "there is no attention");
  }
  if (const auto* hidden = only<HiddenStatesKey>(result); asked.contains("hidden") && hidden)
    for (std::size_t i = 0; i < hidden->size(); ++i)
      tensors.push_back({fmt::format("hidden.{}", i), (*hidden)[i]});
  if (asked.contains("attention")) {
    for (const auto& entry : result.quantities.all<WeightsKey>()) {
      const WeightsResult& weights = *entry.result;
      const std::string name = fmt::format("attention.{}", weights.layer);
      if (head && *head >= weights.weights.extent(0))
        notes.push_back(fmt::format("{} left out: {} has {} heads", name, weights.kernel.label(),
                                    weights.weights.extent(0)));
      else
        tensors.push_back(batched(name, head ? one_head(weights.weights, *head) : weights.weights));
    }
  }
  if (asked.contains("focus"))
    for (const auto& [key, focus] : result.quantities.all<FocusKey>())
      tensors.push_back(batched(fmt::format("focus.{}", key.layer), focus->contributions));
  return tensors;
}

nlohmann::ordered_json run_json(const RunResult& result) {
  nlohmann::ordered_json document;
  document["predictions"] = predictions_json(result.predictions, result.model);
  document["tokens"] = nlohmann::ordered_json::array();
  for (const TokenInfo& token : result.tokens) document["tokens"].push_back(token.text);
  if (!result.muted_heads.empty()) document["muted_heads"] = muted_json(result);
  if (result.whole)
    document["whole"] = {{"predictions", predictions_json(result.whole->predictions, result.model)},
                         {"similarity", number_or_null(result.whole->similarity)}};
  document["seconds"] = result.seconds;
  document["layers"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < result.layers.size(); ++i) document["layers"].push_back(layer_json(result, i));
  document["adapters"] = nlohmann::ordered_json::array();
  for (const AdapterInfo& adapter : result.adapters) document["adapters"].push_back(adapter_json(adapter));
  document["notes"] = result.notes;
  document["model"] = {
      {"name", result.model.name}, {"family", result.model.family}, {"hash", result.model_hash}};
  if (result.model.independent_labels) document["model"]["independent_labels"] = true;
  if (result.model.capture) document["capture"] = capture_json(*result.model.capture);
  if (const auto* const checks = only<RecordedOutputKey>(result))
    document["check"] = number_or_null(worst_check(*checks));
  document["device"] = result.device;
  document["dtype"] = result.dtype;
  document["threads"] = result.threads;
  document["peak_bytes"] = result.peak_bytes;
  if (only<FocusKey>(result)) document["focus"] = focus_json(result);
  if (const auto* similar = only<SimilarHeadsKey>(result))
    document["similar_heads"] = similar_heads_json(*similar);
  if (const auto* deletion = only<DeletionKey>(result)) document["deletion"] = deletion_json(*deletion);
  return document;
}

void print_run(std::ostream& out, const RunResult& result) {
  if (result.model.capture) {
    fmt::print(out, "{}\n", capture_text(result));
  } else if (result.predictions.empty()) {
    fmt::print(out, "{} has no classifier; {} tokens\n", result.model.name, result.tokens.size());
  } else if (predicts_number(result.model)) {
    fmt::print(out, "{}, {} tokens; predicted {}: {:.4g}\n", result.model.name, result.tokens.size(),
               result.predictions.front().label, result.predictions.front().logit);
  } else {
    fmt::print(out, "{}, {} tokens; most likely {}:\n", result.model.name, result.tokens.size(),
               result.model.causal               ? "next tokens"
               : result.model.independent_labels ? "labels, each by itself"
                                                 : "classes");
    std::size_t width = 0;
    const std::size_t shown = std::min(kShownPredictions, result.predictions.size());
    for (std::size_t i = 0; i < shown; ++i) width = std::max(width, result.predictions[i].label.size());
    for (std::size_t i = 0; i < shown; ++i)
      fmt::print(out, "{:<{}}  {:6.2f} %\n", result.predictions[i].label, width,
                 100 * result.predictions[i].probability);
  }
  if (result.whole && !result.whole->predictions.empty() && predicts_number(result.model))
    fmt::print(out, "nothing muted: {:.4g}\n", result.whole->predictions.front().logit);
  else if (result.whole && !result.whole->predictions.empty())
    fmt::print(out, "nothing muted: {}  {:.2f} %\n", result.whole->predictions.front().label,
               100 * result.whole->predictions.front().probability);
  if (result.whole) fmt::print(out, "similarity to nothing muted: {:.4f}\n", result.whole->similarity);
  std::size_t kernel_width = std::string_view("kernel").size();
  std::size_t path_width = std::string_view("path").size();
  for (const LayerRun& layer : result.layers) {
    kernel_width = std::max(kernel_width, layer.kernel.label().size());
    path_width = std::max(path_width, path_text(layer.path).size());
  }
  fmt::print(out, "\nlayer  {:<{}}  {:<{}}      ms\n", "kernel", kernel_width, "path", path_width);
  for (std::size_t i = 0; i < result.layers.size(); ++i) {
    const LayerRun& layer = result.layers[i];
    const std::string remark = remarks(layer);
    const std::string time = result.model.capture ? "—" : fmt::format("{:.2f}", 1000 * layer.seconds);
    fmt::print(out, "{:>5}  {:<{}}  {:<{}}  {:>6}{}{}\n", i, layer.kernel.label(), kernel_width,
               path_text(layer.path), path_width, time, remark.empty() ? "" : "  ", remark);
  }
  fmt::print(out, "\n{:.0f} ms in all, {} on {}, {} threads, at most {:.0f} MB\n", 1000 * result.seconds,
             result.dtype, result.device, result.threads, static_cast<double>(result.peak_bytes) / 1e6);
  if (only<FocusKey>(result))
    fmt::print(out, "focus: {} at query {}\n", result.target,
               result.query ? fmt::format("{}", *result.query) : "all");
  if (const auto* similar = only<SimilarHeadsKey>(result)) print_similar_heads(out, *similar);
  if (const auto* deletion = only<DeletionKey>(result)) print_deletion(out, *deletion);
  for (const AdapterInfo& adapter : result.adapters)
    fmt::print(out, "adapter: {} ({})\n", adapter.name, adapter.hash.substr(0, 12));
  for (const std::string& note : result.notes) fmt::print(out, "note: {}\n", note);
}

} // namespace hydrascope::app
