#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/runner.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/tasks/evaluation.h"
#include "engine/training/tasks/explanation_curves.h"

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

class Maps {
public:
  Maps(int layer, bool with_attention) : layer_(layer), with_attention_(with_attention) {}

  QuantityKeys keys() const {
    QuantityKeys keys{FocusKey{layer_}, RolloutKey{}};
    if (with_attention_) keys.add(attention_key());
    return keys;
  }

  std::vector<TokenMap> of(const RunResult& run) const {
    const RolloutResult& rollout = *run.quantities.find(RolloutKey{});
    const auto of_class_token =
        rollout.weights.slice(0).first(static_cast<std::size_t>(rollout.weights.extent(2)));
    std::vector<TokenMap> maps = {
        {"focus",
         fmt::format("focus map of layer {}, logit of the true class, {}", layer_,
                     run.query ? "query: class token" : "all queries"),
         run.quantities.find(FocusKey{layer_})->contributions.values},
        {"rollout",
         fmt::format("class token's row of the rollout{}",
                     rollout.magnitudes ? "; signed kernels enter as |w| over the row sum" : ""),
         {of_class_token.begin(), of_class_token.end()}}};
    if (with_attention_)
      maps.push_back({"attention", fmt::format("class token's weights in layer {}, mean over heads", layer_),
                      mean_of_heads(run.quantities.find(attention_key())->weights)});
    return maps;
  }

private:
  AttentionRowKey attention_key() const { return {.layer = layer_, .query = 0}; }

  int layer_;
  bool with_attention_;
};

class PointingGame {
public:
  // Of the same maps each time, the focus map first.
  void add(const RunResult& run, const std::vector<TokenMap>& maps, const std::span<const PixelBox> boxes) {
    const PatchGrid grid{run.rows, run.columns, run.crop_x, run.crop_y, run.crop_width, run.crop_height};
    if (items_++ == 0)
      for (const TokenMap& map : maps) methods_.push_back({map.name, 0, map.what});
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const auto patch = maximum_patch(patches_of(run, maps[i].values));
      methods_[i].share += patch && points_into(grid, *patch, boxes) ? 1 : 0;
      empty_ += i == 0 && !patch ? 1 : 0;
    }
    centre_ += centre_points_into(grid, boxes) ? 1 : 0;
    chance_ += chance_to_point_into(grid, boxes);
  }

  std::int64_t items() const { return items_; }
  std::int64_t empty() const { return empty_; }

  PointingOutcome outcome() const {
    PointingOutcome outcome{items_, methods_, empty_};
    outcome.methods.push_back({"centre", centre_, "baseline: the middle of the crop"});
    outcome.methods.push_back({"chance", chance_, "baseline: a patch drawn at random"});
    for (auto& method : outcome.methods) method.share /= static_cast<double>(items_);
    return outcome;
  }

private:
  std::vector<PointingOutcome::Method> methods_; // hits in place of shares
  std::int64_t items_ = 0, empty_ = 0;
  double centre_ = 0, chance_ = 0;
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

EvaluateOutcome evaluate_maps(Evaluation& evaluation) {
  const EvaluateRequest& asked = evaluation.request();
  const std::vector<LabelledImage> pictures = labelled_pictures(evaluation);
  const bool with_boxes = !asked.boxes.empty();
  const auto boxes = with_boxes ? boxes_of(evaluation, pictures) : std::vector<std::vector<PixelBox>>();
  const PreparedModel& prepared = evaluation.prepared();
  const int last = prepared.model->info().layers - 1;
  const KernelSpec& kernel = prepared.schedule.layers.back();
  const bool with_attention = has_distributions(kernel_info(kernel));
  if (!with_attention)
    evaluation.note(fmt::format("attention is left out, the weights of {} in layer {} are no distributions",
                                kernel.text(), last));
  const Maps maps(last, with_attention);
  PointingGame game;
  std::optional<ExplanationCurves> curves;
  if (asked.curve_steps > 0) curves.emplace(prepared, evaluation.placement(), asked.curve_steps, asked.batch);
  Runner runner(/*cache_bytes=*/0, evaluation.models()); // no picture comes twice
  RunRequest request = request_of(asked);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const LabelledImage& picture = pictures[i];
    evaluation.progress(static_cast<std::int64_t>(i), static_cast<std::int64_t>(pictures.size()));
    std::shared_ptr<const Image> image;
    try {
      image = std::make_shared<const Image>(load_image(picture.file));
    } catch (const Error& error) {
      evaluation.note(fmt::format("skipped {}", error.what()));
      continue;
    }
    const bool points = with_boxes && !boxes[i].empty();
    request.input = ImageInput{image, picture.file.filename(), {}};
    request.target.index = static_cast<int>(picture.label);
    request.quantities = points || curves ? maps.keys() : QuantityKeys();
    const auto run = runner.run_in(evaluation.placement(), request, evaluation.stop());
    count_predictions(evaluation, *run, picture.label);
    if (points) game.add(*run, maps.of(*run), boxes[i]);
    if (curves)
      curves->add(*run, maps.of(*run), *image, asked.execution.image_size.value_or(prepared.image_size),
                  picture.label);
  }
  const auto count = static_cast<std::int64_t>(pictures.size());
  evaluation.progress(count, count);
  if (game.empty() > 0)
    evaluation.note(fmt::format("pointing: {} of {} focus maps are empty and count as misses", game.empty(),
                                game.items()));
  EvaluateOutcome outcome = evaluation.outcome();
  if (game.items() > 0) outcome.pointing = game.outcome();
  if (curves && curves->items() > 0) outcome.curves = curves->outcome();
  return outcome;
}

} // namespace hydrascope::training
