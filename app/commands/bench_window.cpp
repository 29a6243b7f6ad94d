// hydrascope bench interact: what a user of the window waits for; bench browse: time and memory of opening
// every head of every layer in the Weights panel, all of them at once, and of zooming and panning. Both drive
// the window itself, off screen.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <imgui.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/bench_session.h"
#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/document/edits.h"
#include "app/shell/application.h"
#include "engine/base/error.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

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

// Milliseconds.
struct Switch {
  double taken = 0; // from the click to the end of the frame that shows the new focus map
  double run = 0;   // of the run within; the window draws meanwhile
  FrameTime shown;  // of that last frame
};

Switch switch_layer(BenchSession& session, int layer, int turn) {
  Editor& editor = session.application().editor();
  select_layer(editor, layer);
  session.until_settled();
  const auto start = std::chrono::steady_clock::now();
  set_layer_kernel(editor, layer, {.name = turn % 2 == 0 ? "hydra-cosine" : "softmax", .parameters = {}});
  session.frame();
  session.until([&] { return focus_is_current(session); });
  const Switch found{.taken = milliseconds_since(start),
                     .run = 1e3 * session.results().parts.front()->seconds,
                     .shown = session.last_frame()};
  session.until_settled();
  return found;
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

double layers_ms(const RunResult& run) {
  double sum = 0;
  for (const LayerRun& layer : run.layers) sum += 1e3 * layer.seconds;
  return sum;
}

void run_interact(const InteractOptions& options) {
  const double started = process_age_ms(); // libraries are loaded, their constructors have run
  BenchSession session(options.window);
  const double opened = process_age_ms();
  if (session.document().scene().model && session.document().scene().model->capture)
    throw UsageError("bench interact", "waits for focus maps, which a capture does not have",
                     "use bench browse for captures");
  const StartTimes start = session.application().start_times();
  const FrameTime first_frame_time = session.timed_frame();
  const double first_frame = process_age_ms();
  session.until([&] { return focus_is_current(session); });
  const double first_result = process_age_ms();
  const RunResult& run = *session.results().parts.front(); // with what was loaded for it
  const double first_run = 1e3 * run.seconds, first_preparing = 1e3 * run.preparing_seconds,
               first_layers = layers_ms(run);
  session.until_settled();
  const ModelInfo& model = session.model("bench interact");
  std::vector<Switch> first_layer, last_layer;
  for (int i = 0; i < options.repeats; ++i) {
    last_layer.push_back(switch_layer(session, model.layers - 1, i));
    first_layer.push_back(switch_layer(session, 0, i));
  }
  const auto summary_of = [](const std::vector<Switch>& switches, const auto& time) {
    std::vector<double> times;
    for (const Switch& one : switches) times.push_back(time(one));
    return summary_json(std::move(times));
  };
  const auto whole = [](const Switch& one) { return one.taken; };
  const auto keys_in = [&](int layer) {
    std::vector<double> taken;
    open_map_editor(session, layer);
    for (int i = 0; i < options.repeats; ++i) taken.push_back(type_key(session, i));
    return taken;
  };
  const std::vector<double> keys_last = keys_in(model.layers - 1), keys_first = keys_in(0);
  const ordered_json result = {
      {"started_ms", summary_json({started})},
      {"opened_ms", summary_json({opened})},
      {"display_ms", summary_json({start.display_ms})},
      {"graphics_ms", summary_json({start.graphics_ms})},
      {"first_frame_ms", summary_json({first_frame})},
      {"first_frame_cpu_ms", summary_json({first_frame_time.cpu_ms})},
      {"first_frame_total_ms", summary_json({first_frame_time.total_ms})},
      {"first_result_ms", summary_json({first_result})},
      {"first_run_ms", summary_json({first_run})},
      {"first_run_preparing_ms", summary_json({first_preparing})},
      {"first_run_layers_ms", summary_json({first_layers})},
      {"switch_first_layer_ms", summary_of(first_layer, whole)},
      {"switch_last_layer_ms", summary_of(last_layer, whole)},
      {"switch_last_run_ms", summary_of(last_layer, [](const Switch& one) { return one.run; })},
      {"switch_last_frame_ms", summary_of(last_layer, [](const Switch& one) { return one.shown.total_ms; })},
      {"switch_last_frame_cpu_ms",
       summary_of(last_layer, [](const Switch& one) { return one.shown.cpu_ms; })},
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
      ->check(positive_number())
      ->capture_default_str();
  add_common_options(*interact, options->window.common, CaptureUse::refused);
  interact->callback([options] { run_interact(*options); });
}

void add_bench_browse(CLI::App& bench) {
  CLI::App* browse = bench.add_subcommand(
      "browse", "open every head of every layer in the window, off screen; zoom and pan one of them");
  const auto options = std::make_shared<BrowseOptions>();
  add_input(*browse, options->window);
  browse->add_option("--heads", options->heads, "open at most so many (default: all)")
      ->check(positive_number());
  add_common_options(*browse, options->window.common);
  browse->callback([options] { run_browse(*options); });
}

} // namespace hydrascope::app
