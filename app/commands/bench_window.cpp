// hydrascope bench interact: what a user of the window waits for; bench browse: time and memory of opening
// every head of every layer in the Weights panel, all of them at once, and of zooming and panning. Both drive
// the window itself, off screen.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/document/edits.h"
#include "app/shell/application.h"
#include "engine/base/error.h"
#include "engine/measure/quantiles.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Since the process was started (not since main), to a hundredth of a second, by the kernel's record.
double process_age_ms() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  double now = 0;
  uptime >> now;
  std::istringstream fields(text.substr(text.rfind(')') + 2)); // the name in parentheses may contain spaces
  std::string field;
  constexpr int start_time = 20; // field 22, counted from the one after the name
  for (int i = 0; i < start_time; ++i) fields >> field;
  const double started = std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return (now - started) * 1e3;
}

// {"median", "p95", "max"}; null without values.
ordered_json summary_json(std::vector<double> values) {
  if (values.empty()) return {{"median", nullptr}, {"p95", nullptr}, {"max", nullptr}};
  std::ranges::sort(values);
  return {{"median", quantile(values, 0.5)}, {"p95", quantile(values, 0.95)}, {"max", values.back()}};
}

// One line per entry: a summary's three numbers, or the one number.
void print_summaries(const ordered_json& result) {
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

void print_result(const ordered_json& result, bool json) {
  if (json)
    std::cout << result.dump(2) << '\n';
  else
    print_summaries(result);
}

// The window, drawn off screen: its loop, and how to wait for what it shows.
class BenchSession {
public:
  explicit BenchSession(WindowOptions options) : application_(hidden(std::move(options))) {}

  Application& application() { return application_; }
  const Document& document() { return application_.editor().document(); }
  const SideResults& results() { return application_.coordinator().results(Side::a); }

  // Throws Error if no model could be opened.
  const ModelInfo& model(const char* benchmark) {
    const ModelInfo* const model = document().scene().model.get();
    if (model == nullptr) throw Error(benchmark, "no model could be opened", "run tools/setup");
    return *model;
  }

  // Draws one frame and returns its time. Throws Error if the window shows an error.
  FrameTime timed_frame() {
    const FrameTime time = application_.frame();
    for (const Message& message : application_.editor().messages()) {
      if (message.severity == Severity::error) throw Error("bench", message.text);
    }
    return time;
  }

  // One turn of the window's loop without waiting. Its time counts if the model is running.
  void frame() {
    const bool computing = application_.coordinator().computing();
    const FrameTime time = timed_frame();
    if (!computing) return;
    frame_.push_back(time.total_ms);
    frame_cpu_.push_back(time.cpu_ms);
  }

  // Turns the loop, waiting as the window does, until `done`. Throws Error after five minutes.
  void until(const std::function<bool()>& done) {
    const auto start = Clock::now();
    while (!done()) {
      if (milliseconds_since(start) > 300e3)
        throw Error("bench", "no result within five minutes", "choose a smaller model or input");
      application_.wait(1.0);
      frame();
    }
  }

  void until_settled() {
    until([&] { return application_.settled(); });
  }

  const std::vector<double>& frames_ms() const { return frame_; }         // while the model ran
  const std::vector<double>& frames_cpu_ms() const { return frame_cpu_; } // … without OpenGL's part

private:
  static WindowOptions hidden(WindowOptions options) {
    options.hidden = true;
    return options;
  }

  Application application_;
  std::vector<double> frame_, frame_cpu_;
};

// ---- interact ----

struct InteractOptions {
  WindowOptions window;
  int repeats = 12;
};

// Whether the selected layer's focus map on screen is that of the current document; of a capture the map of
// its attention.
bool focus_is_current(BenchSession& session) {
  const SideResults& results = session.results();
  if (results.parts.empty() || results.stale) return false;
  const Scene& scene = session.document().scene();
  if (is_capture(scene))
    return find(results, AttentionRowKey{scene.layer, default_query(*scene.model->capture)}).result !=
           nullptr;
  return static_cast<bool>(find(results, FocusKey{scene.layer}));
}

// From the click to the end of the frame that shows the new focus map.
double switch_layer(BenchSession& session, int layer, int turn) {
  Editor& editor = session.application().editor();
  select_layer(editor, layer);
  session.until_settled();
  const auto start = std::chrono::steady_clock::now();
  set_layer_kernel(editor, layer, {.name = turn % 2 == 0 ? "hydra-cosine" : "softmax", .parameters = {}});
  session.frame();
  session.until([&] { return focus_is_current(session); });
  const double taken = milliseconds_since(start);
  session.until_settled();
  return taken;
}

// Opens the editor "Your kernel" on a map for the last layer, with the caret at its end.
void open_map_editor(BenchSession& session, int layer) {
  Application& application = session.application();
  select_layer(application.editor(), layer);
  offer_map(application.editor(), {"bench", "def phi(x):\n    return x * x * 1.5"});
  session.until([&] {
    return selected_kernel(session.document()).name == "phi" && application.panel_rectangle("own_kernel");
  });
  session.until_settled();
  const auto panel = application.panel_rectangle("own_kernel");
  if (!panel) throw Error("bench interact", "the panel Your kernel is not visible");
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const auto [left, top, width, height] = *panel;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((static_cast<float>(left) + static_cast<float>(width) * 0.5f) / density,
                      (static_cast<float>(top) + static_cast<float>(height) * 0.5f) / density);
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    session.frame();
  }
  for (const bool down : {true, false}) {
    io.AddKeyEvent(ImGuiMod_Ctrl, down);
    io.AddKeyEvent(ImGuiKey_End, down);
    session.frame();
  }
}

