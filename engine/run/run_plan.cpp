#include "engine/run/run_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/run/execution.h"
#include "engine/run/memory_estimate.h"

namespace hydrascope {
namespace {

void check_below(const char* subject, std::int64_t value, std::int64_t limit, const char* what) {
  if (value >= 0 && value < limit) return;
  throw UsageError(fmt::format("{} {}", subject, value), fmt::format("there are {} {}", limit, what),
                   fmt::format("use 0 to {}", limit - 1));
}

void check_asks(const RunRequest& request, const ModelInfo& info, std::int64_t tokens) {
  for (const WeightsAsk& ask : request.asks.weights) {
    check_below("layer", ask.layer, info.layers, "layers");
    for (const std::int64_t row : ask.rows) check_below("row", row, tokens, "tokens");
  }
  for (const VectorsAsk& ask : request.asks.vectors) {
    check_below("layer", ask.layer, info.layers, "layers");
    check_below("query", ask.query, tokens, "tokens");
  }
  for (const TileAsk& ask : request.asks.tiles) check_below("layer", ask.layer, info.layers, "layers");
  for (const int layer : request.asks.focus_layers) check_below("--layer", layer, info.layers, "layers");
  if (!request.default_query && request.query) check_below("--query", *request.query, tokens, "tokens");
  if (const auto& head = request.asks.similar_heads) {
    check_below("layer", head->layer, info.layers, "layers");
    check_below("head", head->head, info.heads, "heads");
  }
  if (request.asks.deletion) check_below("layer", request.asks.deletion->layer, info.layers, "layers");
  for (const AttentionRowAsk& ask : request.asks.attention_rows) {
    check_below("layer", ask.layer, info.layers, "layers");
    if (ask.query) check_below("query", *ask.query, tokens, "tokens");
  }
  if (request.asks.timed_passes < 0)
    throw UsageError("timed passes", "there cannot be less than none", "ask for 0 or more");
  if (!request.asks.rollout) return;
  for (const int head : request.asks.rollout->heads) check_below("--head", head, info.heads, "heads");
  const double discard = request.asks.rollout->discard;
  if (!(discard >= 0 && discard < 1))
    throw UsageError(fmt::format("--discard {}", discard), "not a share of each row", "use 0 ≤ r < 1");
}

Pass make_pass(const AppliedModel& model, const PreparedInput& input, const std::vector<KernelSpec>& kernels,
               const std::vector<HeadIndex>& muted = {}) {
  Pass pass;
  pass.model = model;
  pass.input = input;
  pass.layers = layer_kernels(*model.model, kernels);
  pass.muted = muted_by_layer(muted, static_cast<int>(kernels.size()));
  pass.tapped.assign(kernels.size(), false);
  pass.first_gradient_layer = static_cast<int>(kernels.size());
  return pass;
}

WeightsReading weights_reading(std::size_t position, const WeightsAsk& ask, const Pass& pass,
                               std::uint64_t seed) {
  WeightsReading reading{position, ask, {}};
  for (const KernelSpec& spec : ask.kernels)
    reading.kernels.push_back(layer_kernel(*pass.model.model, ask.layer, seeded(spec, seed)));
  if (ask.kernels.empty()) reading.kernels.push_back(pass.layers[static_cast<std::size_t>(ask.layer)]);
  return reading;
}

// The vectors and tiles asked for of one of the two passes.
void plan_details(const RunRequest& request, const Pass& pass, bool teacher_forced, Readings& readings) {
  const Model& model = *pass.model.model;
  const std::uint64_t seed = request.execution.seed;
  for (std::size_t i = 0; i < request.asks.vectors.size(); ++i) {
    const VectorsAsk& ask = request.asks.vectors[i];
    if (ask.teacher_forced != teacher_forced) continue;
    VectorsReading reading{i, ask, {}};
    for (const KernelSpec& spec : ask.kernels)
      reading.kernels.push_back(layer_kernel(model, ask.layer, seeded(spec, seed)));
    if (ask.kernels.empty()) reading.kernels.push_back(pass.layers[static_cast<std::size_t>(ask.layer)]);
    readings.vectors.push_back(std::move(reading));
  }
  for (std::size_t i = 0; i < request.asks.tiles.size(); ++i) {
    const TileAsk& ask = request.asks.tiles[i];
    if (ask.teacher_forced != teacher_forced) continue;
    readings.tiles.push_back({i, ask, layer_kernel(model, ask.layer, seeded(ask.kernel, seed))});
  }
}

// Layers at which g is wanted: those with a focus map, and those whose vectors or deletion curve go with it.
std::vector<int> gradient_layers(const Asks& asks) {
  std::vector<int> layers = asks.focus_layers;
  const auto add = [&](int layer) {
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  };
  for (const VectorsAsk& ask : asks.vectors)
    if (ask.gradient && !ask.teacher_forced) add(ask.layer);
  if (asks.deletion) add(asks.deletion->layer);
  return layers;
}

PlannedPass plan_own(const RunRequest& request, Pass pass, const HeadRowCache& facts) {
  PlannedPass planned{std::move(pass), {}};
  const Asks& asks = request.asks;
  Readings& readings = planned.readings;
  readings.focus_layers = gradient_layers(asks);
  for (const int layer : readings.focus_layers)
    planned.pass.first_gradient_layer = std::min(planned.pass.first_gradient_layer, layer);
  planned.pass.keep_hidden = asks.hidden;
  for (std::size_t i = 0; i < asks.weights.size(); ++i)
    if (!asks.weights[i].teacher_forced)
      readings.weights.push_back(weights_reading(i, asks.weights[i], planned.pass, request.execution.seed));
  plan_details(request, planned.pass, false, readings);
  if (const auto quantities = quantities_asked(asks.head_tables, std::nullopt); !quantities.empty()) {
    HeadTableReading reading{quantities, planned.pass.layers, {}, {}};
    const std::vector<std::string> keys = planned.pass.keys();
    for (std::size_t layer = 0; layer < planned.pass.layers.size(); ++layer)
      reading.keys.push_back(keys[layer + 1] + "|own");
    readings.head_tables.push_back(std::move(reading));
  }
  readings.attention_rows = asks.attention_rows;
  if (asks.rollout) readings.rollout = RolloutReading{*asks.rollout, false, {}};
  if (asks.similar_heads) readings.similar_heads = SimilarHeadsReading{*asks.similar_heads, {}};
  planned.pass.tapped = readings.tapped(planned.pass.layers.size(), facts);
  return planned;
}

PlannedPass plan_teacher(const RunRequest& request, Pass pass, const HeadRowCache& facts) {
  PlannedPass planned{std::move(pass), {}};
  Readings& readings = planned.readings;
  planned.pass.need_output = false;
  for (std::size_t i = 0; i < request.asks.weights.size(); ++i)
    if (request.asks.weights[i].teacher_forced)
      readings.weights.push_back(
          weights_reading(i, request.asks.weights[i], planned.pass, request.execution.seed));
  plan_details(request, planned.pass, true, readings);
  const std::vector<std::string> keys = planned.pass.keys();
  for (const KernelSpec& asked : kernels_asked(request.asks.head_tables)) {
    const KernelSpec spec = seeded(asked, request.execution.seed);
    HeadTableReading reading{quantities_asked(request.asks.head_tables, asked), {}, {}, {}};
    for (std::size_t i = 0; i < planned.pass.layers.size(); ++i) {
      const int layer = static_cast<int>(i);
      reading.kernels.push_back(layer_kernel(*planned.pass.model.model, layer, spec));
      reading.keys.push_back(keys[i + 1] + "|teacher|" + planned.pass.model.layer_key(layer, spec));
    }
    readings.head_tables.push_back(std::move(reading));
  }
  planned.pass.tapped = readings.tapped(planned.pass.layers.size(), facts);
  return planned;
}

// Refused before it is tried.
void check_memory(const RunRequest& request, const ModelInfo& info, std::int64_t tokens) {
  const double bytes = estimated_bytes(request.asks, info, tokens);
  const auto available = static_cast<double>(available_bytes());
  if (available > 0 && bytes > 0.9 * available)
    throw Error("run",
                fmt::format("{} tokens and what is asked for need about {}, {} are free", tokens,
                            bytes_text(bytes), bytes_text(available)),
                "use a smaller --image-size or ask for fewer tensors, layers or rows");
}

} // namespace

RunPlan make_run_plan(const RunRequest& request, ModelStore& store, InputPreparer& inputs,
                      const HeadRowCache& facts) {
  const ModelInfo base = store.base(request.model_folder)->info();
  RunPlan plan;
  plan.schedule = parse_schedule(request.schedule, base.layers);
  for (KernelSpec& spec : plan.schedule.layers) spec = seeded(spec, request.execution.seed);

  const std::string& dtype = request.execution.dtype;
  const AppliedModel model = store.apply(request.model_folder, request.adapters, plan.schedule, dtype);
  plan.available_adapters = store.available(request.model_folder);
  const ModelInfo& info = model.model->info();
  std::vector<AdapterInfo> adapters;
  for (const AppliedAdapter& adapter : model.adapters) adapters.push_back(adapter.info);
  plan.target = check_target(request.target, info, adapters);

  const PreparedInput whole = inputs.prepare(model, request.input, request.execution.image_size);
  const PreparedInput input = with_hidden_tokens(*model.model, whole, request.hidden_tokens);
  check_asks(request, info, input.tokens);
  check_memory(request, info, input.tokens);
  check_muted_heads(request.muted_heads, info.layers, info.heads);
  const auto& muted = request.muted_heads;
  plan.own = plan_own(request, make_pass(model, input, plan.schedule.layers, muted), facts);

  if (!request.hidden_tokens.empty() || !muted.empty())
    plan.whole = make_pass(model, whole, plan.schedule.layers);

  const auto& weights = request.asks.weights;
  const auto forced = [](const auto& asks) {
    return std::any_of(asks.begin(), asks.end(), [](const auto& ask) { return ask.teacher_forced; });
  };
  if (!kernels_asked(request.asks.head_tables).empty() || forced(weights) || forced(request.asks.vectors) ||
      forced(request.asks.tiles)) {
    const Schedule softmax{std::vector<KernelSpec>(plan.schedule.layers.size())};
    const AppliedModel teacher = store.apply(request.model_folder, request.adapters, softmax, dtype);
    plan.teacher = plan_teacher(request, make_pass(teacher, input, softmax.layers), facts);
  }
  if (!plan.own.readings.focus_layers.empty() && plan.target.kind == Target::Kind::similarity) {
    const TextInput sentence{plan.target.text, std::nullopt};
    // The sentence is read by the same model: what is muted is muted for both.
    plan.other = make_pass(model, inputs.prepare(model, sentence, {}), plan.schedule.layers, muted);
  }
  return plan;
}

} // namespace hydrascope
