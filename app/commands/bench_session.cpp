#include "app/commands/bench_session.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/measure/quantiles.h"

namespace hydrascope::app {

using nlohmann::ordered_json;

namespace {

using Clock = std::chrono::steady_clock;

void print_summaries(const ordered_json& result) {
  std::cout << fmt::format("{:<26}{:>10}{:>10}{:>10}\n", "", "median", "p95", "max");
  for (const auto& [name, values] : result.items()) {
    if (!values.is_object()) {
      std::cout << fmt::format("{:<26}{:>10.1f}\n", name, values.get<double>());
      continue;
    }
    const auto number = [&](const char* key) {
      return values[key].is_null() ? std::string("—") : fmt::format("{:.1f}", values[key].get<double>());
    };
    std::cout << fmt::format("{:<26}{:>10}{:>10}{:>10}\n", name, number("median"), number("p95"),
                             number("max"));
  }
}

WindowOptions hidden(WindowOptions options) {
  options.hidden = true;
  return options;
}

} // namespace

double milliseconds_since(const Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

ordered_json summary_json(std::vector<double> values) {
  if (values.empty()) return {{"median", nullptr}, {"p95", nullptr}, {"max", nullptr}};
  std::ranges::sort(values);
  return {{"median", quantile(values, 0.5)}, {"p95", quantile(values, 0.95)}, {"max", values.back()}};
}

void print_result(const ordered_json& result, const bool json) {
  if (json)
    std::cout << text_of_json(result, 2) << '\n';
  else
    print_summaries(result);
}

BenchSession::BenchSession(WindowOptions options) : application_(hidden(std::move(options))) {}

const ModelInfo& BenchSession::model(const char* benchmark) {
  const ModelInfo* const model = document().scene().model.get();
  if (model == nullptr) throw Error(benchmark, "no model could be opened", "run tools/setup");
  return *model;
}

FrameTime BenchSession::timed_frame() {
  last_frame_ = application_.frame();
  for (const Message& message : application_.editor().messages()) {
    if (message.severity == Severity::error) throw Error("bench", message.text);
  }
  return last_frame_;
}

void BenchSession::frame() {
  const bool busy = application_.coordinator().computing() || application_.editor().writing.running;
  const FrameTime time = timed_frame();
  if (!busy) return;
  frame_.push_back(time.total_ms);
  frame_cpu_.push_back(time.cpu_ms);
}

void BenchSession::until(const std::function<bool()>& done) {
  const auto start = Clock::now();
  auto drawn = start;
  while (!done()) {
    if (milliseconds_since(start) > 300e3)
      throw Error("bench", "no result within five minutes", "choose a smaller model or input");
    application_.wait(1.0);
    if (most_frames_per_second_ > 0) {
      std::this_thread::sleep_until(drawn + std::chrono::duration<double>(1 / most_frames_per_second_));
      drawn = Clock::now();
    }
    frame();
  }
}

void BenchSession::until_settled() {
  until([&] { return application_.settled(); });
}

void BenchSession::forget_frames() {
  frame_.clear();
  frame_cpu_.clear();
}

} // namespace hydrascope::app
