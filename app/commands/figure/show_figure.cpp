#include "app/commands/commands.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/document/edits.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"

namespace hydrascope::app {
namespace {

namespace fs = std::filesystem;

// The panel that shows a kind.
std::string panel_of(const std::string& kind) {
  static const std::map<std::string, std::string> others = {
      {"compare", "focus"}, {"attention", "focus"}, {"rollout", "focus"}, {"loss-strip", "loss"}};
  const auto other = others.find(kind);
  return other == others.end() ? kind : other->second;
}

FigureOptions options_of(const ShowFigure& figure) {
  FigureOptions options;
  std::vector<std::string> words = command_words(figure.command);
  words.insert(words.end(), {"-o", figure.file.string()});
  CLI::App program("", "hydrascope figure");
  add_figure_options(program, options);
  try {
    program.parse(std::vector<std::string>(
        words.rbegin(), words.rend() - 2)); // in reverse, without the program and the command
  } catch (const CLI::ParseError& error) {
    throw Error(figure.file.string(), std::string("its command is not understood: ") + error.what(),
                "use the version of Hydrascope that drew it");
  }
  options.with_pair = program.count("--pair") > 0;
  if (!options.image.empty() && !fs::exists(options.image)) {
    const fs::path beside = figure.file.parent_path() / fs::path(options.image).filename();
    if (fs::exists(beside)) options.image = beside.string();
  }
  return options;
}

ViewOptions view_of_options(const FigureOptions& options, ViewOptions view) {
  const bool two = (options.kind == "focus" || options.kind == "loss-strip") &&
                   options.kernels.find(',') != std::string::npos;
  view.shown = options.kind == "compare" || two ? Shown::all : Shown::a;
  view.maps = {options.kind == "attention" ? MapKind::attention
               : options.kind == "rollout" ? MapKind::rollout
                                           : MapKind::focus};
  view.discard = options.discard;
  view.with_sign = options.with_sign;
  view.look = map_look(options);
  view.logarithmic = options.logarithmic;
  view.percentile = view.percentile && !view.logarithmic;
  view.shared_scale = !options.own_scale;
  view.value_weighted = options.value_weighted;
  view.teacher_forced = options.teacher_forced;
  return view;
}

Scene scene_of(const FigureOptions& options, Scene scene) {
  const RunRequest request = request_of(options, input_of(options));
  ModelInfo model = read_model_info(request.model_folder);
  const int layers = model.layers, heads = model.heads;
  set_model(scene, request.model_folder, std::move(model));
  scene.input = request.input;
  scene.hidden_tokens.clear();
  scene.muted_heads.clear();
  scene.adapters = request.adapters;
  scene.schedules[0] = resolved(request.schedule, layers);
  scene.schedules[1] = parse_schedule({.kernel = options.against}, layers);
  scene.layer = layers_of(options, layers).back();
  const std::vector<KernelSpec> kernels =
      options.kernels.empty() ? std::vector<KernelSpec>() : parse_kernel_list(options.kernels);
  // Focus maps by kernel: the first two kernels become the layer's on sides A and B.
  if (options.kind == "focus" && !kernels.empty()) {
    for (std::size_t side = 0; side < std::min<std::size_t>(2, kernels.size()); ++side) {
      scene.schedules[side] = resolved(request.schedule, layers);
      scene.schedules[side].layers.at(static_cast<std::size_t>(scene.layer)) = kernels[side];
    }
  } else if (options.kind == "loss-strip" && !kernels.empty()) {
    for (std::size_t side = 0; side < std::min<std::size_t>(2, kernels.size()); ++side)
      scene.schedules[side].layers.assign(static_cast<std::size_t>(layers), kernels[side]);
  } else if (!kernels.empty()) {
    scene.comparison.assign(kernels.begin(), kernels.end());
    scene.detail_kernel = kernels.back();
  }
  scene.head = heads_of(options, heads).front();
  scene.default_query = request.default_query;
  scene.query = request.query;
  scene.key.reset();
  if (!options.key.empty()) scene.key = number_below(options.key, "--key", 1 << 20, "token");
  scene.target = request.target;
  return scene;
}

} // namespace

void show_figure(Editor& editor, const ShowFigure& figure) {
  try {
    const FigureOptions options = options_of(figure);
    if (!figure_kind(options.kind).of_one_input || (options.image.empty() && options.text.empty()))
      throw Error(figure.file.string(), "is of many inputs, and no view shows them all",
                  "hydrascope reproduce draws it again");
    const InputKind kind = options.text.empty() ? InputKind::image : InputKind::text;
    const Scene scene = scene_of(options, editor.document().scene_of(kind));
    const std::string panel = panel_of(options.kind);
    editor.change("Open figure " + figure.file.filename().string(), [&](Document& document) {
      document.kind = kind;
      document.scene_of(kind) = scene;
      document.folder.reset();
      document.view = view_of_options(options, document.view);
      const ExecutionOptions& execution = options.common.execution;
      document.execution.dtype = execution.dtype;
      document.execution.device = execution.device;
      document.execution.seed = execution.seed;
      document.execution.image_size =
          options.common.image_size > 0 ? std::optional(options.common.image_size) : std::nullopt;
      document.closed_panels.erase(panel);
    });
    editor.emit(BringToFront{panel});
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
  }
}

} // namespace hydrascope::app
