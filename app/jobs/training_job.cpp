#include "app/jobs/training_job.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <span>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/document/adapter_chain.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Of this process alone, so that two programs may train into files of the same name.
fs::path live_folder() { return cache_folder() / fmt::format("training-{}", static_cast<long>(getpid())); }

// "a lower --learning-rate" is "a lower learning rate" here.
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

// A file as it is now, whatever becomes of it.
void keep_copy(const fs::path& file, const fs::path& copy) {
  fs::create_directories(copy.parent_path());
  const fs::path beside = copy.string() + ".new";
  fs::remove(beside);
  std::error_code elsewhere; // on another disk there is no second name for it
  fs::create_hard_link(file, beside, elsewhere);
  if (elsewhere) fs::copy_file(file, beside);
  fs::rename(beside, copy);
}

} // namespace

// What the thread tells: gathered, as a frame for every step would be thousands.
class TrainingJob::Reporter {
public:
  Reporter(Job& job, std::stop_token stop, std::function<void()> wake, double live_seconds,
           std::vector<fs::path> adapters)
      : job_(job),
        stop_(std::move(stop)),
        wake_(std::move(wake)),
        live_seconds_(live_seconds),
        adapters_(std::move(adapters)) {}

  void observe(const TrainingProgress& progress) {
    const auto now = Clock::now();
    worked_ += std::chrono::duration<double>(now - began_).count();
    gather(progress);
    if (progress.live_step > live_step_ && worked_ >= live_seconds_) take_live(progress);
    constexpr std::chrono::milliseconds pause{250};
    if (now - told_ >= pause || urgent_ || job_.paused()) tell();
    job_.wait_while_paused(stop_);
    began_ = Clock::now();
  }

  void end(TrainingOutcome outcome) {
    news_.outcome = std::move(outcome);
    tell();
  }

private:
  void gather(const TrainingProgress& progress) {
    if (!progress.note.empty()) {
      news_.notes.push_back(progress.note);
      return;
    }
    news_.progress = progress;
    if (progress.phase == "train")
      news_.samples.push_back({progress.total_step, progress.step_loss, progress.per_layer});
    if (progress.phase == "features" || (known_ && progress.held_out.step == *known_)) return;
    known_ = progress.held_out.step;
    news_.held_out.push_back(progress.held_out);
    urgent_ = true;
  }

  // Only so often that the runs which show it leave time for training, too. What is shown is a copy: the
  // training takes its own away when it has finished, perhaps while a run reads it.
  void take_live(const TrainingProgress& progress) {
    live_step_ = progress.live_step;
    worked_ = 0;
    try {
      const fs::path copy = live_folder() / progress.live.filename();
      keep_copy(progress.live, copy);
      if (chain_.empty()) chain_ = adapter_chain(copy, adapters_);
      news_.live = chain_;
      urgent_ = true;
    } catch (const std::exception& error) { // the training goes on
      news_.notes.push_back(fmt::format("its newest state cannot be shown: {}", error.what()));
    }
  }

  void tell() {
    job_.publish(std::exchange(news_, {}));
    told_ = Clock::now();
    urgent_ = false;
    if (wake_) wake_();
  }

  Job& job_;
  std::stop_token stop_;
  std::function<void()> wake_;
  double live_seconds_;
  std::vector<fs::path> adapters_; // that it may have been trained over
  std::vector<fs::path> chain_;
  News news_;
  bool urgent_ = false;
  std::optional<std::int64_t> known_; // step of the last validation
  std::int64_t live_step_ = 0;
  double worked_ = 0; // seconds of training since a state was taken up
  Clock::time_point told_ = Clock::now(), began_ = Clock::now();
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
  offered_ = false;
  former_.reset();
  why_stopped_.clear();
  job_ = std::make_unique<Job>(
      [request, models = models_, wake = wake_, seconds = form.live_seconds,
       adapters = document.scene().adapters.files](Job& job, const std::stop_token& stop) {
        // Threads that LibTorch starts for this one inherit it.
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
        Reporter reporter(job, stop, wake, seconds, adapters);
        reporter.end(train(
            request, [&](const TrainingProgress& progress) { reporter.observe(progress); }, stop, models));
      },
      wake_);
}

void TrainingJob::stop(Editor& editor, std::string reason) {
  if (!job_ || editor.training.state == TrainingState::stopping) return;
  forget_shown(editor); // at once: another model would not take the adapter
  editor.training.state = TrainingState::stopping;
  why_stopped_ = std::move(reason);
  job_->stop();
}

void TrainingJob::toggle_pause(Editor& editor) {
  if (job_) editor.training.paused = !editor.training.paused;
}

bool TrainingJob::update(Editor& editor, bool interactive_run) {
  if (!job_) return false;
  TrainingReport& report = editor.training;
  bool changed = false;
  if (editor.document().scene_of(report.input).model_folder != model_folder_)
    stop(editor, "another model was opened");
  const bool hold = report.paused || interactive_run;
  job_->pause(hold);
  const bool done = job_->done(); // asked before the last news are taken
  for (News& news : job_->take()) {
    take(editor, std::move(news));
    changed = true;
  }
  const bool waits = job_->waiting();
  changed |= waits != report.waiting;
  report.waiting = waits;
  if (!done) return changed;
  const std::string problem = without_dashes(job_->take_problem());
  job_.reset();
  end(editor, problem);
  return true;
}

