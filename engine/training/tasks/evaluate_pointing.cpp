#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/runner.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/tasks/evaluation.h"

namespace hydrascope::training {
namespace {

// The boxes of each picture that show its own class; a picture may hold several objects.
std::vector<std::vector<PixelBox>> boxes_of(Evaluation& evaluation,
                                            const std::vector<LabelledImage>& pictures) {
  const std::filesystem::path& file = evaluation.request().boxes;
  const std::vector<ObjectBox> boxes = read_boxes(file);
  std::multimap<std::string, const ObjectBox*> by_name;
  for (const ObjectBox& box : boxes)
    by_name.emplace(std::filesystem::path(box.image).filename().string(), &box);
  std::vector<std::vector<PixelBox>> result;
  std::size_t without = 0;
  for (const LabelledImage& picture : pictures) {
    std::vector<PixelBox>& own = result.emplace_back();
    const auto [first, last] = by_name.equal_range(picture.file.filename().string());
    for (auto entry = first; entry != last; ++entry)
      if (names_picture(entry->second->image, picture.file) &&
          evaluation.names_class(entry->second->class_name, picture.label))
        own.push_back(entry->second->box);
    without += own.empty() ? 1 : 0;
  }
  if (without == pictures.size())
    throw Error(file.string(), "holds no box of the pictures' own classes",
                "its column image must name the pictures' files, its column class their sub-folders");
  if (without > 0)
    evaluation.note(
        fmt::format("pointing: {} of {} pictures have no box of their class", without, pictures.size()));
  return result;
}

std::span<const float> patches_of(const RunResult& run, const std::span<const float> row) {
  return row.subspan(static_cast<std::size_t>(run.prefix_tokens),
                     static_cast<std::size_t>(run.rows) * static_cast<std::size_t>(run.columns));
}

// The mean over heads of (h,N) weights.
std::vector<float> mean_of_heads(const Array& weights) {
  std::vector<float> mean(static_cast<std::size_t>(weights.extent(1)));
  for (std::int64_t head = 0; head < weights.extent(0); ++head) {
    const std::span<const float> row = weights.slice(head);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += row[i] / static_cast<float>(weights.extent(0));
  }
  return mean;
}

class PointingGame {
public:
  PointingGame(int layer, bool with_attention) : layer_(layer), with_attention_(with_attention) {}

  QuantityKeys keys() const {
    QuantityKeys keys{FocusKey{layer_}, RolloutKey{}};
    if (with_attention_) keys.add(attention_key());
    return keys;
  }

  void add(const RunResult& run, const std::span<const PixelBox> boxes) {
    const PatchGrid grid{run.rows, run.columns, run.crop_x, run.crop_y, run.crop_width, run.crop_height};
    ++items_;
    all_queries_ = !run.query;
    const RolloutResult& rolled = *run.quantities.find(RolloutKey{});
    magnitudes_ = rolled.magnitudes;
    const auto points = [&](const std::span<const float> row) {
      const auto patch = maximum_patch(patches_of(run, row));
      return patch && points_into(grid, *patch, boxes) ? 1 : 0;
    };
    const std::vector<float>& focus = run.quantities.find(FocusKey{layer_})->contributions.values;
    empty_ += maximum_patch(patches_of(run, focus)) ? 0 : 1;
    focus_ += points(focus);
    const Array& rollout = rolled.weights;
    rollout_ += points(rollout.slice(0).first(static_cast<std::size_t>(rollout.extent(2))));
    if (with_attention_) attention_ += points(mean_of_heads(run.quantities.find(attention_key())->weights));
    centre_ += centre_points_into(grid, boxes) ? 1 : 0;
    chance_ += chance_to_point_into(grid, boxes);
  }

  std::int64_t items() const { return items_; }
  std::int64_t empty() const { return empty_; }

