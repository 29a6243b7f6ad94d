#include "app/state/folder_check.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "app/state/requests.h"
#include "engine/plain/error.h"
#include "engine/runtime/runner.h"

namespace hydrascope::app {

namespace {

// What the predictions depend on.
std::string setup_of(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  std::string setup = document.folder->path.string() + "\n" + scene.model_folder.string();
  setup += scene.adapters.automatic ? "\nautomatic" : "\nexplicit";
  for (const auto& file : scene.adapters.files) setup += "\n" + file.string();
  for (const KernelSpec& kernel : scene.schedules[0].layers) setup += "\n" + kernel.text();
  return setup;
}

bool is_wanted(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  return document.wrong_first && document.folder && document.folder->labelled && scene.model != nullptr;
}

struct Found {
  std::filesystem::path file;
  PictureCheck check;
};

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

} // namespace

class FolderCheck::Job {
public:
  Job(const Document& document, std::function<void()> wake)
      : wake_(std::move(wake)), folder_(document.folder), request_(request_of(document)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  void pause(bool paused) {
    {
      const std::scoped_lock lock(mutex_);
      paused_ = paused;
    }
    changed_.notify_all();
  }
  std::vector<Found> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(found_, {});
  }
  std::string take_problem() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(problem_, {});
  }
  bool done() const { return done_; }
  void stop() { thread_.request_stop(); }

private:
  static RunRequest request_of(const Document& document) {
    const Scene& scene = document.scene_of(InputKind::image);
    RunRequest request;
    request.model_folder = scene.model_folder;
    request.adapters = scene.adapters;
    request.schedule = schedule_text(scene.schedules[0]);
    request.execution = document.execution;
    return request;
  }

  void run(const std::stop_token& stop) {
    try {
      look_at_all(stop);
    } catch (const Cancelled&) { // NOLINT(bugprone-empty-catch): the document wants something else
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      problem_ = error.what();
    }
    done_ = true;
    if (wake_) wake_();
  }

  void look_at_all(const std::stop_token& stop) {
    // Nothing is shown twice, so hidden states are not worth keeping.
    Runner runner(0);
    for (const FolderPicture& picture : folder_->pictures) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [this] { return !paused_; });
      }
      if (stop.stop_requested()) return;
      if (auto found = check(runner, picture, stop)) publish(std::move(*found));
    }
  }

  // Nothing for a file that is no picture after all: the others are still worth a look.
  std::optional<Found> check(Runner& runner, const FolderPicture& picture, const std::stop_token& stop) {
    std::shared_ptr<const Image> image;
    try {
      image = std::make_shared<const Image>(load_image(picture.file));
    } catch (const Error&) {
      return Found{picture.file, {}};
    }
    request_.input = ImageInput{image, picture.file.filename().string(), picture.file};
    return Found{picture.file, check_of(*runner.run(request_, stop), picture.label)};
  }

  void publish(Found found) {
    {
      const std::scoped_lock lock(mutex_);
      found_.push_back(std::move(found));
    }
    // The strip is sorted anew a few times a second at most.
    const auto now = std::chrono::steady_clock::now();
    if (now - woken_ < std::chrono::milliseconds(300)) return;
    woken_ = now;
    if (wake_) wake_();
  }

  std::function<void()> wake_;
  std::shared_ptr<const PictureFolder> folder_;
  RunRequest request_; // the thread's alone
  std::chrono::steady_clock::time_point woken_;
  std::atomic<bool> done_ = false;
  std::mutex mutex_; // of what follows
  std::condition_variable_any changed_;
  bool paused_ = false;
  std::vector<Found> found_;
  std::string problem_;
  std::jthread thread_; // last: joined before what it uses goes
};

FolderCheck::FolderCheck(std::function<void()> wake) : wake_(std::move(wake)) {}
FolderCheck::~FolderCheck() = default;

void FolderCheck::retire() {
  if (!job_) return;
  job_->stop();
  retired_.push_back(std::move(job_));
}

bool FolderCheck::update(Editor& editor, bool interactive_run) {
  const Document& document = editor.document();
  PictureChecks& checks = editor.checks;
  std::erase_if(retired_, [](const auto& job) { return job->done(); });
  if (!is_wanted(document)) {
    const bool ran = job_ != nullptr && checks.running;
    retire();
    checks.running = false;
    return ran;
  }
  const std::string setup = setup_of(document);
  const bool unfinished = job_ == nullptr && checks.found.size() < checks.total;
  if (checks.setup != setup || unfinished) {
    retire();
    checks = {.setup = setup, .found = {}, .total = document.folder->pictures.size(), .running = true};
    job_ = std::make_unique<Job>(document, wake_);
    return true;
  }
  if (!job_) return false;
  job_->pause(interactive_run);
  const bool done = job_->done(); // asked before the last of them is taken
  const auto found = job_->take();
  for (const auto& [file, check] : found) {
    checks.found[file] = check;
    checks.wrong += check.verdict == PictureCheck::Verdict::wrong ? 1 : 0;
    checks.right += check.verdict == PictureCheck::Verdict::right ? 1 : 0;
  }
  if (const std::string problem = job_->take_problem(); !problem.empty())
    editor.say(Severity::error, problem);
  if (done) {
    checks.running = false;
    checks.total = checks.found.size();
    job_.reset();
    if (checks.right + checks.wrong == 0)
      editor.say(Severity::note, "wrong first: no sub-folder is named like a class of the model");
  }
  return done || !found.empty();
}

} // namespace hydrascope::app
