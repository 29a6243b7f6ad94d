#include "app/state/folder_measure.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "app/state/requests.h"
#include "engine/plain/error.h"
#include "engine/runtime/runner.h"

namespace hydrascope::app {

namespace {

constexpr double probability_floor = 1e-12;

double mean_of_table(const RunResult& run, const std::string& name) {
  double sum = 0;
  int count = 0;
  for (const HeadTable& table : run.tables) {
    if (!table.in_place || table.name != name) continue;
    for (const float value : table.values.values) {
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
  std::string key = document.folder ? document.folder->path.string() : "";
  key += "\n" + scene.model_folder.string() + (scene.adapters.automatic ? "\nautomatic" : "\nexplicit");
  for (const auto& file : scene.adapters.files) key += "\n" + file.string();
  for (const KernelSpec& kernel : scene.schedules[0].layers) key += "\n" + kernel.text();
  for (const HeadIndex& muted : scene.muted_heads)
    key += fmt::format("\nmute {}:{}", muted.layer, muted.head);
  return key;
}

struct FolderMeasure::State {
  std::shared_ptr<const PictureFolder> folder;
  RunRequest own, softmax; // the thread's alone, as the runner
  bool same = false;       // A's schedule is softmax itself

  std::atomic<bool> done = false;
  std::mutex mutex; // of what follows
  std::condition_variable_any changed;
  bool paused = false;
  std::vector<PictureMeasures> found;
  std::string problem;
  std::jthread thread; // last: joined before what it uses goes

  void run(const std::stop_token& stop);
  PictureMeasures look_at(Runner& runner, const FolderPicture& picture, const std::stop_token& stop);
};

PictureMeasures FolderMeasure::State::look_at(Runner& runner, const FolderPicture& picture,
                                              const std::stop_token& stop) {
  PictureMeasures measures;
  try {
    const auto image = std::make_shared<const Image>(load_image(picture.file));
    own.input = softmax.input = ImageInput{image, picture.file.filename().string(), picture.file};
    const auto run = runner.run(own, stop);
    measures = measures_of(*run, same ? *run : *runner.run(softmax, stop));
  } catch (const Error& error) { // the others are still worth a look
    measures.problem = error.what();
  }
  measures.picture = picture;
  return measures;
}

void FolderMeasure::State::run(const std::stop_token& stop) {
  try {
    Runner runner(0); // nothing is shown twice, so hidden states are not worth keeping
    for (const FolderPicture& picture : folder->pictures) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, stop, [this] { return !paused; });
      }
      if (stop.stop_requested()) break;
      PictureMeasures measures = look_at(runner, picture, stop);
      const std::scoped_lock lock(mutex);
      found.push_back(std::move(measures));
    }
  } catch (const Cancelled&) { // NOLINT(bugprone-empty-catch): nobody wants it any more
  } catch (const std::exception& error) {
    const std::scoped_lock lock(mutex);
    problem = error.what();
  }
  done = true;
}

FolderMeasure::FolderMeasure(const Document& document) : state_(std::make_unique<State>()) {
  const Scene& scene = document.scene_of(InputKind::image);
  State& state = *state_;
  state.folder = document.folder;
  state.own.model_folder = scene.model_folder;
  state.own.adapters = scene.adapters;
  state.own.execution = document.execution;
  state.softmax = state.own;
  state.own.schedule = schedule_text(scene.schedules[0]);
  state.own.muted_heads = scene.muted_heads;
  state.own.asks.entropy = state.own.asks.kl = true;
  state.same = state.own.schedule == ScheduleText{} && scene.muted_heads.empty();
  state.thread = std::jthread([&state](const std::stop_token& stop) { state.run(stop); });
}

FolderMeasure::~FolderMeasure() = default;

void FolderMeasure::pause(bool paused) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->paused = paused;
  }
  state_->changed.notify_all();
}

std::vector<PictureMeasures> FolderMeasure::take() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->found, {});
}

std::string FolderMeasure::take_problem() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->problem, {});
}

bool FolderMeasure::done() const { return state_->done; }
std::size_t FolderMeasure::total() const { return state_->folder->pictures.size(); }

} // namespace hydrascope::app
