// Explicit weights and the vectors they are computed from: weights, tokens, vectors, monotonicity.
#include <algorithm>

#include <fmt/format.h>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/views/focus_view.h"
#include "app/views/scatter_view.h"
#include "app/views/vectors_view.h"
#include "engine/base/error.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {
namespace {

// softmax and the layer's own kernel; for text also hedgehog, whose trained maps are bundled, and elu.
std::vector<KernelSpec> default_kernels(const FigureOptions& options, const RunTask& run, int layer) {
  if (!options.kernels.empty()) return parse_kernel_list(options.kernels);
  std::vector<KernelSpec> kernels{KernelSpec{"softmax", {}}};
  if (picture_of(run.request) == nullptr) {
    kernels.push_back({"hedgehog", {}});
    kernels.push_back({"elu", {}});
  }
  for (const KernelSpec& own : kernels_or_own(options, run, layer))
    if (std::ranges::find(kernels, own) == kernels.end()) kernels.push_back(own);
  return kernels;
}

// One key for each kernel, all on the same q and k.
void add_weights(QuantityKeys& keys, WeightsKey key, const std::vector<KernelSpec>& kernels) {
  for (const KernelSpec& kernel : kernels) {
    key.kernel = kernel;
    keys.add(key);
  }
}

// The token whose weights are shown, by default the one that the prediction is read from: the class token, a
// decoder's last token.
std::int64_t query_token(const RunTask& run) {
  const RunRequest& request = run.request;
  if (request.default_query) return run.causal ? last_token : 0;
  if (!request.query)
    throw UsageError("--query", "this figure is of one token and not of all", "give its number");
  return *request.query;
}

// Gives all panels one colour scale.
void share_counts(Figure& figure) {
  double high = 0;
  for (FigurePanel& panel : figure.panels) high = std::max(high, std::get<HeatMapPanel>(panel).scale.high);
  for (FigurePanel& panel : figure.panels) {
    Scale& scale = std::get<HeatMapPanel>(panel).scale;
    scale.high = high;
    scale.shared = true;
  }
}

int head_number(const FigureOptions& options) {
  const HeadChoice head =
      options.head.empty() ? HeadChoice{.head = 0, .fusion = HeadFusion::mean} : parse_head(options.head);
  if (!head.head) throw UsageError("--head", "this figure shows one head", "give its number");
  return *head.head;
}

// Of the kernel that has the most.
int most_heads(const RunResult& run) {
  std::int64_t most = 0;
  for (const auto& entry : run.quantities.all<WeightsKey>())
    most = std::max(most, entry.result->weights.extent(0));
  return static_cast<int>(most);
}

} // namespace

Figure draw_weights(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const std::vector<int> layers = layers_of(options, run.layers);
  std::vector<HeadChoice> heads = heads_of(options, run.heads);
  for (const int layer : layers) {
    WeightsKey key{
        .layer = layer, .teacher_forced = options.teacher_forced, .value_weighted = options.value_weighted};
    if (run.request.query) key.rows = {*run.request.query};
    add_weights(run.request.quantities, key, default_kernels(options, run, layer));
  }
  WeightsOptions view;
  view.head = heads.front();
  view.shared_scale = !options.own_scale;
  view.logarithmic = options.logarithmic;
  view.value_weighted = options.value_weighted;
  const auto result = task.runner.run(run.request);
  const int most = most_heads(*result);
  if (options.head == "all") // the model's, of which the kernels may have fewer
    std::erase_if(heads, [&](const HeadChoice& head) { return shown_heads(head, most).empty(); });
  for (const HeadChoice& head : heads) require_heads_anywhere(head, most);
  Figure figure = layers.size() > 1 || heads.size() > 1 ? weights_grid_figure(*result, layers, heads, view)
                                                        : weights_figure(*result, layers.front(), view);
  return finished(task, std::move(figure), run.request, *result);
}

