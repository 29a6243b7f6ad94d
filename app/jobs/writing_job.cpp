#include "app/jobs/writing_job.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/document/session.h"
#include "app/document/writing_edits.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/lockstep.h"
#include "engine/base/text.h"
#include "engine/run/generate.h"

namespace hydrascope::app {

namespace {

using Job = BackgroundJob<WritingStep>;

GenerateRequest generate_request(const Document& document, const Writing& writing, const std::size_t side) {
  const Scene& scene = document.scene();
  const WritingOptions& options = document.writing;
  GenerateRequest request;
  request.model_folder = scene.model_folder;
  request.adapters = scene.adapters;
  request.schedule = scene.schedules[side];
  request.text = writing.prompt;
  for (const WrittenToken& token : writing.sides[side].tokens) request.written.push_back(token.id);
  request.tokens = options.tokens;
  request.sampling = {.temperature = options.temperature, .top_p = options.top_p, .seed = options.seed};
  request.execution = document.execution;
  if (!document.writing.follow) request.execution.threads = writing_threads(document.execution.threads);
  return request;
}

// The newest token, before which `written` bytes of the text were there.
WrittenToken written_token(const GenerateOutcome& outcome, const std::size_t written) {
  const GeneratedToken& token = outcome.tokens.back();
  return {.id = token.id,
          .name = token.text,
          .text = outcome.text.substr(std::min(written, outcome.text.size())),
          .logprob = token.logprob,
          .ms = token.ms,
          .state_bytes = outcome.state_bytes};
}

// One side, from the reading of its text to its end.
class SideWriter {
public:
  // `written`: the text of the request's tokens that were written before.
  SideWriter(const std::size_t side, std::string written, Job& job)
      : side_(side), written_(std::move(written)), job_(&job) {}

  void begin(const GenerateRequest& request, ModelStore& models, const std::stop_token& stop) {
    guarded([&] {
      generation_.emplace(request, models, stop);
      const GenerateOutcome& outcome = generation_->outcome();
      job_->publish({.side = side_,
                     .prompt_tokens = outcome.prompt_tokens - std::ssize(request.written),
                     .prefill_ms = outcome.prefill_ms,
                     .notes = outcome.notes});
    });
  }

  // Writes a token; false after the last one.
  bool advance(const std::stop_token& stop) {
    if (!generation_) return false;
    bool goes_on = false;
    guarded([&] {
      const std::size_t before = generation_->outcome().tokens.size();
      const std::size_t written = generation_->outcome().text.size();
      goes_on = generation_->advance(stop);
      const GenerateOutcome& outcome = generation_->outcome();
      WritingStep step{.side = side_, .text = written_ + outcome.text};
      if (outcome.tokens.size() > before) step.token = written_token(outcome, written);
      // That so many tokens were wanted is no end of the text.
      if (!outcome.ended.empty() && outcome.ended != "tokens") step.ended = outcome.ended;
      job_->publish(std::move(step));
    });
    if (!goes_on) generation_.reset();
    return goes_on;
  }

private:
  // A kernel that cannot write is no reason for the other side not to.
  template <typename Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {
      job_->publish({.side = side_, .problem = first_line(error_message(error))});
      generation_.reset();
    }
  }

  std::size_t side_;
  std::string written_;
  Job* job_;
  std::optional<Generation> generation_;
};

struct WritingTask {
  std::size_t side = 0;
  GenerateRequest request;
  std::string written; // the text of request.written
};

// What writing needs besides its tasks.
struct Surroundings {
  Job& job;
  ModelStore& models;
  const std::stop_token& stop;

  // Whether to stop; waits while the job is paused.
  bool interrupted() const {
    job.wait_while_paused(stop);
    return stop.stop_requested();
  }
};

// On the calling thread, the sides in turns. `wake` is called after each token.
void write_in_turns(const std::vector<WritingTask>& tasks, const Surroundings& around,
                    const std::function<void()>& wake) {
  const ThreadCount threads(tasks.front().request.execution.threads);
  std::vector<SideWriter> writers;
  for (const WritingTask& task : tasks) {
    if (around.interrupted()) return;
    writers.emplace_back(task.side, task.written, around.job).begin(task.request, around.models, around.stop);
    wake();
  }
  for (bool any = true; any;) {
    any = false;
    for (SideWriter& writer : writers) {
      if (around.interrupted()) return;
      any |= writer.advance(around.stop);
      wake();
    }
  }
}

// One of two sides, on the calling thread, with its share of the threads until the other side ends.
void write_side_in_lockstep(const WritingTask& task, const int side, Lockstep& lockstep,
                            const Surroundings& around) {
  const int all = task.request.execution.threads;
  std::optional<ThreadCount> threads(std::in_place, side == 0 ? all - all / 2 : all / 2);
  LockstepMember member(lockstep, side);
  SideWriter writer(task.side, task.written, around.job);
  if (!around.interrupted()) writer.begin(task.request, around.models, around.stop);
  member.enter();
  for (bool alone = false, goes_on = true; goes_on && !around.interrupted();) {
    if (!alone && lockstep.left(1 - side)) {
      alone = true;
      threads.emplace(all);
    }
    // Both start a token together, so that a pause does not count as its time.
    lockstep.meet(side, {});
    lockstep.finish(side);
    goes_on = writer.advance(around.stop);
  }
}

// Both sides, each on a thread of its own: the weights that both need are read once for both, and that is
// what most of a token's time is.
void write_in_lockstep(const std::vector<WritingTask>& tasks, const Surroundings& around) {
  Lockstep lockstep;
  std::exception_ptr problem;
  {
    const std::jthread other([&] {
      try {
        write_side_in_lockstep(tasks[1], 1, lockstep, around);
      } catch (...) {
        problem = std::current_exception();
      }
    });
    write_side_in_lockstep(tasks[0], 0, lockstep, around);
  }
  if (problem != nullptr) std::rethrow_exception(problem);
}

} // namespace

