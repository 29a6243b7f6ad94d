#include "app/commands/progress_bar.h"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace hydrascope::app {

std::string progress_text(std::int64_t done, std::int64_t total) {
  constexpr std::int64_t width = 20;
  const auto filled = static_cast<std::size_t>(total > 0 ? done * width / total : 0);
  return fmt::format("[{}{}] {}/{}", std::string(filled, '#'),
                     std::string(static_cast<std::size_t>(width) - filled, '.'), done, total);
}

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)),
      terminal_(isatty(STDERR_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(std::int64_t done, std::int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  shown_ = true;
  const std::chrono::duration<double> seconds = now - begin_;
  std::string line = fmt::format("\r\033[K{} {}", label_, progress_text(done, total));
  if (done > 0)
    line += fmt::format("  about {:.0f} s left",
                        seconds.count() * static_cast<double>(total - done) / static_cast<double>(done));
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

} // namespace hydrascope::app