Figure draw_tokens(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const int layer = one_layer(options, run.layers);
  const std::int64_t asked = query_token(run);
  add_weights(run.request.quantities,
              {.layer = layer, .rows = {asked}, .teacher_forced = options.teacher_forced},
              default_kernels(options, run, layer));
  const auto result = task.runner.run(run.request);
  const std::int64_t query = token_index(asked, std::ssize(result->tokens));
  const HeadChoice head = one_head(options);
  require_heads_anywhere(head, most_heads(*result));
  const ImageInput* const image = picture_of(run.request);
  Figure figure;
  figure.title = fmt::format("{} · {}", map_title(*result, image, layer), head.text());
  figure.subtitle = fmt::format("What one token looks at; {}; {}", query_text(*result, query),
                                options.teacher_forced ? "teacher-forced" : run_text(*result));
  if (image != nullptr) figure.panels.emplace_back(photograph_panel(*result, *image));
  for (const auto& entry : result->quantities.all<WeightsKey>()) {
    const WeightsResult& weights = *entry.result;
    if (shown_heads(head, static_cast<int>(weights.weights.extent(0))).empty()) {
      figure.subtitle += fmt::format("; {} has no {}", weights.kernel.label(), head.text());
      continue;
    }
    AttentionRowResult row;
    row.key = {.layer = layer, .query = query};
    row.derived_signed = weights.derived_signed;
    row.weights.shape = {weights.weights.extent(0), weights.weights.extent(2)}; // (h,1,N) → (h,N)
    row.weights.values = weights.weights.values;
    const std::string flags = attention_flags(row, weights.kernel);
    std::string title = weights.kernel.label() + (weights.untrained ? ", untrained" : "");
    if (!flags.empty()) title += "\n" + flags;
    figure.panels.push_back(
        map_panel(*result, query, image, attention_map(*result, row, head, {}), title, map_look(options)));
  }
  figure.columns = image == nullptr ? 1 : figure.panels.size() > 5 ? 4 : 0;
  return finished(task, std::move(figure), run.request, *result);
}

Figure draw_vectors(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const int layer = one_layer(options, run.layers);
  const std::vector<KernelSpec> kernels = kernels_or_own(options, run, layer);
  if (kernels.size() > 1) throw UsageError("--kernels", "this figure is of one kernel", "name one");
  const VectorsKey asked{.layer = layer,
                         .kernel = kernels.front(),
                         .head = head_number(options),
                         .query = query_token(run),
                         .teacher_forced = options.teacher_forced};
  run.request.quantities = {asked};
  const auto result = task.runner.run(run.request);
  const VectorsResult& vectors = *result->quantities.find(asked);
  const auto tokens = static_cast<int>(vectors.k.extent(1));
  const std::int64_t key =
      options.key.empty() ? vectors.query : number_below(options.key, "--key", tokens, "token");
  return finished(task, vectors_figure(*result, vectors, vectors_view(*result, vectors, key), key),
                  run.request, *result);
}

Figure draw_monotonicity(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const int layer = one_layer(options, run.layers), head = head_number(options);
  const std::vector<KernelSpec> kernels = default_kernels(options, run, layer);
  add_weights(run.request.quantities, {.layer = layer, .teacher_forced = options.teacher_forced}, kernels);
  for (const KernelSpec& kernel : kernels)
    run.request.quantities.add(
        VectorsKey{.layer = layer, .kernel = kernel, .head = head, .teacher_forced = options.teacher_forced});
  const auto result = task.runner.run(run.request);
  Figure figure;
  std::string subtitle;
  const auto vectors = result->quantities.all<VectorsKey>();
  for (std::size_t index = 0; const auto& entry : result->quantities.all<WeightsKey>()) {
    const WeightsResult& weights = *entry.result;
    const ScatterView view =
        scatter_view(*result, weights, *vectors.at(index++).result, head, options.logarithmic);
    Figure one = scatter_figure(*result, weights, view, head);
    auto& panel = std::get<HeatMapPanel>(one.panels.front());
    panel.title = fmt::format("{}\nρ {:.3f}{}", weights.kernel.label(), view.correlation,
                              weights.untrained ? ", untrained" : "");
    if (subtitle.empty()) subtitle = one.subtitle;
    figure.panels.push_back(std::move(one.panels.front()));
  }
  figure.title =
      fmt::format("{} · layer {}, head {} · weights against q·k/√d", result->model.name, layer, head);
  figure.subtitle = subtitle + "; ρ: Spearman's within rows, mean over them";
  figure.columns = figure.panels.size() > 4 ? 3 : 0;
  share_counts(figure);
  return finished(task, std::move(figure), run.request, *result);
}

} // namespace hydrascope::app
