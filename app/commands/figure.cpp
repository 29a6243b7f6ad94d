// `figure KIND`: any view as a file, with the numbers it shows and where it comes from.
#include "app/commands/command.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/views/focus_view.h"
#include "app/views/provenance.h"
#include "app/views/table_views.h"
#include "app/views/weights_view.h"
#include "engine/figures/figure.h"
#include "engine/plain/error.h"
#include "engine/runtime/runner.h"

namespace hydrascope::app {
namespace {

struct FigureOptions {
  CommonOptions common;
  std::string kind, kernels, layer, head, image, text, pair, query, target, normalise = "max",
                                                                            interpolation = "nearest", output;
  bool with_pair = false, with_sign = false, own_scale = false, logarithmic = false, teacher_forced = false,
       value_weighted = false;
  float opacity = 0.6f;
  FigureStyle style;
};

int whole_number(std::string_view text, const char* option, int limit, const char* what) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0 || number >= limit) {
    throw UsageError(option, fmt::format("'{}' is not a {}", text, what),
                     fmt::format("use a number from 0 to {}", limit - 1));
  }
  return number;
}

ImageInput read_image(const std::string& file) {
  const std::filesystem::path path(file);
  return {std::make_shared<const Image>(load_image(path)), path.filename().string(), path};
}

RunInput input_of(const FigureOptions& options) {
  if (options.image.empty() == options.text.empty()) {
    throw UsageError("figure", options.image.empty() ? "there is no input" : "there are two inputs",
                     "give either --image FILE or --text SENTENCE");
  }
  if (!options.image.empty()) {
    if (options.with_pair)
      throw UsageError("--pair", "a picture has no second sentence", "use it with --text");
    return read_image(options.image);
  }
  return TextInput{options.text, options.with_pair ? std::optional(options.pair) : std::nullopt};
}

RunRequest request_of(const FigureOptions& options) {
  RunInput input = input_of(options);
  const bool image = std::holds_alternative<ImageInput>(input);
  RunRequest request = make_request(options.common, image ? InputKind::image : InputKind::text);
  request.input = std::move(input);
  if (!options.target.empty()) request.target = parse_target(options.target);
  if (!options.query.empty()) {
    request.default_query = false;
    if (options.query != "all") request.query = whole_number(options.query, "--query", 1 << 20, "token");
  }
  return request;
}

// The layers that the figure speaks of; "" is the last one.
std::vector<int> layers_of(const FigureOptions& options, int count) {
  if (options.layer.empty()) return {count - 1};
  if (options.layer != "all") return {whole_number(options.layer, "--layer", count, "layer of this model")};
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int layer = 0; layer < count; ++layer) all[static_cast<std::size_t>(layer)] = layer;
  return all;
}

int one_layer(const FigureOptions& options, int count) {
  const auto layers = layers_of(options, count);
  if (layers.size() > 1) {
    throw UsageError("--layer", "this figure shows one layer and not all", "give its number");
  }
  return layers.front();
}

// A figure, and the run that its provenance tells of.
struct Drawn {
  Figure figure;
  std::shared_ptr<const RunResult> run;
};

Drawn focus(const FigureOptions& options, RunRequest request, int layer_count) {
  const FocusOptions view{.normalise = parse_normalisation(options.normalise),
                          .with_sign = options.with_sign,
                          .opacity = options.opacity,
                          .interpolation = parse_interpolation(options.interpolation),
                          .photograph = options.layer != "all"};
  const ImageInput* const image = std::get_if<ImageInput>(&request.input);
  Runner runner;
  if (options.kernels.empty()) {
    request.asks.focus_layers = layers_of(options, layer_count);
    const auto run = runner.run(request);
    return {focus_figure(*run, image, request.asks.focus_layers, view), run};
  }
  const int layer = one_layer(options, layer_count);
  request.asks.focus_layers = {layer};
  std::vector<std::shared_ptr<const RunResult>> runs;
  std::vector<FocusItem> items;
  const auto written = request.schedule.layers;
  for (const auto& kernel : parse_kernel_list(options.kernels)) {
    request.schedule.layers = written;
    request.schedule.layers.push_back(fmt::format("{}={}", layer, kernel.text()));
    runs.push_back(runner.run(request));
    items.push_back({runs.back().get(), layer, kernel.text()});
  }
  // The predicted class, which the maps explain unless --target says otherwise, may change with the kernel.
  const std::string target = runs.front()->target;
  const bool one_target = std::ranges::all_of(runs, [&](const auto& run) { return run->target == target; });
  for (FocusItem& item : items) {
    if (!one_target) item.title += "\n" + item.run->target;
  }
  Drawn drawn{focus_figure(items, image, view), runs.front()};
  // The kernels stand above their panels; one run's schedule would be wrong for the others.
  if (items.size() > 1) {
    drawn.figure.subtitle =
        fmt::format("Focus map: each token's contribution to {}; kernels compared in layer {}",
                    one_target ? "the target (" + target + ")" : "the target named above it", layer);
  }
  return drawn;
}

// softmax and what the schedule runs there; for text also the kernels that the bundled text model has maps
// for.
std::vector<KernelSpec> default_kernels(const RunRequest& request, int layer, int layer_count) {
  std::vector<KernelSpec> kernels{KernelSpec{"softmax", {}}};
  if (std::holds_alternative<TextInput>(request.input)) {
    kernels.push_back({"hedgehog", {}});
    kernels.push_back({"elu", {}});
  }
  const auto own = parse_schedule(request.schedule, layer_count).layers.at(static_cast<std::size_t>(layer));
  if (std::find(kernels.begin(), kernels.end(), own) == kernels.end()) kernels.push_back(own);
  return kernels;
}