// From the key to the end of the frame that shows the new map's weights and their KL to softmax's.
double type_key(BenchSession& session, int turn) {
  session.until_settled();
  const KernelSpec before = selected_kernel(session.document());
  const auto start = Clock::now();
  ImGui::GetIO().AddInputCharacter(static_cast<unsigned>('1' + turn % 9));
  session.frame();
  session.until([&] {
    const KernelSpec now = selected_kernel(session.document());
    const SideResults& results = session.results();
    const auto has_weights = [&](const KernelSpec& kernel) {
      return !!find(results, WeightsKey{.layer = session.document().scene().layer, .kernel = kernel});
    };
    return now != before && !results.stale && has_weights(now) && has_weights(KernelSpec{});
  });
  return milliseconds_since(start);
}

void run_interact(const InteractOptions& options) {
  BenchSession session(options.window);
  if (session.document().scene().model && session.document().scene().model->capture)
    throw UsageError("bench interact", "waits for focus maps, which a capture does not have",
                     "use bench browse for captures");
  session.frame();
  const double first_frame = process_age_ms();
  session.until([&] { return focus_is_current(session); });
  const double first_result = process_age_ms();
  session.until_settled();
  const ModelInfo& model = session.model("bench interact");
  std::vector<double> first_layer, last_layer;
  for (int i = 0; i < options.repeats; ++i) {
    last_layer.push_back(switch_layer(session, model.layers - 1, i));
    first_layer.push_back(switch_layer(session, 0, i));
  }
  const auto keys_in = [&](int layer) {
    std::vector<double> taken;
    open_map_editor(session, layer);
    for (int i = 0; i < options.repeats; ++i) taken.push_back(type_key(session, i));
    return taken;
  };
  const std::vector<double> keys_last = keys_in(model.layers - 1), keys_first = keys_in(0);
  const ordered_json result = {{"first_frame_ms", summary_json({first_frame})},
                               {"first_result_ms", summary_json({first_result})},
                               {"switch_first_layer_ms", summary_json(first_layer)},
                               {"switch_last_layer_ms", summary_json(last_layer)},
                               {"key_first_layer_ms", summary_json(keys_first)},
                               {"key_last_layer_ms", summary_json(keys_last)},
                               {"frame_ms", summary_json(session.frames_ms())},
                               {"frame_cpu_ms", summary_json(session.frames_cpu_ms())}};
  print_result(result, options.window.common.json);
}

// ---- browse ----

// Resident set size of this process.
double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// Whether the store has the selected layer's weights under every kernel of the panel, or, of a long input, a
// tile.
bool weights_shown(BenchSession& session) {
  const Document& document = session.document();
  const SideResults& results = session.results();
  if (results.stale || results.parts.empty()) return false;
  const int layer = document.scene().layer;
  for (int i = 0; i < static_cast<int>(document.scene().comparison.size()); ++i) {
    const KernelSpec kernel = compared_kernel(document, i);
    const bool whole =
        !!find(results,
               WeightsKey{.layer = layer, .kernel = kernel, .teacher_forced = document.view.teacher_forced});
    const bool tiled = std::ranges::any_of(results.parts, [&](const auto& part) {
      return std::ranges::any_of(part->quantities.template all<TileKey>(), [&](const auto& tile) {
        return tile.key.layer == layer && tile.key.kernel == kernel;
      });
    });
    if (!whole && !tiled) return false;
  }
  return true;
}

// Brings the Weights panel to the front, in a layout whose other panels need little.
void show_weights(BenchSession& session) {
  Application& application = session.application();
  application.run("view.layout.text");
  for (int i = 0; i < 4; ++i) session.frame(); // the layout takes a few frames
  if (!application.panel_rectangle("weights")) application.run("view.panel.weights");
  session.frame();
  session.until([&] { return weights_shown(session); });
}

