#include "engine/run/run_plan.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/device_clock.h"

namespace hydrascope {
namespace {

void check_quantities(const RunRequest& request, const ModelInfo& info, std::int64_t tokens) {
  const RunShape shape{info.layers, info.heads, tokens};
  for (const QuantityKey& key : request.quantities) key.quantity().check(key, shape);
  if (!request.default_query && request.query) check_below("--query", *request.query, tokens, "tokens");
}

// What a capture cannot do. Throws UsageError.
void check_capture(const RunRequest& request, const ModelInfo& info) {
  std::string reason;
  keys_of_model(request.quantities, info, &reason);
  if (!reason.empty())
    throw UsageError(info.name, reason,
                     "ask for what is read off q, k and v, or open the model with --model");
  if (!request.muted_heads.empty() || !request.hidden_tokens.empty())
    throw UsageError(info.name, std::string("tokens are hidden or heads muted: ") + needs_a_model,
                     "show all tokens and unmute all heads");
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

// Throws before the run allocates anything; model and input are on the device already.
void check_memory(const RunRequest& request, const ModelInfo& info, std::int64_t tokens,
                  const c10::Device device, const std::size_t reclaimable) {
  constexpr double most = 0.9; // of what is free
  const double bytes = estimated_bytes(request.quantities, info, tokens);
  const auto available =
      static_cast<double>(free_bytes(device, bytes / most)) + static_cast<double>(reclaimable);
  if (available > 0 && bytes > most * available)
    throw Error(
        "run",
        fmt::format("{} tokens and what is asked for need about {}, {} are free{}", tokens, bytes_text(bytes),
                    bytes_text(available), device.is_cpu() ? "" : " on " + device.str()),
        "use a smaller --image-size or ask for fewer tensors, layers or rows");
}

// A decoder's predictions and target are those of the token after the query, by default after the last one.
at::Tensor token_to_read(const RunRequest& request, const std::int64_t tokens) {
  const bool given = !request.default_query && request.query;
  if (given) check_below("--query", *request.query, tokens, "tokens");
  return at::tensor({given ? *request.query : tokens - 1}, at::kLong);
}

PreparedInput placed_input(const Model& model, PreparedInput input) {
  input.input = placed(model, std::move(input.input));
  return input;
}

// The readings of all keys, planned once per type of key.
Readings plan_readings(const RunRequest& request, const PlanContext& context) {
  Readings readings;
  std::vector<const Quantity*> planned;
  for (const QuantityKey& key : request.quantities) {
    const Quantity& quantity = key.quantity();
    if (std::ranges::find(planned, &quantity) != planned.end()) continue;
    planned.push_back(&quantity);
    quantity.plan(request.quantities, context, readings);
  }
  return readings;
}

// Sets up a pass as its readings need it.
void prepare_pass(Pass& pass, const Readings& readings, bool teacher_forced) {
  for (const auto& reading : readings) {
    if (reading->teacher_forced() != teacher_forced) continue;
    pass.keep_hidden |= reading->needs_hidden();
    reading->begin(pass);
    for (std::size_t layer = 0; layer < pass.layers.size(); ++layer)
      if (reading->taps(static_cast<int>(layer))) pass.tapped[layer] = true;
  }
}

} // namespace

LoadedModel load_for(const RunRequest& request, const Placement& placement, ModelStore& store) {
  LoadedModel loaded;
  loaded.base = store.base(request.model_folder);
  loaded.schedule = seeded(resolved(request.schedule, loaded.base->info().layers), request.execution.seed);
  loaded.model = store.apply(request.model_folder, loaded.base, request.adapters, loaded.schedule, placement);
  loaded.available_adapters = store.available(request.model_folder, *loaded.base);
  return loaded;
}

RunPlan make_run_plan(const RunRequest& request, const Placement& placement, ModelStore& store,
                      InputPreparer& inputs, ReadingCaches& caches, const std::size_t reclaimable) {
  LoadedModel loaded = load_for(request, placement, store);
  const AppliedModel& model = loaded.model;
  RunPlan plan;
  plan.schedule = std::move(loaded.schedule);
  plan.available_adapters = std::move(loaded.available_adapters);
  const ModelInfo& info = model.model->info();
  std::vector<AdapterInfo> adapters;
  for (const AppliedAdapter& adapter : model.adapters) adapters.push_back(adapter.info);
  if (info.capture) check_capture(request, info);
  plan.target = info.capture ? CheckedTarget{} : check_target(request.target, *model.model, adapters);

  PreparedInput prepared = inputs.prepare(model, request.input, request.execution.image_size);
  if (info.causal) prepared.input.read = token_to_read(request, prepared.tokens);
  const PreparedInput input =
      placed_input(*model.model, with_hidden_tokens(*model.model, prepared, request.hidden_tokens));
  check_quantities(request, info, input.tokens);
  check_memory(request, info, input.tokens, placement.device, reclaimable);
  check_muted_heads(request.muted_heads, info.layers, info.heads);
  const auto& muted = request.muted_heads;
  plan.own = make_pass(model, input, plan.schedule.layers, muted);
  plan.own.need_output = !info.capture; // only the layers that are read run
  if (!request.hidden_tokens.empty() || !muted.empty())
    plan.whole = make_pass(model, placed_input(*model.model, prepared), plan.schedule.layers);

  const std::function<const Pass&()> teacher = [&]() -> const Pass& {
    if (!plan.teacher) {
      const Schedule softmax{std::vector<KernelSpec>(plan.schedule.layers.size())};
      plan.teacher =
          make_pass(store.apply(request.model_folder, loaded.base, request.adapters, softmax, placement),
                    input, softmax.layers);
      plan.teacher->need_output = false;
    }
    return *plan.teacher;
  };
  plan.readings = plan_readings(request, {request, plan.own, teacher, caches});
  for (int layer = 0; layer < info.layers && !info.capture; ++layer)
    if (std::ranges::any_of(plan.readings, [&](const auto& each) { return each->needs_gradient(layer); }))
      plan.gradient_layers.push_back(layer);
  for (const int layer : plan.gradient_layers) {
    plan.own.first_gradient_layer = std::min(plan.own.first_gradient_layer, layer);
    plan.own.tapped[static_cast<std::size_t>(layer)] = true;
  }
  prepare_pass(plan.own, plan.readings, false);
  if (plan.teacher) prepare_pass(*plan.teacher, plan.readings, true);
  if (!plan.gradient_layers.empty() && plan.target.kind == Target::Kind::similarity) {
    const TextInput sentence{plan.target.text, std::nullopt};
    // Both sentences are embedded by the same model, so the same heads are muted.
    plan.other = make_pass(model, placed_input(*model.model, inputs.prepare(model, sentence, {})),
                           plan.schedule.layers, muted);
  }
  return plan;
}

std::vector<AdapterInfo> adapters_used(const RunPlan& plan) {
  std::vector<const LayerKernel*> kernels;
  for (const LayerKernel& kernel : plan.own.layers) kernels.push_back(&kernel);
  for (const auto& reading : plan.readings) reading->add_kernels(kernels);
  std::vector<AdapterInfo> used;
  for (const AppliedAdapter& adapter : plan.own.model.adapters) {
    const auto& layers = adapter.info.layers;
    const bool used_by_kernel =
        std::any_of(layers.begin(), layers.end(), [&](const AdapterInfo::Layer& layer) {
          return std::any_of(kernels.begin(), kernels.end(), [&](const LayerKernel* kernel) {
            return kernel->kernel->spec() == layer.kernel;
          });
        });
    if (adapter.for_schedule || used_by_kernel) used.push_back(adapter.info);
  }
  return used;
}

} // namespace hydrascope
