// hydrascope bench interact: what a user at the window has to wait for, measured on the window itself, off
// screen.
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "app/commands/bench_session.h"
#include "app/commands/command.h"
#include "app/document/edits.h"
#include "engine/base/error.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

struct InteractOptions {
  WindowOptions window;
  int repeats = 12;
};

// The selected layer's focus map of the document as it is now is on the screen.
bool fresh(BenchSession& session) {
  const SideResults& results = session.results();
  return !results.parts.empty() && !results.stale &&
         find(results, FocusKey{session.document().scene().layer});
}

// From the click to the end of the frame that shows the new focus map.
double switch_layer(BenchSession& session, int layer, int turn) {
  Editor& editor = session.application().editor();
  select_layer(editor, layer);
  session.until_settled();
  const auto start = std::chrono::steady_clock::now();
  set_layer_kernel(editor, layer, {.name = turn % 2 == 0 ? "hydra-cosine" : "softmax", .parameters = {}});
  session.frame();
  session.until([&] { return fresh(session); });
  const double taken = milliseconds_since(start);
  session.until_settled();
  return taken;
}

void run_interact(const InteractOptions& options) {
  WindowOptions window = options.window;
  window.hidden = true;
  BenchSession session(window);
  session.frame();
  const double first_frame = process_age_ms();
  session.until([&] { return fresh(session); });
  const double first_result = process_age_ms();
  session.until_settled();
  const ModelInfo* model = session.document().scene().model.get();
  if (model == nullptr) throw Error("bench interact", "no model could be opened", "run tools/setup");
  std::vector<double> first_layer, last_layer;
  for (int i = 0; i < options.repeats; ++i) {
    last_layer.push_back(switch_layer(session, model->layers - 1, i));
    first_layer.push_back(switch_layer(session, 0, i));
  }
  const nlohmann::ordered_json result = {{"first_frame_ms", summary_json({first_frame})},
                                         {"first_result_ms", summary_json({first_result})},
                                         {"switch_first_layer_ms", summary_json(first_layer)},
                                         {"switch_last_layer_ms", summary_json(last_layer)},
                                         {"frame_ms", summary_json(session.frames_ms())},
                                         {"frame_cpu_ms", summary_json(session.frames_cpu_ms())}};
  if (window.common.json) {
    std::cout << result.dump(2) << '\n';
  } else {
    print_summaries(result);
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
  add_bench_browse(*bench);
  add_bench_kernels(*bench);
  add_bench_model(*bench);
  add_bench_scaling(*bench);
  add_bench_heads(*bench);
}

} // namespace hydrascope::app
