#include "app/jobs/training_job.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <span>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/document/edits.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// "a lower --learning-rate" becomes "a lower learning rate".
std::string without_dashes(std::string text) {
  for (std::size_t at = 0; (at = text.find(" --", at)) != std::string::npos;) {
    text.erase(++at, 2);
    for (; at < text.size() && (std::isalpha(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-');
         ++at)
      if (text[at] == '-') text[at] = ' ';
  }
  return text;
}

TrainingOutcome train(const TrainingRequest& request, const TrainingObserver& observer,
                      const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  try {
    if (const auto* distillation = std::get_if<DistillRequest>(&request))
      return distill(*distillation, observer, stop, models);
    return finetune(std::get<FinetuneRequest>(request), observer, stop, models);
  } catch (const fs::filesystem_error& error) {
    throw Error(error.path1().string(), error.code().message(), "write the adapter into another folder");
  }
}

bool shows(const Scene& scene, const TrainingReport& report) {
  return !report.adapter.empty() && !scene.adapters.automatic &&
         std::ranges::count(scene.adapters.files, report.adapter.back()) > 0;
}

// Copies a file, by a hard link if possible: later versions replace the file but do not write into it.
void copy_file_version(const fs::path& file, const fs::path& copy) {
  create_folders(copy.parent_path());
  const fs::path beside = copy.string() + ".new";
  fs::remove(beside);
  std::error_code elsewhere; // on another disk
  fs::create_hard_link(file, beside, elsewhere);
  if (elsewhere) fs::copy_file(file, beside);
  fs::rename(beside, copy);
}

} // namespace

// Publishes the progress of the thread, collected over many steps.
class TrainingJob::Reporter {
public:
  // `live_folder`: for copies of the adapter in training.
  Reporter(Job& job, std::stop_token stop, std::function<void()> wake, double live_seconds,
           fs::path live_folder, std::vector<fs::path> adapters)
      : job_(job),
        stop_(std::move(stop)),
        wake_(std::move(wake)),
        live_seconds_(live_seconds),
        live_folder_(std::move(live_folder)),
        adapters_(std::move(adapters)) {}

  void observe(const TrainingProgress& progress) {
    const auto now = Clock::now();
    worked_ += std::chrono::duration<double>(now - began_).count();
    collect(progress);
    if (progress.live_step > live_step_ && worked_ >= live_seconds_) copy_live(progress);
    constexpr std::chrono::milliseconds pause{250};
    if (now - published_ >= pause || urgent_ || job_.paused()) publish();
    job_.wait_while_paused(stop_);
    began_ = Clock::now();
  }

  void end(TrainingOutcome outcome) {
    update_.outcome = std::move(outcome);
    publish();
  }

private:
  void collect(const TrainingProgress& progress) {
    if (!progress.note.empty()) {
      update_.notes.push_back(progress.note);
      return;
    }
    update_.progress = progress;
    if (progress.phase == "train")
      update_.samples.push_back({progress.total_step, progress.step_loss, progress.per_layer});
    if (progress.phase == "features" || (known_ && progress.held_out.step == *known_)) return;
    known_ = progress.held_out.step;
    update_.held_out.push_back(progress.held_out);
    urgent_ = true;
  }

  // Called rarely enough to leave time for training besides the runs that show the adapter. Copies the file
  // because the training deletes its own at the end, possibly while a run reads it.
  void copy_live(const TrainingProgress& progress) {
    live_step_ = progress.live_step;
    worked_ = 0;
    try {
      const fs::path copy = live_folder_ / progress.live.filename();
      copy_file_version(progress.live, copy);
      if (chain_.empty()) chain_ = adapter_chain(copy, adapters_);
      update_.live = chain_;
      urgent_ = true;
    } catch (const std::exception& error) { // the training continues
      update_.notes.push_back(fmt::format("its newest state cannot be shown: {}", error_message(error)));
    }
  }

  void publish() {
    job_.publish(std::exchange(update_, {}));
    published_ = Clock::now();
    urgent_ = false;
    if (wake_) wake_();
  }

  Job& job_;
  std::stop_token stop_;
  std::function<void()> wake_;
  double live_seconds_;
  fs::path live_folder_;
  std::vector<fs::path> adapters_; // candidates for its base
  std::vector<fs::path> chain_;
  Update update_;
  bool urgent_ = false;
  std::optional<std::int64_t> known_; // step of the last validation
  std::int64_t live_step_ = 0;
  double worked_ = 0; // seconds of training since the last version
  Clock::time_point published_ = Clock::now(), began_ = Clock::now();
};

bool shows_training(const Editor& editor) {
  return shows(editor.document().scene_of(editor.training.input), editor.training);
}

void TrainingJob::begin(Editor& editor, TrainingStart how) {
  TrainingReport& report = editor.training;
  report.question = TrainingQuestion::none;
  if (job_) return;
  const TrainingForm& form = editor.training_form;
  if (const std::string why = why_not_trained(editor.document(), form); !why.empty())
    return editor.say(Severity::note, "Training: " + why);
  const fs::path output = training_output(editor.document(), form);
  std::error_code none;
  if (how == TrainingStart::ask) {
    if (fs::exists(output, none)) report.question = TrainingQuestion::replace_output;
    if (fs::exists(checkpoint_path(output), none)) report.question = TrainingQuestion::found_checkpoint;
    if (report.question != TrainingQuestion::none) return;
  }
  report = {};
  report.kind = form.kind;
  report.input = editor.document().kind;
  if (form.kind == TrainingKind::distill) report.kernel = form.kernel;
  report.model = editor.document().scene().model->name;
  report.output = output;
  editor.change_settings([&](Settings& settings) { settings.training = training_text(form); });
  try {
    start(editor, how);
    report.state = TrainingState::running;
  } catch (const Error& error) {
    report.state = TrainingState::failed;
    report.problem = error.what();
    editor.say(Severity::error, error.what());
  }
}

void TrainingJob::start(const Editor& editor, TrainingStart how) {
  const Document& document = editor.document();
  const TrainingForm& form = editor.training_form;
  TrainingRequest request = training_request(document, form);
  std::visit([&](auto& each) { each.settings.resume = how == TrainingStart::resume; }, request);
  model_folder_ = document.scene().model_folder;
  adapters_ = document.scene().adapters;
  offered_ = false;
  former_.reset();
  why_stopped_.clear();
  started_ = Clock::now();
  pauses_ = {};
  folder_.emplace(cache_folder() / "training");
  job_ = std::make_unique<Job>(
      [request, models = models_, wake = wake_, seconds = form.live_seconds, folder = folder_->path(),
       adapters = document.scene().adapters.files](Job& job, const std::stop_token& stop) {
        // LibTorch's threads inherit it.
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
        job.wait_while_paused(stop); // for the list of devices, which must precede every backward pass
        Reporter reporter(job, stop, wake, seconds, folder, adapters);
        reporter.end(train(
            request, [&](const TrainingProgress& progress) { reporter.observe(progress); }, stop, models));
      },
      wake_, /*paused=*/true);
}

void TrainingJob::stop(Editor& editor, std::string reason) {
  if (!job_ || editor.training.state == TrainingState::stopping) return;
  remove_shown(editor); // at once: the adapter does not fit another model
  editor.training.state = TrainingState::stopping;
  why_stopped_ = std::move(reason);
  job_->stop();
}

void TrainingJob::toggle_pause(Editor& editor) {
  if (!job_) return;
  bool& paused = editor.training.paused;
  if (paused) pauses_ += Clock::now() - paused_;
  paused_ = Clock::now();
  paused = !paused;
}

bool TrainingJob::update(Editor& editor, bool interactive_run) {
  if (!job_) return false;
  TrainingReport& report = editor.training;
  if (editor.document().scene_of(report.input).model_folder != model_folder_)
    stop(editor, "another model was opened");
  const bool hold = report.paused || interactive_run;
  job_->pause(hold);
  auto [updates, done, problem] = job_->take();
  for (Update& update : updates) take(editor, std::move(update));
  const bool waits = job_->waiting(), changed = !updates.empty() || waits != report.waiting;
  report.waiting = waits;
  if (!done) return changed;
  job_.reset();
  end(editor, without_dashes(problem));
  return true;
}

void TrainingJob::take(Editor& editor, Update update) {
  TrainingReport& report = editor.training;
  if (update.progress) report.progress = std::move(*update.progress);
  for (const Sample& sample : update.samples) report.curves.add(sample.step, sample.loss, sample.divergences);
  report.held_out.insert(report.held_out.end(), update.held_out.begin(), update.held_out.end());
  report.notes.insert(report.notes.end(), update.notes.begin(), update.notes.end());
  constexpr std::size_t most_notes = 50; // there may be thousands of broken pictures
  if (report.notes.size() > most_notes) report.notes.resize(most_notes);
  if (update.outcome) report.outcome = std::move(*update.outcome);
  if (update.live.empty()) return;
  report.adapter = std::move(update.live);
  report.adapter_step = report.progress.live_step;
  live_ = report.adapter.back();
  ++edition_;
  if (editor.training_form.show_live && !offered_) show(editor);
}

void TrainingJob::end(Editor& editor, const std::string& problem) {
  TrainingReport& report = editor.training;
  const auto last = report.paused ? paused_ : Clock::now();
  report.seconds = std::chrono::duration<double>(last - started_ - pauses_).count();
  report.paused = report.waiting = false;
  const fs::path& written = report.outcome.adapter.path;
  if (problem.empty() && !written.empty()) {
    report.state = TrainingState::finished;
    editor.say(Severity::note, fmt::format("Training finished. {}; kept as {}", training_gain_text(report),
                                           written.filename().string()));
    if (!live_.empty()) {
      editor.amend([&](Document& document) {
        for (fs::path& file : document.scene_of(report.input).adapters.files)
          if (file == live_) file = written;
      });
      report.adapter.back() = written;
    } else {
      report.adapter = {written};
      try {
        report.adapter = adapter_chain(written, editor.document().scene_of(report.input).adapters.files);
      } catch (const std::exception& error) { // one of the files is gone
        editor.say(Severity::error, error_message(error));
      }
    }
    report.adapter_step = report.outcome.held_out.step;
    if (editor.training_form.show_live && !offered_) show(editor);
  } else {
    report.state = problem.empty() ? TrainingState::stopped : TrainingState::failed;
    report.problem = problem;
    remove_shown(editor);
    report.adapter.clear();
    if (problem.empty()) {
      editor.say(Severity::note,
                 fmt::format("Training stopped after {} steps{}; {} is kept, Resume continues from it",
                             report.outcome.steps, why_stopped_.empty() ? "" : ", as " + why_stopped_,
                             checkpoint_path(report.output).string()));
    } else {
      editor.say(Severity::error, problem);
    }
  }
  live_.clear();
}

void TrainingJob::toggle_shown(Editor& editor) {
  TrainingReport& report = editor.training;
  if (shows_training(editor)) {
    editor.training_form.show_live = false;
    editor.change("Show the previous adapters", [&](Document& document) { show_former(document, report); });
    return;
  }
  editor.training_form.show_live = !report.adapter.empty() || !editor.training_form.show_live;
  if (!report.adapter.empty()) show(editor);
}

// One undo step, however many versions of the adapter follow.
void TrainingJob::show(Editor& editor) {
  const TrainingReport& report = editor.training;
  offered_ = true;
  const Scene& shown = editor.document().scene_of(report.input);
  if (!shown.model || shown.model_folder != model_folder_)
    return editor.say(Severity::note, "The trained adapter belongs to " + report.model + ": open it first");
  const Side side = edited_side(editor.document().view);
  // It was trained on pictures of the size that they had then. What was chosen since may have another size.
  const bool other_patches = report.input == InputKind::image && !shows_training(editor) &&
                             !editor.document().execution.image_size && shown.adapters != adapters_;
  if (!shows_training(editor))
    former_ = {shown.adapters, shown.schedules[static_cast<std::size_t>(side)], side, other_patches};
  editor.change("Show the trained adapter", [&](Document& document) {
    Scene& scene = document.scene_of(report.input);
    if (other_patches) forget_tokens(scene);
    scene.adapters = {.automatic = false, .files = report.adapter};
    if (report.kind == TrainingKind::distill)
      std::ranges::fill(scene.schedules[static_cast<std::size_t>(side)].layers, report.kernel);
  });
}

void TrainingJob::save_adapter(Editor& editor, const fs::path& file) const {
  const fs::path& written = editor.training.outcome.adapter.path;
  if (written.empty()) return;
  std::error_code failure;
  if (!fs::equivalent(written, file, failure)) {
    try {
      const FileMapping content(written);
      const std::span<const std::byte> bytes = content.bytes();
      write_file_atomically(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } catch (const Error& error) {
      return editor.say(Severity::error, error.what());
    }
  }
  editor.say(Severity::note, "Saved the adapter as " + file.string());
}

// Keeps later choices of the user.
void TrainingJob::show_former(Document& document, const TrainingReport& report) const {
  Scene& scene = document.scene_of(report.input);
  if (!shows(scene, report)) return;
  if (former_ ? former_->other_patches : report.input == InputKind::image) forget_tokens(scene);
  scene.adapters = former_ ? former_->adapters : AdapterChoice{};
  if (!former_ || report.kind != TrainingKind::distill) return;
  Schedule& schedule = scene.schedules[static_cast<std::size_t>(former_->side)];
  const bool as_set =
      std::ranges::all_of(schedule.layers, [&](const KernelSpec& kernel) { return kernel == report.kernel; });
  if (as_set && schedule.layers.size() == former_->schedule.layers.size()) schedule = former_->schedule;
}

// Removes it from all undo steps as well, because the file will be deleted.
void TrainingJob::remove_shown(Editor& editor) {
  if (!former_) return;
  editor.amend([&](Document& document) { show_former(document, editor.training); });
  former_.reset();
}

void TrainingJob::shut_down(Editor& editor) {
  if (!job_) return;
  const TrainingReport& report = editor.training;
  remove_shown(editor);
  fmt::print(stderr, "training is stopped; {} is kept, and Resume in the Training panel continues from it\n",
             checkpoint_path(report.output).string());
  job_.reset(); // waits for the current step
  live_.clear();
  folder_.reset();
}

} // namespace hydrascope::app
