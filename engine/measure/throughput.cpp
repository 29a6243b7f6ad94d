#include "engine/measure/throughput.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/remedies.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/measure/flops.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/linear.h"
#include "engine/models/transformer/model.h"
#include "engine/run/device_clock.h"
#include "engine/run/model_store.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"
#include "engine/run/run.h"

namespace hydrascope {
namespace {

// Returns v, as if attention took no time.
class Bypass final : public Kernel {
public:
  Bypass() : Kernel(KernelSpec{}) {}
  Plan plan(const AttentionShape&) const override { return {}; }
  at::Tensor weights(const AttentionInput&, const KernelParameters&, const at::Tensor&) const override {
    throw Error("bench model", "a bypass has no weights", "report this with the command");
  }
  Cost cost(const AttentionShape&) const override { return {}; }

protected:
  AttentionOutput compute(Path, const AttentionInput& input, const KernelParameters&) const override {
    return {.out = input.v, .path = "none"};
  }
};

ModelInput first_input(const Model& model, const ThroughputRequest& request) {
  if (model.info().input == InputKind::image) {
    const Image grey{64, 64, std::vector<std::uint8_t>(3UL * 64 * 64, 128)};
    return model.prepare_image(grey, request.execution.image_size);
  }
  if (model.info().causal) { // whose texts have no tokens beside their words
    ModelInput input;
    const int tokens = std::min(request.tokens, model.info().max_tokens);
    input.token_ids = at::randint(model.info().vocabulary, {1, tokens}, at::kLong);
    return input;
  }
  std::string words;
  for (int i = 2; i < request.tokens; ++i) words += "a "; // beside [CLS] and [SEP]
  return model.prepare_text(words);
}

ModelInput repeated(ModelInput input, const std::int64_t batch) {
  for (at::Tensor* part : {&input.pixels, &input.token_ids, &input.token_types, &input.mask}) {
    if (!part->defined()) continue;
    std::vector<std::int64_t> times(static_cast<std::size_t>(part->dim()), 1);
    times.front() = batch;
    *part = part->repeat(times);
  }
  return input;
}

// The whole model under one schedule, run by blocks without taps.
class Contender {
public:
  Contender(std::shared_ptr<const Model> model, std::vector<LayerKernel> kernels)
      : pass_(plain_pass(std::move(model), std::move(kernels))) {
    pass_.observed = false;
  }

  void set_input(const ModelInput& input) { pass_.input.input = input; }

  // Throws UsageError where a kernel cannot run on this input.
  void run() const { finish(pass_, run_pass(pass_).output); }

  std::string paths() const {
    Pass observed = pass_;
    observed.observed = true;
    std::set<std::string> paths;
    for (const PassBlock& block : run_pass(observed).blocks) paths.insert(block.path);
    return fmt::format("{}", fmt::join(paths, ", "));
  }

  // The same as the program runs it if only the output is asked for.
  void run_untapped(const std::stop_token& stop) const {
    Pass observed = pass_;
    observed.observed = true;
    PrefixCache cache(std::size_t{1} << 30); // new, so that nothing is cached
    finish(observed, run_pass(observed, cache, stop, {}, {}).output);
  }

private:
  static void finish(const Pass& pass, const at::Tensor& hidden) {
    const Model& model = *pass.model.model;
    if (model.info().has_classifier)
      model.logits(hidden, pass.input.input);
    else
      model.final_hidden(hidden);
  }

  Pass pass_;
};

// The matrix products of all blocks, each block with its own matrices.
class Products {
public:
  Products(const ModelConfig& config, const Placement& placement) {
    // Projections of one input as one product.
    const auto product = [&](std::int64_t in, const std::vector<std::int64_t>& outs) {
      std::vector<Linear::Part> parts;
      for (const std::int64_t out : outs)
        parts.push_back({at::randn({out, in}).to(placement.device, placement.dtype),
                         at::randn({out}).to(placement.device, placement.dtype)});
      return std::make_unique<Linear>(std::move(parts));
    };
    const std::int64_t width = config.width, inner = config.intermediate;
    const std::int64_t keys = width / config.heads * config.kv_heads();
    for (int layer = 0; layer < config.layers; ++layer) {
      auto& block = blocks_.emplace_back();
      block.push_back(product(width, {width, keys, keys}));
      block.push_back(product(width, {width}));
      block.push_back(product(width, std::vector<std::int64_t>(config.gated_mlp ? 2U : 1U, inner)));
      block.push_back(product(inner, {width}));
    }
  }

