#include "app/commands/figure/options.h"

#include <numeric>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/option_checks.h"
#include "app/document/capture_input.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope::app {
namespace {

void add_input_options(CLI::App& command, FigureOptions& options) {
  command.add_option("--image", options.image, "picture to look at");
  command.add_option("--text", options.text, "sentence to look at");
  command.add_option("--pair", options.pair, "second sentence of one input");
  command
      .add_option("--images", options.images,
                  "many pictures: a quoted pattern as 'folder/*.jpg', a folder, or a file (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--texts", options.texts, "many sentences: a file with one a line (tab: a pair)");
  command.add_option("--session", options.session, "every open panel of a session; -o names a folder then");
  command.add_option("--layer", options.layer, "layer from 0, several as 0,5,11, or all (default: the last)");
  command.add_option("--head", options.head,
                     "head from 0, mean, min or max, for weights several as 0,1,mean or all (default: mean)");
  command
      .add_option("--discard", options.discard, "rollout: share of the lowest weights of each row set to 0")
      ->capture_default_str();
  command.add_option("--query", options.query,
                     "query token from 0 (0 = class token; decoders: the last one by default), or all");
  command.add_option("--key", options.key, "vectors: the other token of the pair (default: the query)");
  command.add_option("--target", options.target,
                     "class:NAME, class:INDEX, similarity:TEXT or norm (half the squared norm of the "
                     "mean-pooled embedding)");
}

void add_view_options(CLI::App& command, FigureOptions& options) {
  command.add_option("--kernels", options.kernels, "kernels to compare, separated by commas");
  command.add_option("--against", options.against, "compare: the kernel of all layers of the other side")
      ->capture_default_str();
  command.add_option("--normalise", options.normalise, "focus: divide by max, l1, l2 or none")
      ->capture_default_str();
  command.add_flag("--signed", options.with_sign, "focus: negative contributions too");
  command
      .add_option("--interpolation", options.interpolation,
                  "focus: between patches nearest, bilinear or bicubic (Catmull-Rom)")
      ->capture_default_str();
  // What figures of the first version name in their metadata.
  command.add_flag_callback("--smooth", [&options] { options.interpolation = "bilinear"; })->group("");
  command
      .add_option("--overlay", options.overlay,
                  "focus: value (opacity grows with the value) or dimmed (even opacity)")
      ->capture_default_str();
  command.add_option("--opacity", options.opacity, "focus: of the map over the picture, at most")
      ->check(number_within(0.0, 1.0))
      ->capture_default_str();
  command.add_flag("--own-scale", options.own_scale,
                   "weights: each map, or row of maps, has a scale of its own");
  command.add_flag("--log", options.logarithmic, "weights, monotonicity: logarithmic");
  command.add_flag("--teacher-forced", options.teacher_forced,
                   "weights, tokens, vectors, monotonicity: on the queries and keys of the softmax run");
  command.add_flag("--value-weighted", options.value_weighted,
                   "weights: ‖α v W_o‖, the length of what each lets through (Kobayashi et al. 2020)");
}

void add_study_options(CLI::App& command, FigureOptions& options) {
  add_data_options(command, options.data);
  command
      .add_option("--lengths", options.lengths,
                  "table, entropy, kl on --data: tokens of the pieces, as kl's; scaling: N, as 256,1024; "
                  "state: tokens before those that are timed")
      ->delimiter(',')
      ->check(positive_number());
  command.add_flag("--joined", options.joined, "table: as kl's");
  command.add_option("--counts", options.counts, "heads: numbers of heads; strategies: replaced layers")
      ->delimiter(',')
      ->check(non_negative_number());
  command.add_flag("--untrained", options.untrained,
                   "heads, strategies: no adapter at any point but the model's own classifier");
  command.add_option("--trained", options.trained,
                     "heads, strategies: a folder of adapters, each applied where its layers and kernels are "
                     "exactly the point's (default: the bundled ones)");
  command
      .add_option("--measure", options.measure,
                  "heads, strategies: similarity to softmax, or accuracy on --data, a folder of classes")
      ->check(CLI::IsMember({"similarity", "accuracy"}))
      ->capture_default_str();
  command.add_option("--only", options.only, "sheet: right or wrong predictions alone")
      ->check(CLI::IsMember({"right", "wrong"}));
  command.add_option("--columns", options.columns, "sheet: pictures in a row")->check(positive_number());
}

void add_paper_options(CLI::App& command, FigureOptions& options) {
  command.add_option("--preset", options.preset,
                     "single (85 mm, 7 pt) or double (170 mm, 8 pt) column of a paper, or slide");
  command.add_option("--width-mm", options.style.width_mm, "width of the figure; 85 fits one column")
      ->capture_default_str();
  command.add_option("--font-points", options.style.font_points, "size of its text")->capture_default_str();
  command.add_option("--dpi", options.style.dpi, "resolution of a PNG")->capture_default_str();
  command.add_option("--theme", options.theme, "light (white ground) or dark, as the window's themes")
      ->check(CLI::IsMember({"light", "dark"}))
      ->capture_default_str();
  command.add_flag("--transparent", options.style.transparent, "no ground");
  command
      .add_option(
          "-o,--output", options.output,
          "file to write: .svg, .pdf, .png, .csv, .json, .npy, for tables .tex or .md; with many inputs "
          "{stem}, {folder}, {line}, {index} and {kernel} stand for what differs")
      ->required();
}

} // namespace