// From the click to the end of the frame that shows the weights.
double open_head(BenchSession& session, int layer, int head) {
  const auto start = Clock::now();
  select_cell(session.application().editor(), layer, head);
  session.frame();
  session.until([&] { return weights_shown(session); });
  return milliseconds_since(start);
}

// Over the first map: zooms in with the wheel, drags with the middle button to and fro, zooms out.
void zoom_and_pan(BenchSession& session, std::vector<double>& total, std::vector<double>& cpu) {
  const auto panel = session.application().panel_rectangle("weights");
  if (!panel) throw Error("bench browse", "the Weights panel is not visible");
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const auto [left, top, width, height] = *panel;
  const ImVec2 centre{static_cast<float>(left) / density + static_cast<float>(width) / density * 0.15f,
                      static_cast<float>(top) / density + static_cast<float>(height) / density * 0.6f};
  const auto frame = [&] {
    const FrameTime time = session.timed_frame();
    total.push_back(time.total_ms);
    cpu.push_back(time.cpu_ms);
  };
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(centre.x, centre.y);
  for (int i = 0; i < 10; ++i) {
    io.AddMouseWheelEvent(0, 1);
    frame();
  }
  io.AddMouseButtonEvent(ImGuiMouseButton_Middle, true);
  for (int i = 0; i < 120; ++i) {
    const float step = 3.0f * static_cast<float>(i < 60 ? i : 120 - i);
    io.AddMousePosEvent(centre.x - step, centre.y - step);
    frame();
  }
  io.AddMouseButtonEvent(ImGuiMouseButton_Middle, false);
  frame();
  for (int i = 0; i < 10; ++i) {
    io.AddMouseWheelEvent(0, -1);
    frame();
  }
}

struct BrowseOptions {
  WindowOptions window;
  int heads = std::numeric_limits<int>::max();
};

void run_browse(const BrowseOptions& options) {
  BenchSession session(options.window);
  const ModelInfo& model = session.model("bench browse");
  session.frame();
  const double first_frame = process_age_ms();
  show_weights(session);
  const double first_weights = process_age_ms();
  const double one_layer = resident_mb();
  std::vector<double> opened, pan, pan_cpu;
  for (int layer = 0; layer < model.layers; ++layer) {
    for (int head = 0; head < model.heads; ++head) {
      if (static_cast<int>(opened.size()) < options.heads) opened.push_back(open_head(session, layer, head));
    }
  }
  const double all_layers = resident_mb();
  zoom_and_pan(session, pan, pan_cpu);
  const auto start = Clock::now();
  change_view(session.application().editor(), "All heads", [](ViewOptions& view) { view.all_heads = true; });
  session.frame();
  session.until_settled();
  const double overview = milliseconds_since(start);
  const double all_heads = resident_mb();
  const ordered_json result = {{"tokens", static_cast<double>(session.results().any()->tokens.size())},
                               {"heads", static_cast<double>(model.layers) * model.heads},
                               {"first_frame_ms", summary_json({first_frame})},
                               {"first_weights_ms", summary_json({first_weights})},
                               {"open_head_ms", summary_json(opened)},
                               {"all_heads_ms", overview},
                               {"pan_frame_ms", summary_json(pan)},
                               {"pan_frame_cpu_ms", summary_json(pan_cpu)},
                               {"frame_ms", summary_json(session.frames_ms())},
                               {"frame_cpu_ms", summary_json(session.frames_cpu_ms())},
                               {"resident_one_layer_mb", one_layer},
                               {"resident_every_layer_mb", all_layers},
                               {"resident_all_heads_mb", all_heads}};
  print_result(result, options.window.common.json);
}

// ---- The commands ----

void add_input(CLI::App& command, WindowOptions& window) {
  command.add_option("FILE", window.files, "picture or text to open instead of the first example");
  command.add_option("--text", window.text, "a sentence instead of a picture");
}

} // namespace

void add_bench_interact(CLI::App& bench) {
  CLI::App* interact = bench.add_subcommand(
      "interact", "drive the window off screen: start-up, kernel switches, frames while a model runs");
  const auto options = std::make_shared<InteractOptions>();
  add_input(*interact, options->window);
  interact->add_option("--repeats", options->repeats, "switches of each layer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_common_options(*interact, options->window.common);
  interact->callback([options] { run_interact(*options); });
}

void add_bench_browse(CLI::App& bench) {
  CLI::App* browse = bench.add_subcommand(
      "browse", "open every head of every layer in the window, off screen; zoom and pan one of them");
  const auto options = std::make_shared<BrowseOptions>();
  add_input(*browse, options->window);
  browse->add_option("--heads", options->heads, "open at most so many (default: all)")
      ->check(CLI::PositiveNumber);
  add_common_options(*browse, options->window.common);
  browse->callback([options] { run_browse(*options); });
}

} // namespace hydrascope::app
