// hydrascope run: one forward pass, with the gradient for focus maps.
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/commands/output.h"
#include "app/commands/run_output.h"
#include "app/document/capture_input.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/json_text.h"
#include "engine/base/safetensors.h"
#include "engine/base/text.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/recorded_output.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/token_loss.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"

namespace hydrascope::app {
namespace {

struct RunOptions {
  CommonOptions common;
  std::string image, output, tensors, target, query, head, mute, like;
  std::optional<std::string> text, pair;
  int layer = -1, deletion_steps = 0;
  bool value_weighted = false;
  double discard = 0;
};

int parse_number(const char* option, std::string_view text, const char* remedy) {
  if (const std::optional<int> number = whole_number(text)) return *number;
  throw UsageError(fmt::format("{} {}", option, text), "not understood", remedy);
}

RunInput read_input(const RunOptions& options) {
  if (options.image.empty() == !options.text.has_value())
    throw UsageError("run", "one input is needed, a picture or a text", "give --image FILE or --text TEXT");
  if (options.pair && !options.text)
    throw UsageError("--pair", "there is no first text to join it to", "give --text TEXT as well");
  if (options.text) return TextInput{*options.text, options.pair};
  const std::filesystem::path path = options.image;
  return ImageInput{std::make_shared<const Image>(load_image(path)), path.filename().string(), path};
}

// --head: a number, which is returned, or how rollout fuses the heads.
std::optional<int> read_head(const std::string& head, RolloutKey& rollout) {
  if (head.empty() || head == "mean") return std::nullopt;
  if (head == "min" || head == "max") {
    rollout.fusion = head == "min" ? HeadFusion::min : HeadFusion::max;
    return std::nullopt;
  }
  const int number = parse_number("--head", head, "use a number from 0, mean, min or max");
  rollout.heads = {number};
  return number;
}

QuantityKeys keys_of(const std::set<std::string>& tensors, const RunOptions& options, int layers) {
  QuantityKeys keys;
  if (tensors.contains("pixels")) keys.add(PixelsKey{});
  if (tensors.contains("logits")) keys.add(LogitsKey{});
  if (tensors.contains("hidden")) keys.add(HiddenStatesKey{});
  if (tensors.contains("loss")) keys.add(TokenLossKey{});
  for (const HeadQuantityInfo& quantity : head_quantity_infos())
    if (tensors.contains(quantity.name)) keys.add(HeadTableKey{quantity.name});
  for (int layer = 0; layer < layers; ++layer) {
    if (options.layer >= 0 && layer != options.layer) continue;
    if (tensors.contains("attention"))
      keys.add(WeightsKey{.layer = layer, .value_weighted = options.value_weighted});
    if (tensors.contains("focus")) keys.add(FocusKey{layer});
  }
  if (options.deletion_steps > 0)
    keys.add(DeletionKey{.layer = options.layer >= 0 ? options.layer : layers - 1,
                         .steps = options.deletion_steps,
                         .seed = options.common.execution.seed});
  return keys;
}

// --like: LAYER:HEAD. Whether the head exists is checked with the rest of the request.
HeadIndex parse_head_index(const std::string& text) {
  const std::size_t colon = text.find(':');
  const char* const remedy = "write LAYER:HEAD, as 3:0";
  if (colon == std::string::npos) throw UsageError("--like " + text, "not understood", remedy);
  return {parse_number("--like", text.substr(0, colon), remedy),
          parse_number("--like", text.substr(colon + 1), remedy)};
}

void write_tensors(const std::string& file, const std::vector<NamedArray>& tensors) {
  std::map<std::string, TensorView> views;
  for (const NamedArray& tensor : tensors)
    views[tensor.name] = {ElementType::f32, tensor.array.shape,
                          std::as_bytes(std::span(tensor.array.values))};
  write_safetensors(file, views);
}

void run_command(const RunOptions& options) {
  if (!options.tensors.empty() && options.output.empty())
    throw UsageError("--tensors", "there is no file to write them to", "give --output FILE");
  std::set<std::string> tensors;
  if (!options.tensors.empty())
    tensors = parse_run_tensors(options.tensors);
  else if (!options.output.empty())
    tensors.insert(run_tensor_names().begin(), run_tensor_names().end());

  const bool any_input = options.text || !options.image.empty();
  const bool capture = !options.common.capture.empty() ||
                       (!any_input && !options.common.model.empty() && capture_address(options.common.model));
  if (capture && any_input)
    throw UsageError("--capture", "has the input that it was recorded with", "leave out --image and --text");
  RunInput input;
  if (!capture) input = read_input(options);
  RunRequest request = make_request(options.common, options.text ? InputKind::text : InputKind::image);
  if (!options.target.empty()) request.target = parse_target(options.target);
  if (!options.query.empty()) {
    request.default_query = false;
    if (options.query != "all")
      request.query = parse_number("--query", options.query, "use a token from 0, or all");
  }
  RolloutKey rollout{.discard = options.discard};
  const std::optional<int> head = read_head(options.head, rollout);
  const ModelInfo model = read_model_info(request.model_folder);
  request.input = capture ? capture_input(model) : std::move(input);
  const int layers = model.layers;
  if (!options.mute.empty()) request.muted_heads = parse_muted_heads(options.mute, layers, model.heads);
  if (options.layer >= layers)
    throw UsageError(fmt::format("--layer {}", options.layer), fmt::format("the model has {} layers", layers),
                     fmt::format("use 0 to {}", layers - 1));
  request.quantities = keys_of(tensors, options, layers);
  if (tensors.contains("rollout")) request.quantities.add(std::move(rollout));
  if (capture) {
    // Without --tensors everything that there is.
    if (options.tensors.empty()) request.quantities = keys_of_model(request.quantities, model);
    request.quantities.add(RecordedOutputKey{});
  }
  if (!options.like.empty()) request.quantities.add(SimilarHeadsKey{parse_head_index(options.like)});

  const auto result = Runner().run(request);
  std::vector<std::string> notes;
  if (!options.output.empty()) write_tensors(options.output, run_tensors(*result, tensors, head, notes));
  print_notes(notes);
  if (options.common.json)
    std::cout << text_of_json(run_json(*result), 2) << '\n';
  else
    print_run(std::cout, *result);
}

} // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = program.add_subcommand(
      "run", "run a model once on a picture or a text, or kernels on recorded attention");
  command->add_option("CAPTURE", options->common.capture, "recorded attention, as --capture");
  command->add_option("--image", options->image, "picture file");
  command->add_option("--text", options->text, "text");
  command->add_option("--pair", options->pair, "second text, joined to the first as one input");
  command->add_option("--output", options->output, "safetensors file for the tensors");
  command->add_option("--tensors", options->tensors,
                      fmt::format("comma list of {} (default: all)", fmt::join(run_tensor_names(), ", ")));
  command->add_option("--target", options->target,
                      "what focus maps explain: class:NAME, class:INDEX, similarity:TEXT or norm "
                      "(default: the predicted class; without a classifier norm)");
  command->add_option(
      "--query", options->query,
      "query token of focus maps, or all (default: 0, or all where the target reads more than it)");
  command->add_option("--layer", options->layer, "attention and focus of this layer alone")
      ->check(non_negative_number());
  command->add_option("--head", options->head,
                      "n: attention and rollout of this head alone; mean, min, max: how rollout fuses heads");
  command->add_option("--discard", options->discard,
                      "rollout: share of the lowest weights of each row set to 0");
  command->add_option(
      "--mute", options->mute,
      "heads whose output does not count: LAYER:HEAD, or LAYER for all of its heads, as 3:0,3:5,7");
  command->add_option("--like", options->like,
                      "how far every head's weights lie from this head's, LAYER:HEAD");
  command
      ->add_option(
          "--deletion", options->deletion_steps,
          "steps of a deletion curve: the target while tokens are hidden in the order of the focus map "
          "of --layer (default: the last), in its reverse and in a random one")
      ->check(positive_number());
  command->add_flag("--value-weighted", options->value_weighted,
                    "attention as the lengths of what it lets through, ‖α v W_o‖ (Kobayashi et al. 2020)");
  add_common_options(*command, options->common);
  command->footer("Example: hydrascope run --image cat.jpg --replace back:2=hydra-cosine --json");
  command->callback([options] { run_command(*options); });
}

} // namespace hydrascope::app
