#include "app/commands/training_display.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "app/commands/output.h"
#include "app/views/training_view.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {
namespace {

// A signal handler can reach globals only.
std::atomic<bool> interrupted{false}; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void interrupt(int) { interrupted = true; }

std::string measure_text(const HeldOut& held_out) {
  switch (held_out.measure) {
    case HeldOutMeasure::divergence: return fmt::format("KL {:.4f}", held_out.divergence);
    case HeldOutMeasure::perplexity: return fmt::format("perplexity {:.4g}", held_out.perplexity);
    case HeldOutMeasure::correlation:
      return fmt::format("Pearson {:.4f}, Spearman {:.4f}", held_out.pearson, held_out.spearman);
    case HeldOutMeasure::accuracy: break;
  }
  return fmt::format("top-1 {:.2f} %", 100 * held_out.accuracy);
}

// "epoch 2/5  train 120/176  loss 1.234 …".
std::string line_of(const TrainingProgress& progress) {
  std::string text = fmt::format("{:<8} {}", progress.phase, progress_text(progress.step, progress.steps));
  if (progress.epoch > 0) text = fmt::format("epoch {}/{}  ", progress.epoch, progress.epochs) + text;
  if (progress.loss > 0) text += fmt::format("  loss {:.4f}", progress.loss);
  const HeldOut& held_out = progress.held_out;
  if (held_out.loss > 0)
    text += fmt::format("  held-out loss {:.4f}  {}", held_out.loss, measure_text(held_out));
  if (progress.items_per_second > 0) text += fmt::format("  {:.1f} items/s", progress.items_per_second);
  if (progress.seconds_left > 0) text += fmt::format("  {} left", duration_text(progress.seconds_left));
  return text;
}

} // namespace

TrainingDisplay::TrainingDisplay() : terminal_(isatty(STDERR_FILENO) != 0) {
  interrupted = false;
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  watcher_ = std::jthread([this](const std::stop_token& end) { watch(end); });
}

TrainingDisplay::~TrainingDisplay() {
  end_line();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void TrainingDisplay::watch(const std::stop_token& end) {
  while (!end.stop_requested() && !interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (interrupted) source_.request_stop();
}

TrainingObserver TrainingDisplay::observer() {
  return [this](const TrainingProgress& progress) { show(progress); };
}

void TrainingDisplay::end_line() {
  if (open_line_) std::fputc('\n', stderr);
  open_line_ = false;
}

void TrainingDisplay::show(const TrainingProgress& progress) {
  if (!progress.note.empty()) {
    end_line();
    fmt::print(stderr, "note: {}\n", progress.note);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool epoch_done = progress.phase == "validate" && progress.step == progress.steps;
  const auto pause = terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(30000);
  if (!epoch_done && now - last_ < pause) return;
  last_ = now;
  if (terminal_)
    fmt::print(stderr, "\r\033[K{}", line_of(progress));
  else
    fmt::print(stderr, "{}\n", line_of(progress));
  open_line_ = terminal_;
  if (epoch_done) end_line();
  std::fflush(stderr);
}

void check_not_stopped(const std::string& subject, const TrainingOutcome& outcome,
                       const std::filesystem::path& output) {
  if (!outcome.stopped) return;
  std::error_code none;
  if (!std::filesystem::exists(checkpoint_path(output), none))
    throw Error(subject, "stopped before the first step", "start it again");
  const std::string when = outcome.steps == 0 ? "" : fmt::format(" after {} steps", outcome.steps);
  throw Error(subject, "stopped" + when + ", a checkpoint is kept beside the output", "go on with --resume");
}

void write_curve(const std::filesystem::path& file, const TrainingOutcome& outcome) {
  std::string text = "step,loss\n";
  for (const auto& [step, loss] : outcome.curve) text += fmt::format("{},{:.6g}\n", step, loss);
  write_file_atomically(file, text);
}

} // namespace hydrascope::app
