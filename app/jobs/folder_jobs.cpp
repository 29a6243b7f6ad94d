#include "app/jobs/folder_jobs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "app/jobs/requests.h"
#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

namespace {

// Publishes `measure(runner, picture)` for each picture of the folder. `wake` is called a few times a second
// at most, because each call sorts the results again.
template <typename Result, typename Measure>
void for_each_picture(BackgroundJob<Result>& job, const PictureFolder& folder,
                      const std::shared_ptr<ModelStore>& models, const std::function<void()>& wake,
                      const std::stop_token& stop, const Measure& measure) {
  Runner runner(0, models); // no cache: each picture is run once
  std::chrono::steady_clock::time_point woken;
  for (const FolderPicture& picture : folder.pictures) {
    job.wait_while_paused(stop);
    if (stop.stop_requested()) return;
    job.publish(measure(runner, picture));
    const auto now = std::chrono::steady_clock::now();
    if (now - woken < std::chrono::milliseconds(300)) continue;
    woken = now;
    if (wake) wake();
  }
}

ImageInput load_input(const FolderPicture& picture) {
  return {std::make_shared<const Image>(load_image(picture.file)), picture.file.filename().string(),
          picture.file};
}

// What the predictions depend on, beside the pictures.
std::string check_key(const Document& document) {
  return setup_key(document.scene_of(InputKind::image), Side::a) + "\n" + execution_key(document.execution);
}

// Without the adapters.
std::string kernels_key(const Document& document) {
  Scene scene = document.scene_of(InputKind::image);
  scene.adapters = {};
  return setup_key(scene, Side::a) + "\n" + execution_key(document.execution);
}

std::size_t pictures_with(PictureCheck::Verdict verdict, const PictureChecks& checks) {
  return static_cast<std::size_t>(std::ranges::count_if(
      checks.found, [verdict](const auto& each) { return each.second.verdict == verdict; }));
}

bool needs_check(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  return document.wrong_first && document.folder && document.folder->labelled && scene.model != nullptr;
}

PictureCheck check_of(const RunResult& run, const std::string& label) {
  using Verdict = PictureCheck::Verdict;
  PictureCheck check;
  if (run.predictions.empty() || predicts_number(run.model)) return check;
  check.predicted = run.predictions.front().label;
  check.probability = run.predictions.front().probability;
  const auto right = is_right(run, label);
  check.verdict = !right ? Verdict::unknown : (*right ? Verdict::right : Verdict::wrong);
  return check;
}

// An unreadable file gets an empty check, so that the others are still checked.
PictureCheck check_picture(Runner& runner, RunRequest& request, const FolderPicture& picture,
                           const std::stop_token& stop) {
  try {
    request.input = load_input(picture);
  } catch (const Error&) {
    return {};
  }
  return check_of(*runner.run(request, stop), picture.label);
}

// The two runs of one picture.
struct FolderRuns {
  RunRequest own, softmax;
  bool same = false; // A's schedule is softmax itself
};

PictureMeasures measure_picture(Runner& runner, FolderRuns& runs, const FolderPicture& picture,
                                const std::stop_token& stop) {
  PictureMeasures measures;
  try {
    runs.own.input = runs.softmax.input = load_input(picture);
    const auto run = runner.run(runs.own, stop);
    measures = measures_of(*run, runs.same ? *run : *runner.run(runs.softmax, stop));
  } catch (const BrokenDevice&) { // no other picture would be run
    throw;
  } catch (const Error& error) { // the others are still measured
    measures.problem = error.what();
  }
  measures.picture = picture;
  return measures;
}

} // namespace

