#include "app/commands/bench_session.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope::app {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double process_age_ms() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  double now = 0;
  uptime >> now;
  std::istringstream fields(text.substr(text.rfind(')') + 2)); // the name in parentheses may hold spaces
  std::string field;
  constexpr int start_time = 20; // field 22, counted from the one after the name
  for (int i = 0; i < start_time; ++i) fields >> field;
  const double started = std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return (now - started) * 1e3;
}

nlohmann::ordered_json summary_json(std::vector<double> values) {
  if (values.empty()) return {{"median", nullptr}, {"p95", nullptr}, {"max", nullptr}};
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())) - 1)];
  };
  return {{"median", at(0.5)}, {"p95", at(0.95)}, {"max", values.back()}};
}

void print_summaries(const nlohmann::ordered_json& result) {
  std::cout << fmt::format("{:<22}{:>10}{:>10}{:>10}\n", "", "median", "p95", "max");
  for (const auto& [name, values] : result.items()) {
    if (!values.is_object()) {
      std::cout << fmt::format("{:<22}{:>10.1f}\n", name, values.get<double>());
      continue;
    }
    const auto number = [&](const char* key) {
      return values[key].is_null() ? std::string("—") : fmt::format("{:.1f}", values[key].get<double>());
    };
    std::cout << fmt::format("{:<22}{:>10}{:>10}{:>10}\n", name, number("median"), number("p95"),
                             number("max"));
  }
}

FrameTime BenchSession::timed_frame() {
  const FrameTime time = application_.frame();
  for (const Message& message : application_.editor().messages()) {
    if (message.severity == Severity::error) throw Error("bench", message.text);
  }
  return time;
}

void BenchSession::frame() {
  const bool computing = application_.coordinator().computing();
  const FrameTime time = timed_frame();
  if (!computing) return;
  frame_.push_back(time.total_ms);
  frame_cpu_.push_back(time.cpu_ms);
}

void BenchSession::until(const std::function<bool()>& done) {
  const auto start = Clock::now();
  while (!done()) {
    if (milliseconds_since(start) > 300e3)
      throw Error("bench", "no result within five minutes", "choose a smaller model or input");
    application_.wait(1.0);
    frame();
  }
}

void BenchSession::until_settled() {
  until([&] { return application_.settled(); });
}

} // namespace hydrascope::app
