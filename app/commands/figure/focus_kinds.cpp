// Maps over the input: focus, layers, compare, attention, rollout, sheet (focus maps of many pictures); and
// predictions.
#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/many_inputs.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/views/focus_view.h"
#include "app/views/table_views.h"
#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"

namespace hydrascope::app {
namespace {

FocusOptions focus_options(const FigureOptions& options) {
  return {.normalise = parse_normalisation(options.normalise),
          .with_sign = options.with_sign,
          .look = map_look(options),
          .photograph = true};
}

// Runs of one input, each with another kernel in one layer.
struct KernelRuns {
  std::vector<std::shared_ptr<const RunResult>> runs;
  std::vector<FocusItem> items;
  bool one_target = true; // whether all maps explain the same target (by default the predicted class)
};

KernelRuns runs_by_kernel(FigureTask& task, RunRequest request, int layer,
                          const std::vector<KernelSpec>& kernels) {
  KernelRuns all;
  request.quantities = {FocusKey{layer}};
  const int layers = read_model_info(request.model_folder).layers;
  Schedule schedule = resolved(request.schedule, layers);
  for (const auto& kernel : kernels) {
    schedule.layers.at(static_cast<std::size_t>(layer)) = kernel;
    request.schedule = schedule;
    all.runs.push_back(task.runner.run(request));
    all.items.push_back({all.runs.back().get(), layer, kernel.label()});
  }
  all.one_target =
      std::ranges::all_of(all.runs, [&](const auto& run) { return run->target == all.runs.front()->target; });
  return all;
}

std::string prediction_text(const RunResult& run) {
  if (run.predictions.empty()) return "";
  const Prediction& first = run.predictions.front();
  return fmt::format("{} {}", prediction_name(run, first), prediction_value(run, first));
}

// A subtitle's end: the query, where one was asked for.
std::string asked_query(const RunRequest& request, const RunResult& run) {
  return request.default_query ? "" : "; " + query_text(run, run.query);
}

// The same for the kernels of one layer: those of the others, where not all are softmax.
std::string other_layers(const RunResult& run, int layer) {
  Schedule others = run.schedule;
  others.layers.erase(others.layers.begin() + layer);
  return others.all_exact_softmax() ? "" : "; in the other layers " + others.summary();
}

} // namespace

Figure draw_focus(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const ImageInput* const image = picture_of(run.request);
  FocusOptions view = focus_options(options);
  if (options.kernels.empty()) {
    const std::vector<int> layers = layers_of(options, run.layers);
    for (const int layer : layers) run.request.quantities.add(FocusKey{layer});
    view.photograph = options.layer != "all";
    const auto result = task.runner.run(run.request);
    return finished(task, focus_figure(*result, image, layers, view), run.request, *result);
  }
  const int layer = one_layer(options, run.layers);
  KernelRuns all = runs_by_kernel(task, run.request, layer, parse_kernel_list(options.kernels));
  for (FocusItem& item : all.items) {
    if (!all.one_target) item.title += "\n" + item.run->target;
  }
  Figure figure = focus_figure(all.items, image, view);
  // Each panel's title is its kernel; the subtitle of the first run would be wrong for the others.
  if (all.items.size() > 1) {
    const RunResult& first = *all.runs.front();
    figure.subtitle =
        fmt::format("Focus map: each token's contribution to {}; kernels compared in layer {}{}{}",
                    all.one_target ? "the target (" + first.target + ")" : "the target named above it", layer,
                    other_layers(first, layer), asked_query(run.request, first));
  }
  return finished(task, std::move(figure), run.request, *all.runs.front());
}

Figure draw_focus_rows(FigureTask& task) {
  FigureOptions options = task.options;
  Figure figure;
  const FocusOptions view = focus_options(options);
  RunRequest request;
  std::shared_ptr<const RunResult> first;
  std::vector<std::filesystem::path> files;
  int layer = 0;
  for (const FolderPicture& picture : pictures_of(options.images)) {
    request = request_of(options, read_image(picture.file));
    const int layers = read_model_info(request.model_folder).layers;
    layer = one_layer(options, layers);
    const std::vector<KernelSpec> kernels =
        kernels_or_own(options, {.request = request, .layers = layers, .heads = 0}, layer);
    KernelRuns all = runs_by_kernel(task, request, layer, kernels);
    for (FocusItem& item : all.items) item.title += "\n" + prediction_text(*item.run);
    Figure row = focus_figure(all.items, picture_of(request), view);
    figure.columns = static_cast<int>(row.panels.size());
    std::ranges::move(row.panels, std::back_inserter(figure.panels));
    if (!first) first = all.runs.front();
    files.push_back(picture.file);
  }
  figure.title = fmt::format("{} · layer {} · focus maps by kernel", first->model.name, layer);
  figure.subtitle = "Each token's contribution to the predicted class, which stands above its map";
  if (!options.target.empty()) figure.subtitle = "Each token's contribution to " + first->target;
  figure.subtitle += other_layers(*first, layer) + asked_query(request, *first);
  figure = finished(task, std::move(figure), request, *first);
  figure.provenance = with_files(figure.provenance, files);
  return figure;
}

Figure draw_layers(FigureTask& task) {
  RunTask run = run_task(task);
  std::vector<int> layers =
      task.options.layer.empty() ? std::vector<int>() : layers_of(task.options, run.layers);
  for (int layer = 0; task.options.layer.empty() && layer < run.layers; ++layer) layers.push_back(layer);
  for (const int layer : layers) run.request.quantities.add(FocusKey{layer});
  FocusOptions view = focus_options(task.options);
  view.photograph = false;
  const auto result = task.runner.run(run.request);
  return finished(task, focus_figure(*result, picture_of(run.request), layers, view), run.request, *result);
}

Figure draw_compare(FigureTask& task) {
  const FigureOptions& options = task.options;
  RunTask run = run_task(task);
  const int layer = one_layer(options, run.layers);
  RunRequest other = run.request;
  other.schedule = ScheduleText{.kernel = options.against};
  if (resolved(run.request.schedule, run.layers) == resolved(other.schedule, run.layers))
    throw UsageError(
        "figure compare", "both sides run " + options.against + " in every layer",
        "give one side's kernels with --kernel, --replace or --layers, the other's with --against");
  run.request.quantities = other.quantities = {FocusKey{layer}};
  const auto a = task.runner.run(run.request), b = task.runner.run(other);
  const auto title = [](Side side, const RunResult& result) {
    const std::string prediction = prediction_text(result);
    return fmt::format("{}\n{}{}{}", side_name(side), result.schedule.summary(),
                       prediction.empty() ? "" : "\n", prediction);
  };
  const std::vector<FocusItem> items = {{a.get(), layer, title(Side::a, *a)},
                                        {b.get(), layer, title(Side::b, *b)},
                                        {a.get(), layer, side_name(Shown::difference), b.get()}};
  Figure figure = focus_figure(items, picture_of(run.request), focus_options(options));
  figure.subtitle =
      fmt::format("Focus map: each token's contribution to {}",
                  a->target == b->target ? "the target (" + a->target + ")"
                                         : "its side's target: A " + a->target + ", B " + b->target) +
      asked_query(run.request, *a);
  return finished(task, std::move(figure), run.request, *a);
}

namespace {

// Of a run without gradients; nullopt: all.
std::optional<std::int64_t> query_of(const RunRequest& request, const RunResult& run) {
  return run.model.causal ? run.query : request.query;
}

Figure map_figure(const FigureOptions& options, const RunRequest& request, const RunResult& run, MapKind kind,
                  TokenMap map, std::string title, std::optional<int> layer) {
  Figure figure;
  const ImageInput* const image = picture_of(request);
  const std::optional<std::int64_t> query = query_of(request, run);
  figure.title = map_title(run, image, layer);
  figure.subtitle = map_subtitle(run, kind, query);
  if (image != nullptr) figure.panels.emplace_back(photograph_panel(run, *image));
  figure.panels.push_back(map_panel(run, query, image, std::move(map), std::move(title), map_look(options)));
  figure.columns = image == nullptr ? 1 : 0;
  return figure;
}

std::string with_flags(const std::string& title, const std::string& flags) {
  return flags.empty() ? title : title + "\n" + flags;
}

} // namespace

Figure draw_attention(FigureTask& task) {
  RunTask run = run_task(task);
  const int layer = one_layer(task.options, run.layers);
  if (run.request.default_query && !run.causal) {
    run.request.default_query = false;
    run.request.query = 0;
  }
  const AttentionRowKey key{
      .layer = layer, .query = run.request.default_query ? std::optional(last_token) : run.request.query};
  run.request.quantities = {key};
  const auto result = task.runner.run(run.request);
  const AttentionRowResult& row = *result->quantities.find(key);
  const KernelSpec& kernel = result->layers.at(static_cast<std::size_t>(layer)).kernel;
  const HeadChoice head = one_head(task.options);
  Figure figure = map_figure(
      task.options, run.request, *result, MapKind::attention, attention_map(*result, row, head, {}),
      with_flags(kernel.text() + " · " + head.text(), attention_flags(row, kernel)), layer);
  return finished(task, std::move(figure), run.request, *result);
}

Figure draw_rollout(FigureTask& task) {
  RunTask run = run_task(task);
  const HeadChoice head = one_head(task.options);
  if (run.request.default_query && !run.causal) {
    run.request.default_query = false;
    run.request.query = 0;
  }
  const double discard = task.options.discard;
  const RolloutKey key = rollout_key(head, discard);
  run.request.quantities = {key};
  const auto result = task.runner.run(run.request);
  const RolloutResult& rollout = *result->quantities.find(key);
  require_heads_anywhere(head, std::ranges::max(rollout.kernel_heads));
  std::string title = "rollout · " + head.text();
  if (discard > 0) title += ", " + discard_text(discard);
  Figure figure = map_figure(task.options, run.request, *result, MapKind::rollout,
                             rollout_map(*result, rollout, query_of(run.request, *result), {}),
                             with_flags(title, rollout_flags(rollout)), std::nullopt);
  return finished(task, std::move(figure), run.request, *result);
}

Figure draw_predictions(FigureTask& task) {
  const RunTask run = run_task(task);
  const auto result = task.runner.run(run.request);
  const std::vector<const RunResult*> runs = {result.get()};
  Figure figure = predictions_figure(runs);
  figure.title = map_title(*result, picture_of(run.request), std::nullopt) +
                 (run.causal ? " · next tokens" : " · predictions");
  return finished(task, std::move(figure), run.request, *result);
}

namespace {

using Verdict = PictureCheck::Verdict;

Verdict verdict_of(const RunResult& run, const std::string& label) {
  if (label.empty()) return Verdict::unknown;
  if (const auto right = is_right(run, label)) return *right ? Verdict::right : Verdict::wrong;
  return Verdict::unknown;
}

// Whether --only lets the picture through.
bool is_shown(Verdict verdict, const std::string& only) {
  return only.empty() || verdict == (only == "right" ? Verdict::right : Verdict::wrong);
}

OverlayPanel sheet_panel(const RunResult& run, const ImageInput& image, int layer, Verdict verdict,
                         const std::string& label, const FocusOptions& view) {
  const FocusItem item{&run, layer, image.name};
  Figure one = focus_figure(std::span(&item, 1), &image, view);
  auto panel = std::get<OverlayPanel>(std::move(one.panels.back()));
  if (!run.predictions.empty()) {
    const Prediction& best = run.predictions.front();
    panel.title = best.label + "\n" +
                  (predicts_number(run.model) ? prediction_value(run, best)
                                              : fmt::format("{:.0f} %", 100 * best.probability));
  }
  if (verdict == Verdict::right) panel.title += ", right";
  if (verdict == Verdict::wrong) panel.title += ", wrong: " + label;
  if (verdict == Verdict::right) panel.frame = category::green; // the title says so, too
  if (verdict == Verdict::wrong) panel.frame = category::vermilion;
  panel.note.clear();
  return panel;
}

} // namespace

Figure draw_sheet(FigureTask& task) {
  const FigureOptions& options = task.options;
  std::vector<std::string> arguments = options.images;
  arguments.insert(arguments.end(), options.data.data.begin(), options.data.data.end());
  if (arguments.empty())
    throw UsageError("figure sheet", "there are no pictures", "name a folder with --images");
  FocusOptions view = focus_options(options);
  view.photograph = false;
  const std::vector<FolderPicture> pictures = pictures_of(arguments);
  Figure figure;
  std::shared_ptr<const RunResult> last;
  RunRequest request;
  std::vector<std::filesystem::path> files;
  int right = 0, wrong = 0, layer = 0;
  std::exception_ptr failure; // of the first picture that could be read, but not run
  ProgressBar bar("figure sheet");
  for (std::size_t index = 0; index < pictures.size(); ++index) {
    bar.show(static_cast<std::int64_t>(index), static_cast<std::int64_t>(pictures.size()));
    if (options.data.limit > 0 && std::ssize(files) == options.data.limit) break;
    const FolderPicture& picture = pictures[index];
    ImageInput image;
    try {
      image = read_image(picture.file);
      request = request_of(options, image);
      layer = one_layer(options, read_model_info(request.model_folder).layers);
      request.quantities = {FocusKey{layer}};
      last = task.runner.run(request);
    } catch (const BrokenDevice&) { // no other picture would be run
      throw;
    } catch (const Error& error) { // the sheet continues without a picture that is broken or cannot be run
      if (!failure && image.image) failure = std::current_exception();
      const std::string name = picture.file.string(), reason = error.what();
      task.notes.push_back(reason.starts_with(name) ? fmt::format("skipped {}", reason)
                                                    : fmt::format("skipped {}: {}", name, reason));
      continue;
    }
    const Verdict verdict = verdict_of(*last, picture.label);
    if (!is_shown(verdict, options.only)) continue;
    right += verdict == Verdict::right ? 1 : 0;
    wrong += verdict == Verdict::wrong ? 1 : 0;
    figure.panels.emplace_back(sheet_panel(*last, image, layer, verdict, picture.label, view));
    files.push_back(picture.file);
  }
  if (!last && failure) std::rethrow_exception(failure); // it is about the model or the options
  if (files.empty()) return {};
  figure.columns =
      options.columns > 0 ? options.columns : static_cast<int>(std::min<std::size_t>(6, files.size()));
  figure.title =
      fmt::format("{} · layer {} · focus maps of {} pictures", last->model.name, layer, files.size());
  figure.subtitle = last->schedule.summary();
  if (right + wrong > 0) figure.subtitle += fmt::format("; {} right, {} wrong", right, wrong);
  figure = finished(task, std::move(figure), request, *last);
  figure.provenance = with_files(figure.provenance, files);
  return figure;
}

} // namespace hydrascope::app