void FolderCheck::start(Editor& editor, std::uint64_t edition) {
  const Document& document = editor.document();
  PictureChecks& checks = editor.checks;
  const bool same = checks.folder == document.folder && checks.kernels == kernels_key(document);
  const bool renews = same && checks.total > 0 && checks.found.size() == checks.total;
  if (!renews) checks = {};
  checks.setup = check_key(document);
  checks.kernels = kernels_key(document);
  checks.edition = edition;
  checks.folder = document.folder;
  checks.newer.clear();
  checks.total = document.folder->pictures.size();
  checks.running = true;
  checks.renews = renews;
  checks.failed = false;
  began_ = std::chrono::steady_clock::now();
  jobs_.start(
      [folder = document.folder, request = folder_request(document), models = models_, wake = wake_](
          BackgroundJob<CheckedPicture>& job, const std::stop_token& stop) mutable {
        for_each_picture(job, *folder, models, wake, stop, [&](Runner& runner, const FolderPicture& picture) {
          return CheckedPicture{picture.file, check_picture(runner, request, picture, stop)};
        });
      },
      wake_);
}

bool FolderCheck::update(Editor& editor, bool interactive_run, const std::filesystem::path& live,
                         std::uint64_t edition) {
  const Document& document = editor.document();
  PictureChecks& checks = editor.checks;
  BackgroundJob<CheckedPicture>* const job = jobs_.job();
  if (!needs_check(document)) {
    const bool ran = job != nullptr && checks.running;
    jobs_.retire();
    checks.running = checks.failed = false; // another try when it is switched on again
    return ran;
  }
  const AdapterChoice& adapters = document.scene_of(InputKind::image).adapters;
  if (live.empty() || adapters.automatic || std::ranges::count(adapters.files, live) == 0) edition = 0;
  const bool unfinished =
      job == nullptr && !checks.failed && (checks.renews || checks.found.size() < checks.total);
  const bool outdated = job == nullptr && checks.edition != edition; // also where the last pass has failed
  // The training gets as much time as the pass took, unless it is paused.
  const auto next = editor.training.paused ? ended_ : ended_ + (ended_ - began_);
  const std::chrono::duration<double> wait = next - std::chrono::steady_clock::now();
  if (checks.setup != check_key(document) || checks.folder != document.folder || unfinished ||
      (outdated && wait.count() <= 0)) {
    start(editor, edition);
    return true;
  }
  if (outdated) editor.draw_at(editor.clock() + wait.count());
  if (job == nullptr) return false;
  job->pause(interactive_run);
  const auto [found, done, problem] = job->take();
  if (found.empty() && !done) return false;
  for (const auto& [file, check] : found) (checks.renews ? checks.newer : checks.found)[file] = check;
  if (!problem.empty()) editor.say(Severity::error, problem);
  const bool first = !checks.renews;
  if (done) {
    checks.running = false;
    checks.failed = !problem.empty();
    checks.renews = checks.renews && checks.failed; // `found` is still of earlier weights
    ended_ = std::chrono::steady_clock::now();
    jobs_.finish();
    if (!first && checks.newer.size() == checks.total) checks.found = std::move(checks.newer);
    checks.newer.clear();
  }
  checks.wrong = pictures_with(PictureCheck::Verdict::wrong, checks);
  checks.right = pictures_with(PictureCheck::Verdict::right, checks);
  if (done && first && problem.empty() && checks.right + checks.wrong == 0)
    editor.say(Severity::note, "wrong first: no sub-folder is named like a class of the model");
  return true;
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
        for_each_picture(job, *folder, models, wake, stop, [&](Runner& runner, const FolderPicture& picture) {
          return measure_picture(runner, runs, picture, stop);
        });
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
  auto [found, done, problem] = job->take();
  FolderMeasures& measures = editor.folder;
  for (PictureMeasures& each : found) measures.pictures.push_back(std::move(each));
  if (!found.empty()) ++measures.edition;
  if (!problem.empty()) editor.say(Severity::error, problem);
  if (done) {
    measures.running = false;
    jobs_.finish();
  }
  return done || !found.empty();
}

std::string folder_measure_key(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  std::string key =
      document.folder ? fmt::format("{} {}", document.folder->path.string(), document.folder->pictures.size())
                      : std::string();
  key += fmt::format("\n{}\n{}", setup_key(scene, Side::a), execution_key(document.execution));
  for (const HeadIndex& muted : scene.muted_heads)
    key += fmt::format("\nmute {}:{}", muted.layer, muted.head);
  return key;
}

} // namespace hydrascope::app