void TrainingJob::take(Editor& editor, News news) {
  TrainingReport& report = editor.training;
  if (news.progress) report.progress = std::move(*news.progress);
  for (const Sample& sample : news.samples) report.curves.add(sample.step, sample.loss, sample.divergences);
  report.held_out.insert(report.held_out.end(), news.held_out.begin(), news.held_out.end());
  report.notes.insert(report.notes.end(), news.notes.begin(), news.notes.end());
  constexpr std::size_t most_notes = 50; // of thousands of broken pictures some say enough
  if (report.notes.size() > most_notes) report.notes.resize(most_notes);
  if (news.outcome) report.outcome = std::move(*news.outcome);
  if (news.live.empty()) return;
  report.adapter = std::move(news.live);
  report.adapter_step = report.progress.live_step;
  live_ = report.adapter.back();
  ++edition_;
  if (editor.training_form.show_live && !offered_) show(editor);
}

void TrainingJob::end(Editor& editor, const std::string& problem) {
  TrainingReport& report = editor.training;
  report.paused = report.waiting = false;
  const fs::path& written = report.outcome.adapter.path;
  if (problem.empty() && !written.empty()) {
    report.state = TrainingState::finished;
    editor.say(Severity::note, "Training finished: " + written.string());
    if (!live_.empty()) {
      editor.amend([&](Document& document) {
        for (fs::path& file : document.scene_of(report.input).adapters.files)
          if (file == live_) file = written;
      });
      report.adapter.back() = written;
    } else {
      report.adapter = adapter_chain(written, editor.document().scene_of(report.input).adapters.files);
    }
    report.adapter_step = report.outcome.held_out.step;
    if (editor.training_form.show_live && !offered_) show(editor);
  } else {
    report.state = problem.empty() ? TrainingState::stopped : TrainingState::failed;
    report.problem = problem;
    forget_shown(editor);
    report.adapter.clear();
    if (problem.empty()) {
      editor.say(Severity::note,
                 fmt::format("Training stopped after {} steps{}; {} is kept, Resume goes on from it",
                             report.outcome.steps, why_stopped_.empty() ? "" : ", as " + why_stopped_,
                             checkpoint_path(report.output).string()));
    } else {
      editor.say(Severity::error, problem);
    }
  }
  drop_live();
}

void TrainingJob::toggle_shown(Editor& editor) {
  TrainingReport& report = editor.training;
  if (shows_training(editor)) {
    editor.training_form.show_live = false;
    editor.change("Show the former adapter", [&](Document& document) { show_former(document, report); });
    return;
  }
  editor.training_form.show_live = !report.adapter.empty() || !editor.training_form.show_live;
  if (!report.adapter.empty()) show(editor);
}

// One step to be undone, however often the adapter is written anew.
void TrainingJob::show(Editor& editor) {
  const TrainingReport& report = editor.training;
  offered_ = true;
  const Scene& shown = editor.document().scene_of(report.input);
  if (!shown.model || shown.model_folder != model_folder_)
    return editor.say(Severity::note, "The trained adapter is one of " + report.model + ": open it first");
  const Side side = edited_side(editor.document().view);
  if (!shows_training(editor))
    former_ = {shown.adapters, shown.schedules[static_cast<std::size_t>(side)], side};
  editor.change("Show the trained adapter", [&](Document& document) {
    Scene& scene = document.scene_of(report.input);
    scene.adapters = {.automatic = false, .files = report.adapter};
    if (report.kind == TrainingKind::distill)
      std::ranges::fill(scene.schedules[static_cast<std::size_t>(side)].layers, report.kernel);
  });
}

// What has been chosen since stays.
void TrainingJob::show_former(Document& document, const TrainingReport& report) const {
  Scene& scene = document.scene_of(report.input);
  if (!shows(scene, report)) return;
  scene.adapters = former_ ? former_->adapters : AdapterChoice{};
  if (!former_ || report.kind != TrainingKind::distill) return;
  Schedule& schedule = scene.schedules[static_cast<std::size_t>(former_->side)];
  const bool as_set =
      std::ranges::all_of(schedule.layers, [&](const KernelSpec& kernel) { return kernel == report.kernel; });
  if (as_set && schedule.layers.size() == former_->schedule.layers.size()) schedule = former_->schedule;
}

// As if it had never been shown: not even undo is to come to a file that will be gone.
void TrainingJob::forget_shown(Editor& editor) {
  if (!former_) return;
  editor.amend([&](Document& document) { show_former(document, editor.training); });
  former_.reset();
}

void TrainingJob::drop_live() {
  live_.clear();
  std::error_code none; // a folder for what is passing: nothing is lost if it stays
  fs::remove_all(live_folder(), none);
}

void TrainingJob::leave(Editor& editor) {
  if (!job_) return;
  const TrainingReport& report = editor.training;
  forget_shown(editor);
  fmt::print(stderr, "training is stopped; {} is kept, and Resume in the Training panel goes on from it\n",
             checkpoint_path(report.output).string());
  job_.reset(); // waits for the step that is under way
  drop_live();
}

} // namespace hydrascope::app
