// hydrascope bench interact: what a user at the window has to wait for, measured on the window itself, off
// screen.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "app/commands/command.h"
#include "app/state/edits.h"
#include "app/window/application.h"
#include "engine/plain/error.h"

namespace hydrascope::app {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Since the process was started (not since main): from the kernel's own books, which count in hundredths of a
// second.
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

nlohmann::ordered_json summary(std::vector<double> values) {
  if (values.empty()) return {{"median", nullptr}, {"p95", nullptr}, {"max", nullptr}};
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())) - 1)];
  };
  return {{"median", at(0.5)}, {"p95", at(0.95)}, {"max", values.back()}};
}

struct InteractOptions {
  WindowOptions window;
  int repeats = 12;
};

struct Measured {
  std::vector<double> first_frame, first_result, first_layer, last_layer, frame, frame_cpu;
};

class Session {
public:
  explicit Session(const WindowOptions& options) : application_(options) {}

  void run(int repeats, Measured& measured) {
    frame();
    measured.first_frame.push_back(process_age_ms());
    until([&] { return fresh(); });
    measured.first_result.push_back(process_age_ms());
    until([&] { return application_.settled(); });
    const ModelInfo* model = application_.editor().document().scene().model.get();
    if (model == nullptr) throw Error("bench interact", "no model could be opened", "run tools/setup");
    for (int i = 0; i < repeats; ++i) {
      measured.last_layer.push_back(switch_layer(model->layers - 1, i));
      measured.first_layer.push_back(switch_layer(0, i));
    }
    measured.frame = std::move(frame_);
    measured.frame_cpu = std::move(frame_cpu_);
  }

private:
  // The loop of run_window, its idle gate included; frames count while the model runs.
  void frame() {
    const bool computing = application_.coordinator().computing();
    const FrameTime time = application_.frame();
    if (computing) {
      frame_.push_back(time.total_ms);
      frame_cpu_.push_back(time.cpu_ms);
    }
    for (const Message& message : application_.editor().messages()) {
      if (message.severity == Severity::error) throw Error("bench interact", message.text);
    }
  }

  template <typename Done>
  void until(const Done& done) {
    const auto start = Clock::now();
    while (!done()) {
      if (milliseconds_since(start) > 300e3)
        throw Error("bench interact", "no result within five minutes", "choose a smaller model");
      application_.wait(1.0);
      frame();
    }
  }

  // The selected layer's focus map of the document as it is now is on the screen.
  bool fresh() {
    const SideResults& results = application_.coordinator().results(Side::a);
    return !results.parts.empty() && !results.stale &&
           find_focus(results, application_.editor().document().scene().layer).focus != nullptr;
  }

  // From the click to the end of the frame that shows the new focus map.
  double switch_layer(int layer, int turn) {
    select_layer(application_.editor(), layer);
    until([&] { return application_.settled(); });
    const auto start = Clock::now();
    set_layer_kernel(application_.editor(), layer,
                     {.name = turn % 2 == 0 ? "hydra-cosine" : "softmax", .parameters = {}});
    frame();
    until([&] { return fresh(); });
    const double taken = milliseconds_since(start);
    until([&] { return application_.settled(); });
    return taken;
  }

  Application application_;
  std::vector<double> frame_, frame_cpu_;
};

void run_interact(const InteractOptions& options) {
  WindowOptions window = options.window;
  window.hidden = true;
  Measured measured;
  Session session(window);
  session.run(options.repeats, measured);
  nlohmann::ordered_json result = {{"first_frame_ms", summary(measured.first_frame)},
                                   {"first_result_ms", summary(measured.first_result)},
                                   {"switch_first_layer_ms", summary(measured.first_layer)},
                                   {"switch_last_layer_ms", summary(measured.last_layer)},
                                   {"frame_ms", summary(measured.frame)},
                                   {"frame_cpu_ms", summary(measured.frame_cpu)}};
  if (window.common.json) {
    std::cout << result.dump(2) << '\n';
    return;
  }
  std::cout << fmt::format("{:<22}{:>10}{:>10}{:>10}\n", "", "median", "p95", "max");
  for (const auto& [name, values] : result.items()) {
    const auto number = [&](const char* key) {
      return values[key].is_null() ? std::string("—") : fmt::format("{:.1f}", values[key].get<double>());
    };
    std::cout << fmt::format("{:<22}{:>10}{:>10}{:>10}\n", name, number("median"), number("p95"),
                             number("max"));
  }
}

} // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* bench = program.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  CLI::App* interact = bench->add_subcommand(
      "interact", "drive the window off screen: start-up, kernel switches, frames while a model runs");
  const auto options = std::make_shared<InteractOptions>();
  interact->add_option("FILE", options->window.files, "picture or text to open instead of the first example");
  interact->add_option("--text", options->window.text, "a sentence instead of a picture");
  interact->add_option("--repeats", options->repeats, "switches of each layer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_common_options(*interact, options->window.common);
  interact->callback([options] { run_interact(*options); });
}

} // namespace hydrascope::app
