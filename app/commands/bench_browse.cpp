// hydrascope bench browse: every head of every layer opened in the Weights panel, all of them at once, then
// one zoomed and panned; what it takes in time and memory.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <imgui.h>
#include <unistd.h>

#include "app/commands/bench_session.h"
#include "app/commands/command.h"
#include "app/document/edits.h"
#include "engine/base/error.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

using Clock = std::chrono::steady_clock;

// Resident set of this process.
double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// The weights of the selected layer are there under every kernel of the panel; of a long input, some tile.
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

// The Weights panel in front, nothing else that asks for much.
void show_weights(BenchSession& session) {
  Application& application = session.application();
  application.run("view.layout.text");
  for (int i = 0; i < 4; ++i) session.frame(); // until it is arranged
  if (!application.panel_rectangle("weights")) application.run("view.panel.weights");
  session.frame();
  session.until([&] { return weights_shown(session); });
}

// From the click to the end of the frame that shows it.
double open_head(BenchSession& session, int layer, int head) {
  const auto start = Clock::now();
  select_cell(session.application().editor(), layer, head);
  session.frame();
  session.until([&] { return weights_shown(session); });
  return milliseconds_since(start);
}

// The wheel in over the first map, a drag with the middle button around it, the wheel out.
void zoom_and_pan(BenchSession& session, std::vector<double>& total, std::vector<double>& cpu) {
  const auto panel = session.application().panel_rectangle("weights");
  if (!panel) throw Error("bench browse", "the Weights panel is not seen");
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
  WindowOptions window = options.window;
  window.hidden = true;
  BenchSession session(window);
  const ModelInfo* model = session.document().scene().model.get();
  if (model == nullptr) throw Error("bench browse", "no model could be opened", "run tools/setup");
  show_weights(session);
  const double one_layer = resident_mb();
  std::vector<double> opened, pan, pan_cpu;
  for (int layer = 0; layer < model->layers; ++layer) {
    for (int head = 0; head < model->heads; ++head) {
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
  const nlohmann::ordered_json result = {
      {"tokens", static_cast<double>(session.results().any()->tokens.size())},
      {"heads", static_cast<double>(model->layers) * model->heads},
      {"open_head_ms", summary_json(opened)},
      {"all_heads_ms", overview},
      {"pan_frame_ms", summary_json(pan)},
      {"pan_frame_cpu_ms", summary_json(pan_cpu)},
      {"frame_ms", summary_json(session.frames_ms())},
      {"frame_cpu_ms", summary_json(session.frames_cpu_ms())},
      {"resident_one_layer_mb", one_layer},
      {"resident_every_layer_mb", all_layers},
      {"resident_all_heads_mb", all_heads}};
  if (window.common.json) {
    std::cout << result.dump(2) << '\n';
  } else {
    print_summaries(result);
  }
}

} // namespace

void add_bench_browse(CLI::App& bench) {
  CLI::App* browse = bench.add_subcommand(
      "browse", "open every head of every layer in the window, off screen; zoom and pan one of them");
  const auto options = std::make_shared<BrowseOptions>();
  browse->add_option("FILE", options->window.files, "picture or text to open instead of the first example");
  browse->add_option("--text", options->window.text, "a sentence instead of a picture");
  browse->add_option("--heads", options->heads, "open at most so many (default: all)")
      ->check(CLI::PositiveNumber);
  add_common_options(*browse, options->window.common);
  browse->callback([options] { run_browse(*options); });
}

} // namespace hydrascope::app
