#include "app/commands/training_progress.h"

#include "app/views/training_view.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/progress_bar.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {
namespace {

// Signal handlers reach nothing but globals.
std::atomic<bool> interrupted{false}; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void interrupt(int) { interrupted = true; }

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
    fmt::print(stderr, "\r\033[K{}", progress_text(progress));
  else
    fmt::print(stderr, "{}\n", progress_text(progress));
  open_line_ = terminal_;
  if (epoch_done) end_line();
  std::fflush(stderr);
}

std::string progress_text(const TrainingProgress& progress) {
  std::string text = fmt::format("{:<8} {}", progress.phase, progress_text(progress.step, progress.steps));
  if (progress.epoch > 0) text = fmt::format("epoch {}/{}  ", progress.epoch, progress.epochs) + text;
  if (progress.loss > 0) text += fmt::format("  loss {:.4f}", progress.loss);
  const HeldOut& held_out = progress.held_out;
  if (held_out.loss > 0) text += fmt::format("  held-out loss {:.4f}", held_out.loss);
  if (held_out.divergence > 0) text += fmt::format("  KL {:.4f}", held_out.divergence);
  if (held_out.accuracy > 0) text += fmt::format("  top-1 {:.2f} %", 100 * held_out.accuracy);
  if (progress.items_per_second > 0) text += fmt::format("  {:.1f} items/s", progress.items_per_second);
  if (progress.seconds_left > 0) text += fmt::format("  {} left", duration_text(progress.seconds_left));
  return text;
}

void write_curve(const std::filesystem::path& file, const TrainingOutcome& outcome) {
  std::string text = "step,loss\n";
  for (const auto& [step, loss] : outcome.curve) text += fmt::format("{},{:.6g}\n", step, loss);
  write_file_atomically(file, text);
}

void print_outcome(const TrainingOutcome& outcome, const bool json) {
  if (outcome.stopped)
    throw Error("training",
                fmt::format("stopped after {} steps, a checkpoint is kept beside the output", outcome.steps),
                "go on with --resume");
  if (json) {
    const nlohmann::json document = {{"adapter", outcome.adapter.path.string()},
                                     {"hash", outcome.adapter.hash},
                                     {"base", outcome.adapter.base},
                                     {"role", outcome.adapter.role},
                                     {"steps", outcome.steps},
                                     {"loss", outcome.final_loss},
                                     {"validation_loss", outcome.held_out.loss},
                                     {"accuracy", outcome.held_out.accuracy},
                                     {"accuracy_before", outcome.before.accuracy},
                                     {"matthews", outcome.held_out.matthews},
                                     {"f1", outcome.held_out.f1},
                                     {"kl", outcome.held_out.divergence},
                                     {"kl_before", outcome.before.divergence},
                                     {"notes", outcome.notes}};
    fmt::print("{}\n", document.dump(2));
    return;
  }
  fmt::print("{}: {} steps, loss {:.4f}, held-out loss {:.4f}", outcome.adapter.path.string(), outcome.steps,
             outcome.final_loss, outcome.held_out.loss);
  const HeldOut& held_out = outcome.held_out;
  if (held_out.accuracy > 0)
    fmt::print(", held-out top-1 {:.2f} % ({:.2f} before)", 100 * held_out.accuracy,
               100 * outcome.before.accuracy);
  if (held_out.matthews != 0 || held_out.f1 > 0)
    fmt::print(", Matthews {:.4f}, F1 {:.4f}", held_out.matthews, held_out.f1);
  if (outcome.before.divergence > 0)
    fmt::print(", held-out KL {:.4f} nats ({:.4f} before)", held_out.divergence, outcome.before.divergence);
  fmt::print("\n");
}

} // namespace hydrascope::app