  PointingOutcome outcome() const {
    PointingOutcome outcome;
    outcome.items = items_;
    outcome.empty_focus_maps = empty_;
    const auto add = [&](const char* name, const double hits, std::string what) {
      outcome.methods.push_back({name, hits / static_cast<double>(items_), std::move(what)});
    };
    add("focus", static_cast<double>(focus_),
        fmt::format("focus map of layer {}, logit of the true class, {}", layer_,
                    all_queries_ ? "all queries" : "query: class token"));
    add("rollout", static_cast<double>(rollout_),
        fmt::format("class token's row of the rollout{}",
                    magnitudes_ ? "; signed kernels enter as |w| over the row sum" : ""));
    if (with_attention_)
      add("attention", static_cast<double>(attention_),
          fmt::format("class token's weights in layer {}, mean over heads", layer_));
    add("centre", static_cast<double>(centre_), "baseline: the middle of the crop");
    add("chance", chance_, "baseline: a patch drawn at random");
    return outcome;
  }

private:
  AttentionRowKey attention_key() const { return {.layer = layer_, .query = 0}; }

  int layer_;
  bool with_attention_, all_queries_ = false, magnitudes_ = false;
  std::int64_t items_ = 0, empty_ = 0, focus_ = 0, rollout_ = 0, attention_ = 0, centre_ = 0;
  double chance_ = 0;
};

void count_predictions(Evaluation& evaluation, const RunResult& run, const std::int64_t target) {
  std::vector<std::int64_t> best;
  for (const Prediction& prediction : run.predictions) {
    best.push_back(prediction.index);
    if (best.size() == 5) break;
  }
  evaluation.count(target, best);
}

RunRequest request_of(const EvaluateRequest& request) {
  RunRequest run;
  run.model_folder = request.model_folder;
  run.adapters = request.adapters;
  run.schedule = request.schedule;
  run.execution = request.execution;
  run.target.kind = Target::Kind::class_index;
  return run;
}

} // namespace

EvaluateOutcome evaluate_pointing(Evaluation& evaluation) {
  const std::vector<LabelledImage> pictures = labelled_pictures(evaluation);
  const std::vector<std::vector<PixelBox>> boxes = boxes_of(evaluation, pictures);
  const PreparedModel& prepared = evaluation.prepared();
  const int last = prepared.model->info().layers - 1;
  const KernelSpec& kernel = prepared.schedule.layers.back();
  const bool with_attention = has_distributions(kernel_info(kernel));
  if (!with_attention)
    evaluation.note(
        fmt::format("pointing: attention is left out, the weights of {} in layer {} are no "
                    "distributions",
                    kernel.text(), last));
  PointingGame game(last, with_attention);
  Runner runner(/*cache_bytes=*/0, evaluation.models()); // no picture comes twice
  RunRequest request = request_of(evaluation.request());
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const LabelledImage& picture = pictures[i];
    evaluation.progress(static_cast<std::int64_t>(i), static_cast<std::int64_t>(pictures.size()));
    try {
      request.input =
          ImageInput{std::make_shared<const Image>(load_image(picture.file)), picture.file.filename(), {}};
    } catch (const Error& error) {
      evaluation.note(fmt::format("skipped {}", error.what()));
      continue;
    }
    request.target.index = static_cast<int>(picture.label);
    request.quantities = boxes[i].empty() ? QuantityKeys() : game.keys();
    const auto run = runner.run_in(evaluation.placement(), request, evaluation.stop());
    count_predictions(evaluation, *run, picture.label);
    if (!boxes[i].empty()) game.add(*run, boxes[i]);
  }
  const auto count = static_cast<std::int64_t>(pictures.size());
  evaluation.progress(count, count);
  if (game.empty() > 0)
    evaluation.note(fmt::format("pointing: {} of {} focus maps are empty and count as misses", game.empty(),
                                game.items()));
  EvaluateOutcome outcome = evaluation.outcome();
  if (game.items() > 0) outcome.pointing = game.outcome();
  return outcome;
}

} // namespace hydrascope::training