void add_figure_options(CLI::App& command, FigureOptions& options) {
  std::vector<std::string> names;
  for (const FigureKind& kind : figure_kinds()) names.emplace_back(kind.name);
  command.add_option("kind", options.kind, fmt::format("{}", fmt::join(names, ", ")))
      ->check([](const std::string& name) {
        try {
          figure_kind(name);
          return std::string();
        } catch (const UsageError& error) {
          return std::string(error.what());
        }
      });
  command.add_option("captures", options.captures,
                     "recorded attention, as --capture; several, or a folder of them: as --images");
  add_common_options(command, options.common);
  add_input_options(command, options);
  add_view_options(command, options);
  add_study_options(command, options);
  add_paper_options(command, options);
}

int number_below(std::string_view text, const char* option, int limit, const char* what) {
  const std::optional<int> number = whole_number(text);
  if (!number || *number >= limit)
    throw UsageError(option, fmt::format("'{}' is not a {}", text, what),
                     fmt::format("use a number from 0 to {}", limit - 1));
  return *number;
}

std::vector<int> layers_of(const FigureOptions& options, int count) {
  if (options.layer.empty()) return {count - 1};
  std::vector<int> layers;
  if (options.layer == "all") {
    layers.resize(static_cast<std::size_t>(count));
    std::iota(layers.begin(), layers.end(), 0);
    return layers;
  }
  for (const std::string_view item : split(options.layer, ','))
    layers.push_back(number_below(item, "--layer", count, "layer of this model"));
  return layers;
}

int one_layer(const FigureOptions& options, int count) {
  const auto layers = layers_of(options, count);
  if (layers.size() > 1) throw UsageError("--layer", "this figure shows one layer", "give its number");
  return layers.front();
}

std::vector<HeadChoice> heads_of(const FigureOptions& options, int count) {
  std::vector<HeadChoice> heads;
  if (options.head == "all") {
    for (int head = 0; head < count; ++head) heads.push_back({.head = head, .fusion = HeadFusion::mean});
    return heads;
  }
  const std::string list = options.head.empty() ? "mean" : options.head;
  for (const std::string_view item : split(list, ',')) heads.push_back(parse_head(item));
  return heads;
}

HeadChoice one_head(const FigureOptions& options) {
  return parse_head(options.head.empty() ? "mean" : options.head);
}

ImageInput read_image(const std::filesystem::path& file) {
  return {std::make_shared<const Image>(load_image(file)), file.filename().string(), file};
}

RunInput input_of(const FigureOptions& options) {
  const std::string& named = options.common.capture.empty() ? options.common.model : options.common.capture;
  if (!named.empty() && capture_address(named)) {
    if (!options.image.empty() || !options.text.empty())
      throw UsageError("figure " + options.kind, "a capture has the input that it was recorded with",
                       "leave out --image and --text");
    return capture_input(read_model_info(model_folder(options.common, InputKind::text)));
  }
  if (options.image.empty() == options.text.empty()) {
    throw UsageError("figure " + options.kind,
                     options.image.empty() ? "there is no input" : "there are two inputs",
                     "give --image FILE, --text SENTENCE or a capture");
  }
  if (options.image.empty())
    return TextInput{options.text, options.with_pair ? std::optional(options.pair) : std::nullopt};
  if (options.with_pair) throw UsageError("--pair", "a picture has no second sentence", "use it with --text");
  return read_image(options.image);
}

MapLook map_look(const FigureOptions& options) {
  return {.mode = parse_overlay(options.overlay),
          .opacity = options.opacity,
          .interpolation = parse_interpolation(options.interpolation)};
}

CommonOptions model_options(const FigureOptions& options) {
  CommonOptions common = options.common;
  if ((options.kind == "loss-strip" || options.kind == "state") && common.model.empty() &&
      common.capture.empty())
    common.model = "smollm2";
  return common;
}

RunRequest request_of(const FigureOptions& options, RunInput input) {
  const bool image = std::holds_alternative<ImageInput>(input);
  RunRequest request = make_request(model_options(options), image ? InputKind::image : InputKind::text);
  request.input = std::move(input);
  if (!options.target.empty()) request.target = parse_target(options.target);
  if (!options.query.empty()) {
    request.default_query = false;
    if (options.query != "all") request.query = number_below(options.query, "--query", 1 << 20, "token");
  }
  return request;
}

} // namespace hydrascope::app
