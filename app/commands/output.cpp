#include "app/commands/output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace hydrascope::app {
namespace {

// Characters as a terminal shows them: UTF-8's continuation bytes take no room.
std::size_t displayed_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

} // namespace

void print_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  if (rows.empty()) return;
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], displayed_width(row[column]));
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::size_t room = widths[column] - displayed_width(row[column]);
      const bool right = column < alignment.size() && alignment[column] == 'r';
      if (right) line.append(room, ' ');
      line += row[column];
      if (column + 1 < row.size()) line.append((right ? 0 : room) + 2, ' ');
    }
    fmt::print("{}\n", line);
  }
}

std::string decimal(double value) { return std::isnan(value) ? "—" : fmt::format("{:.3f}", value); }

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
}

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
