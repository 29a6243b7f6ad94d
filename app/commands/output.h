// What commands print: tables and numbers on standard output, progress on standard error. Plain header.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace hydrascope::app {

// Prints rows with as many cells as the first, columns two blanks apart. `alignment` has a letter per column,
// 'l' or 'r'; further columns are aligned left.
void print_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment = {});

// A number with three decimals, "—" for NaN.
std::string decimal(double value);
// A number; null if there is none or it is not finite.
nlohmann::ordered_json number_or_null(std::optional<double> value);

// On standard error, each on a line.
void print_notes(const std::vector<std::string>& notes);

// "[####................] 40/200".
std::string progress_text(std::int64_t done, std::int64_t total);

// A line that is overwritten, and erased at the end; nothing if standard error is not a terminal.
class ProgressBar {
public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::int64_t done, std::int64_t total);

private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

} // namespace hydrascope::app
