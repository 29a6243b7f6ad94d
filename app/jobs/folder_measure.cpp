#include "app/jobs/folder_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "app/jobs/requests.h"
#include "engine/base/error.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

namespace {

constexpr double probability_floor = 1e-12;

double mean_of_table(const RunResult& run, const std::string& name) {
  double sum = 0;
  int count = 0;
  if (const HeadTable* table = run.quantities.find(HeadTableKey{name})) {
    for (const float value : table->values.values) {
      if (std::isnan(value)) continue;
      sum += static_cast<double>(value);
      ++count;
    }
  }
  return count > 0 ? sum / count : PictureMeasures::undefined;
}

double class_divergence(const std::vector<Prediction>& softmax, const std::vector<Prediction>& own) {
  if (softmax.empty() || softmax.size() != own.size()) return PictureMeasures::undefined;
  std::map<int, double> probabilities;
  for (const Prediction& each : own) probabilities[each.index] = each.probability;
  double sum = 0;
  for (const Prediction& each : softmax)
    sum += each.probability * (std::log(std::max(each.probability, probability_floor)) -
                               std::log(std::max(probabilities[each.index], probability_floor)));
  return sum;
}

double number_of(const PictureMeasures& measures, FolderColumn column) {
  switch (column) {
    case FolderColumn::own_probability: return measures.own_probability;
    case FolderColumn::divergence: return measures.divergence;
    case FolderColumn::entropy: return measures.entropy;
    case FolderColumn::kl: return measures.kl;
    default: return PictureMeasures::undefined;
  }
}

std::string text_of(const PictureMeasures& measures, FolderColumn column) {
  if (column == FolderColumn::own_class) return measures.own_class;
  if (column == FolderColumn::softmax_class) return measures.softmax_class;
  return measures.picture.label + "/" + measures.picture.file.filename().string();
}

// The two runs of one picture.
struct FolderRuns {
  RunRequest own, softmax;
  bool same = false; // A's schedule is softmax itself
};

PictureMeasures look_at(Runner& runner, FolderRuns& runs, const FolderPicture& picture,
                        const std::stop_token& stop) {
  PictureMeasures measures;
  try {
    const auto image = std::make_shared<const Image>(load_image(picture.file));
    runs.own.input = runs.softmax.input = ImageInput{image, picture.file.filename().string(), picture.file};
    const auto run = runner.run(runs.own, stop);
    measures = measures_of(*run, runs.same ? *run : *runner.run(runs.softmax, stop));
  } catch (const Error& error) { // the others are still worth a look
    measures.problem = error.what();
  }
  measures.picture = picture;
  return measures;
}

} // namespace

PictureMeasures measures_of(const RunResult& own, const RunResult& softmax) {
  PictureMeasures measures;
  if (!own.predictions.empty() && !softmax.predictions.empty()) {
    measures.own_class = own.predictions.front().label;
    measures.own_probability = own.predictions.front().probability;
    measures.softmax_class = softmax.predictions.front().label;
    measures.softmax_probability = softmax.predictions.front().probability;
  }
  measures.divergence = class_divergence(softmax.predictions, own.predictions);
  measures.entropy = mean_of_table(own, "entropy");
  measures.kl = mean_of_table(own, "kl");
  return measures;
}

void sort_measures(std::vector<PictureMeasures>& measures, FolderColumn column, bool descending) {
  const bool text = column == FolderColumn::name || column == FolderColumn::own_class ||
                    column == FolderColumn::softmax_class;
  std::ranges::stable_sort(measures, [&](const PictureMeasures& a, const PictureMeasures& b) {
    if (text)
      return descending ? text_of(b, column) < text_of(a, column) : text_of(a, column) < text_of(b, column);
    const double first = number_of(a, column), second = number_of(b, column);
    if (std::isnan(first) || std::isnan(second)) return !std::isnan(first) && std::isnan(second);
    return descending ? second < first : first < second;
  });
}

std::string folder_measure_key(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  std::string key = document.folder ? document.folder->path.string() + "\n" : "\n";
  key += setup_key(scene, Side::a);
  for (const HeadIndex& muted : scene.muted_heads)
    key += fmt::format("\nmute {}:{}", muted.layer, muted.head);
  return key;
}

void FolderMeasure::start(Editor& editor) {
  const Document& document = editor.document();
  if (!document.folder || document.scene_of(InputKind::image).model == nullptr) return;
  FolderRuns runs;
  runs.own = folder_request(document);
  runs.softmax = runs.own;
  runs.softmax.schedule = {};
  runs.own.muted_heads = document.scene_of(InputKind::image).muted_heads;
  runs.own.quantities = {HeadTableKey{"entropy"}, HeadTableKey{"kl"}};
  runs.same = document.scene_of(InputKind::image).schedules.front().all_exact_softmax() &&
              runs.own.muted_heads.empty();
  FolderMeasures& measures = editor.folder;
  measures = {.key = folder_measure_key(document),
              .pictures = {},
              .total = document.folder->pictures.size(),
              .running = true,
              .edition = measures.edition + 1};
  jobs_.start(
      [folder = document.folder, runs, models = models_, wake = wake_](BackgroundJob<PictureMeasures>& job,
                                                                       const std::stop_token& stop) mutable {
        Runner runner(0, models); // nothing is shown twice, so hidden states are not worth keeping
        std::chrono::steady_clock::time_point woken;
        for (const FolderPicture& picture : folder->pictures) {
          job.wait_while_paused(stop);
          if (stop.stop_requested()) return;
          job.publish(look_at(runner, runs, picture, stop));
          // The table is sorted anew a few times a second at most.
          const auto now = std::chrono::steady_clock::now();
          if (now - woken < std::chrono::milliseconds(300)) continue;
          woken = now;
          if (wake) wake();
        }
      },
      wake_);
}

void FolderMeasure::stop(Editor& editor) {
  jobs_.retire();
  editor.folder.running = false;
}

bool FolderMeasure::update(Editor& editor, bool interactive_run) {
  BackgroundJob<PictureMeasures>* const job = jobs_.job();
  if (job == nullptr) return false;
  job->pause(interactive_run);
  const bool done = job->done(); // asked before the last of them is taken
  std::vector<PictureMeasures> found = job->take();
  FolderMeasures& measures = editor.folder;
  for (PictureMeasures& each : found) measures.pictures.push_back(std::move(each));
  if (!found.empty()) ++measures.edition;
  if (const std::string problem = job->take_problem(); !problem.empty()) editor.say(Severity::error, problem);
  if (done) {
    measures.running = false;
    jobs_.finish();
  }
  return done || !found.empty();
}

} // namespace hydrascope::app