  void run(const at::Tensor& hidden) const {
    for (const auto& block : blocks_) {
      block[0]->split(hidden);
      (*block[1])(hidden);
      const at::Tensor inner = block[2]->split(hidden).front();
      (*block[3])(inner);
    }
  }

private:
  std::vector<std::vector<std::unique_ptr<Linear>>> blocks_;
};

// Throws Error for a batch that cannot fit: the input and, within a block, the hidden state, q, k, v and the
// attention's output of each item.
void check_memory(const Model& model, const Placement& placement, const ModelInput& one, std::int64_t batch) {
  double each = 0;
  for (const at::Tensor* part : {&one.pixels, &one.token_ids, &one.token_types, &one.mask})
    if (part->defined()) each += static_cast<double>(part->nbytes());
  each += 5 * static_cast<double>(model.embed(placed(model, one)).nbytes());
  const double needed = each * static_cast<double>(batch);
  const auto free = static_cast<double>(free_bytes(placement.device, needed));
  if (free > 0 && needed > free)
    throw Error(
        fmt::format("--batch {}", batch),
        fmt::format("needs {:.1f} GiB or more, {:.1f} GiB are free", needed / (1 << 30), free / (1 << 30)),
        "use a smaller one");
}

struct Entry {
  ThroughputRow row;
  std::function<void()> run;
  std::vector<double> seconds;
};

void take_turns(std::vector<Entry>& entries, const ThroughputRequest& request, const DeviceClock& clock,
                const std::function<void()>& after_turn, const std::stop_token& stop) {
  for (std::int64_t turn = 0; turn < std::int64_t{request.warm_ups} + request.runs; ++turn)
    for (Entry& entry : entries) {
      if (stop.stop_requested()) throw Cancelled();
      const double seconds = clock.seconds(entry.run);
      if (turn >= request.warm_ups) entry.seconds.push_back(seconds);
      after_turn();
    }
  for (Entry& entry : entries) {
    double total = 0;
    for (const double seconds : entry.seconds) total += seconds;
    entry.row.items_per_second = entry.row.batch * static_cast<double>(entry.seconds.size()) / total;
    entry.row.time = repeated_time(entry.seconds);
  }
}

std::vector<ThroughputRow> measure(const Placement& placement, const ThroughputRequest& request,
                                   const std::function<void(std::int64_t, std::int64_t)>& progress,
                                   const std::stop_token& stop, ModelStore& models) {
  using Kind = ThroughputRow::Kind;
  const ThreadCount threads(request.execution.threads);
  const at::NoGradGuard no_gradients;
  const AdapterChoice none{.automatic = false, .files = {}};
  const auto base = models.base(request.model_folder);
  const int layers = base->info().layers;
  const AppliedModel applied =
      models.apply(request.model_folder, base, none, parse_schedule({}, layers), placement);
  const auto& model = applied.model;
  std::vector<Contender> contenders;
  for (const ScheduleText& text : request.schedules)
    contenders.emplace_back(model, layer_kernels(*model, parse_schedule(text, layers).layers));
  Contender bound(model, std::vector(static_cast<std::size_t>(layers),
                                     LayerKernel{std::make_shared<const Bypass>(), {}, false}));
  std::optional<Products> products;
  if (!request.schedules_only) products.emplace(read_config(request.model_folder), placement);
  const ModelInput first = first_input(*model, request);
  for (const int batch : request.batches) check_memory(*model, placement, first, batch);

  std::int64_t done = 0;
  const auto total = static_cast<std::int64_t>(request.batches.size() *
                                               (contenders.size() + (request.schedules_only ? 0 : 3))) *
                     (std::int64_t{request.warm_ups} + request.runs);
  std::vector<ThroughputRow> rows;
  for (const int batch : request.batches) {
    const ModelInput input = placed(*model, repeated(first, batch));
    at::Tensor hidden = model->embed(input).clone();
    const std::int64_t tokens = hidden.size(1);
    if (!products) hidden.reset(); // not held while the schedules run
    const auto row = [&](Kind kind, std::string schedule, std::string paths) {
      return ThroughputRow{.kind = kind,
                           .schedule = std::move(schedule),
                           .batch = batch,
                           .tokens = tokens,
                           .paths = std::move(paths)};
    };
    std::vector<Entry> entries;
    for (Contender& contender : contenders) contender.set_input(input);
    bound.set_input(input);
    for (std::size_t i = 0; i < contenders.size(); ++i)
      entries.push_back({row(Kind::schedule, written_schedule(request.schedules[i]), contenders[i].paths()),
                         [&, i] { contenders[i].run(); },
                         {}});
    if (products) {
      entries.push_back(
          {row(Kind::untapped, written_schedule(request.schedules.front()) + ", run by the program", ""),
           [&] { contenders.front().run_untapped(stop); },
           {}});
      entries.push_back({row(Kind::without_attention, "no attention", ""), [&] { bound.run(); }, {}});
      entries.push_back(
          {row(Kind::products, "matrix products alone", ""), [&] { products->run(hidden); }, {}});
    }
    take_turns(
        entries, request, DeviceClock(placement.device),
        [&] {
          if (progress) progress(++done, total);
        },
        stop);
    for (Entry& entry : entries) rows.push_back(std::move(entry.row));
  }
  return rows;
}

} // namespace

std::vector<ThroughputRow> measure_throughput(const ThroughputRequest& request,
                                              const std::function<void(std::int64_t, std::int64_t)>& progress,
                                              const std::stop_token& stop,
                                              const std::shared_ptr<ModelStore>& models) {
  return measure_throughput_in(placement_of(request.execution), request, progress, stop, models);
}

std::vector<ThroughputRow> measure_throughput_in(
    const Placement& placement, const ThroughputRequest& request,
    const std::function<void(std::int64_t, std::int64_t)>& progress, const std::stop_token& stop,
    const std::shared_ptr<ModelStore>& models) {
  return with_remedies({.subject = "bench model",
                        .memory = "use a smaller --batch",
                        .other = "report this with the command",
                        .device = placement.device_name()},
                       [&] { return measure(placement, request, progress, stop, *models); });
}

} // namespace hydrascope