void WritingJob::start(Editor& editor, const bool anew) {
  const Document& document = editor.document();
  if (const std::string why = why_not_written(document); !why.empty())
    return editor.say(Severity::note, "Write: " + why);
  stop(editor);
  Writing& writing = editor.writing;
  const Scene& scene = document.scene();
  if (anew || !why_not_continued(editor).empty()) {
    const std::string& text = std::get<TextInput>(*scene.input).text;
    const bool again = writing.prompt == text && writing.model == scene.model->name;
    const std::int64_t read_before = again ? writing.prompt_tokens() : 0;
    const std::uint64_t edition = writing.edition;
    writing = {};
    writing.edition = edition;
    writing.model = scene.model->name;
    writing.prompt = text;
    writing.read_before = read_before;
    writing.alike = scene.schedules[0] == scene.schedules[1];
    for (const Side side : {Side::a, Side::b}) {
      writing.setups[static_cast<std::size_t>(side)] = writing_setup(document, side);
      const Schedule& schedule = scene.schedules[static_cast<std::size_t>(side)];
      writing.sides[static_cast<std::size_t>(side)].schedule = schedule.summary();
      writing.sides[static_cast<std::size_t>(side)].kernel = telling_kernel(schedule);
    }
  }
  std::vector<WritingTask> tasks;
  for (std::size_t side = 0; side < writing.count(); ++side) {
    WrittenSide& written = writing.sides[side];
    if (!written.ended.empty()) continue;
    written.problem.clear();
    writing.wanted[side] = written.tokens.size() + static_cast<std::size_t>(document.writing.tokens);
    WritingTask task{.side = side, .request = generate_request(document, writing, side), .written = {}};
    for (const WrittenToken& token : written.tokens) task.written += token.text;
    tasks.push_back(std::move(task));
  }
  writing.running = true;
  writing.start = ++start_;
  ++writing.edition;
  model_folder_ = scene.model_folder;
  // Panels that follow redraw after each token and need cores. Otherwise the 30 frames a second show new
  // tokens.
  const bool lockstep =
      tasks.size() == 2 && !document.writing.follow && tasks[0].request.execution.threads > 1;
  const std::function<void()> wake = document.writing.follow && wake_ ? wake_ : [] {};
  jobs_.start(
      [tasks = std::move(tasks), models = models_, lockstep, wake](Job& job, const std::stop_token& stop) {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5); // threads that start from here inherit it
        const Surroundings around{job, *models, stop};
        if (lockstep)
          write_in_lockstep(tasks, around);
        else
          write_in_turns(tasks, around, wake);
      },
      wake_);
}

namespace {

void take_step(Writing& writing, WritingStep step) {
  WrittenSide& side = writing.sides.at(step.side);
  if (step.prompt_tokens) {
    side.prompt_tokens = *step.prompt_tokens;
    side.prefill_ms = step.prefill_ms;
    side.notes = std::move(step.notes);
  }
  if (step.token) side.tokens.push_back(std::move(*step.token));
  if (!step.text.empty()) side.text = std::move(step.text);
  if (!step.ended.empty()) side.ended = std::move(step.ended);
  if (!step.problem.empty()) side.problem = std::move(step.problem);
  ++writing.edition;
}

} // namespace

void WritingJob::stop(Editor& editor) {
  Job* const job = jobs_.job();
  if (job != nullptr && editor.writing.start == start_) {
    auto [steps, done, problem] = job->take();
    for (WritingStep& step : steps) take_step(editor.writing, std::move(step));
    if (!problem.empty()) editor.say(Severity::error, problem);
    editor.writing.running = false;
  }
  jobs_.retire();
}

bool WritingJob::update(Editor& editor, const bool interactive_run) {
  Job* const job = jobs_.job();
  if (job == nullptr) return false;
  const bool replaced = editor.writing.start != start_; // by that of a session
  if (replaced || editor.document().scene_of(InputKind::text).model_folder != model_folder_) {
    stop(editor);
    return true;
  }
  job->pause(interactive_run);
  auto [steps, done, problem] = job->take();
  const bool changed = !steps.empty();
  for (WritingStep& step : steps) take_step(editor.writing, std::move(step));
  if (!problem.empty()) editor.say(Severity::error, problem);
  if (done) {
    editor.writing.running = false;
    jobs_.finish();
  }
  return done || changed;
}

} // namespace hydrascope::app