Drawn weights(const FigureOptions& options, RunRequest request, int layer_count) {
  const int layer = one_layer(options, layer_count);
  WeightsAsk ask;
  ask.layer = layer;
  ask.teacher_forced = options.teacher_forced;
  ask.value_weighted = options.value_weighted;
  ask.kernels = options.kernels.empty() ? default_kernels(request, layer, layer_count)
                                        : parse_kernel_list(options.kernels);
  if (request.query) ask.rows = {*request.query};
  request.asks.weights = {ask};
  WeightsOptions view;
  view.head = parse_head(options.head.empty() ? "mean" : options.head);
  view.shared_scale = !options.own_scale;
  view.logarithmic = options.logarithmic;
  view.value_weighted = options.value_weighted;
  const auto run = Runner().run(request);
  Figure figure = weights_figure(*run, layer, view);
  if (figure.panels.empty()) {
    throw UsageError("--head", "none of the kernels has " + view.head.text(), "heads are numbered from 0");
  }
  return {std::move(figure), run};
}

Drawn head_table(const FigureOptions& options, RunRequest request) {
  if (options.kernels.empty()) {
    request.asks.entropy = options.kind == "entropy";
    request.asks.kl = options.kind == "kl";
  } else {
    request.asks.teacher_forced_kernels = parse_kernel_list(options.kernels);
  }
  const auto run = Runner().run(request);
  return {head_table_figure(*run, options.kind), run};
}

Drawn timing(const RunRequest& request) {
  const auto run = Runner().run(request);
  return {timing_figure(*run), run};
}

void draw(const FigureOptions& options, const std::string& command_line) {
  check_figure_ending(options.output);
  const RunRequest request = request_of(options);
  const int layer_count = read_model_info(request.model_folder).layers;
  Drawn drawn = options.kind == "focus"     ? focus(options, request, layer_count)
                : options.kind == "weights" ? weights(options, request, layer_count)
                : options.kind == "timing"  ? timing(request)
                                            : head_table(options, request);
  if (drawn.figure.panels.empty()) {
    std::cerr << "note: this model and schedule have nothing to show as " << options.kind
              << "; no figure was written\n";
    return;
  }
  for (const auto& note : drawn.run->notes) std::cerr << "note: " << note << "\n";
  drawn.figure.provenance = provenance_json(*drawn.run, request.input, request.execution, command_line);
  write_figure(drawn.figure, options.output, options.style);
  if (options.common.json) {
    const auto provenance = nlohmann::ordered_json::parse(drawn.figure.provenance);
    std::cout << nlohmann::ordered_json{{"figure", options.output}, {"provenance", provenance}}.dump(1)
              << "\n";
  }
}

} // namespace

void add_figure_command(CLI::App& program, const std::string& command_line) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App* const command = program.add_subcommand(
      "figure", "write a view as a figure (svg, pdf, png) or as its numbers (csv, json, npy)");
  command->add_option("kind", options->kind, "focus, weights, entropy, kl or timing")
      ->required()
      ->check(CLI::IsMember({"focus", "weights", "entropy", "kl", "timing"}));
  add_common_options(*command, options->common);
  command->add_option("--image", options->image, "picture to look at");
  command->add_option("--text", options->text, "sentence to look at");
  command->add_option("--pair", options->pair, "second sentence of one input");
  command->add_option("--kernels", options->kernels, "kernels to compare, separated by commas");
  command->add_option("--layer", options->layer, "layer from 0, or all (default: the last)");
  command->add_option("--head", options->head, "head from 0, mean, min or max (weights; default: mean)");
  command->add_option("--query", options->query, "query token from 0 (0 = class token), or all");
  command->add_option("--target", options->target, "class:NAME, class:INDEX, similarity:TEXT or norm");
  command->add_option("--normalise", options->normalise, "focus: divide by max, l1, l2 or none")
      ->capture_default_str();
  command->add_flag("--signed", options->with_sign, "focus: negative contributions too");
  command
      ->add_option("--interpolation", options->interpolation,
                   "focus: between patches nearest, bilinear or bicubic (Catmull-Rom)")
      ->capture_default_str();
  command->add_option("--opacity", options->opacity, "focus: of the map over the picture")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("--own-scale", options->own_scale, "weights: each map has a scale of its own");
  command->add_flag("--log", options->logarithmic, "weights: logarithmic colours");
  command->add_flag("--teacher-forced", options->teacher_forced,
                    "weights: on the queries and keys of the softmax run");
  command->add_flag("--value-weighted", options->value_weighted,
                    "weights: ‖α v W_o‖, the length of what each lets through (Kobayashi et al. 2020)");
  command->add_option("--width-mm", options->style.width_mm, "width of the figure; 85 fits one column")
      ->capture_default_str();
  command->add_option("--font-points", options->style.font_points, "size of its text")->capture_default_str();
  command->add_option("--dpi", options->style.dpi, "resolution of a PNG")->capture_default_str();
  command->add_flag("--transparent", options->style.transparent, "no white ground");
  command->add_option("-o,--output", options->output, "file to write: .svg, .pdf, .png, .csv, .json or .npy")
      ->required();
  command->callback([options, command, command_line] {
    options->with_pair = command->count("--pair") > 0;
    draw(*options, command_line);
  });
}

} // namespace hydrascope::app
