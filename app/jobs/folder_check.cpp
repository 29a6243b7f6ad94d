#include "app/jobs/folder_check.h"

#include <chrono>
#include <utility>

#include "app/jobs/requests.h"
#include "engine/base/error.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

namespace {

// What the predictions depend on.
std::string setup_of(const Document& document) {
  return document.folder->path.string() + "\n" + setup_key(document.scene_of(InputKind::image), Side::a);
}

bool is_wanted(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  return document.wrong_first && document.folder && document.folder->labelled && scene.model != nullptr;
}

PictureCheck check_of(const RunResult& run, const std::string& label) {
  using Verdict = PictureCheck::Verdict;
  PictureCheck check;
  if (run.predictions.empty()) return check;
  check.predicted = run.predictions.front().label;
  check.probability = run.predictions.front().probability;
  const auto right = is_right(run, label);
  check.verdict = !right ? Verdict::unknown : (*right ? Verdict::right : Verdict::wrong);
  return check;
}

// Nothing for a file that is no picture after all: the others are still worth a look.
PictureCheck look_at(Runner& runner, RunRequest& request, const FolderPicture& picture,
                     const std::stop_token& stop) {
  std::shared_ptr<const Image> image;
  try {
    image = std::make_shared<const Image>(load_image(picture.file));
  } catch (const Error&) {
    return {};
  }
  request.input = ImageInput{image, picture.file.filename().string(), picture.file};
  return check_of(*runner.run(request, stop), picture.label);
}

void look_at_all(BackgroundJob<FoundCheck>& job, const PictureFolder& folder, RunRequest request,
                 const std::shared_ptr<ModelStore>& models, const std::function<void()>& wake,
                 const std::stop_token& stop) {
  // Nothing is shown twice, so hidden states are not worth keeping.
  Runner runner(0, models);
  std::chrono::steady_clock::time_point woken;
  for (const FolderPicture& picture : folder.pictures) {
    job.wait_while_paused(stop);
    if (stop.stop_requested()) return;
    job.publish({picture.file, look_at(runner, request, picture, stop)});
    // The strip is sorted anew a few times a second at most.
    const auto now = std::chrono::steady_clock::now();
    if (now - woken < std::chrono::milliseconds(300)) continue;
    woken = now;
    if (wake) wake();
  }
}

} // namespace

FolderCheck::FolderCheck(std::function<void()> wake, std::shared_ptr<ModelStore> models)
    : wake_(std::move(wake)), models_(std::move(models)) {}

bool FolderCheck::update(Editor& editor, bool interactive_run) {
  const Document& document = editor.document();
  PictureChecks& checks = editor.checks;
  if (!is_wanted(document)) {
    const bool ran = jobs_.job() != nullptr && checks.running;
    jobs_.retire();
    checks.running = false;
    return ran;
  }
  const std::string setup = setup_of(document);
  const bool unfinished = jobs_.job() == nullptr && checks.found.size() < checks.total;
  if (checks.setup != setup || unfinished) {
    checks = {.setup = setup, .found = {}, .total = document.folder->pictures.size(), .running = true};
    jobs_.start(
        [folder = document.folder, request = folder_request(document), models = models_, wake = wake_](
            BackgroundJob<FoundCheck>& job, const std::stop_token& stop) {
          look_at_all(job, *folder, request, models, wake, stop);
        },
        wake_);
    return true;
  }
  BackgroundJob<FoundCheck>* const job = jobs_.job();
  if (job == nullptr) return false;
  job->pause(interactive_run);
  const bool done = job->done();
  const auto found = job->take();
  for (const auto& [file, check] : found) {
    checks.found[file] = check;
    checks.wrong += check.verdict == PictureCheck::Verdict::wrong ? 1 : 0;
    checks.right += check.verdict == PictureCheck::Verdict::right ? 1 : 0;
  }
  if (const std::string problem = job->take_problem(); !problem.empty()) editor.say(Severity::error, problem);
  if (done) {
    checks.running = false;
    checks.total = checks.found.size();
    jobs_.finish();
    if (checks.right + checks.wrong == 0)
      editor.say(Severity::note, "wrong first: no sub-folder is named like a class of the model");
  }
  return done || !found.empty();
}

} // namespace hydrascope::app
