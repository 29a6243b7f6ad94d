#include "app/jobs/requests.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/run/memory_estimate.h"

namespace hydrascope::app {

namespace {

using Tokens = std::vector<std::int64_t>;

WeightsAsk* find_ask(std::vector<WeightsAsk>& asks, int layer, bool teacher_forced, const Tokens& rows,
                     bool value_weighted) {
  const auto found = std::ranges::find_if(asks, [&](const WeightsAsk& ask) {
    return ask.layer == layer && ask.teacher_forced == teacher_forced && ask.rows == rows &&
           ask.value_weighted == value_weighted;
  });
  return found == asks.end() ? nullptr : &*found;
}

bool holds(const std::vector<WeightsAsk>& asks, int layer, const KernelSpec& kernel, bool teacher_forced,
           const Tokens& rows, bool value_weighted) {
  return std::ranges::any_of(asks, [&](const WeightsAsk& ask) {
    return ask.layer == layer && ask.teacher_forced == teacher_forced &&
           ask.value_weighted == value_weighted && (ask.rows.empty() || ask.rows == rows) &&
           std::ranges::count(ask.kernels, kernel) > 0;
  });
}

std::string input_key(const RunInput& input) {
  if (const auto* image = std::get_if<ImageInput>(&input)) {
    return fmt::format("image {} {}", static_cast<const void*>(image->image.get()), image->path.string());
  }
  const auto& text = std::get<TextInput>(input);
  return fmt::format("text {}:{} {}", text.text.size(), text.text, text.pair.value_or("\x01"));
}

} // namespace

void add_focus(Asks& asks, int layer) {
  if (std::ranges::count(asks.focus_layers, layer) == 0) asks.focus_layers.push_back(layer);
}

void add_weights(Asks& asks, int layer, const KernelSpec& kernel, bool teacher_forced, const Tokens& rows,
                 bool value_weighted) {
  if (holds(asks.weights, layer, kernel, teacher_forced, rows, value_weighted)) return;
  WeightsAsk* ask = find_ask(asks.weights, layer, teacher_forced, rows, value_weighted);
  if (ask == nullptr) {
    asks.weights.push_back({.layer = layer,
                            .kernels = {},
                            .rows = rows,
                            .teacher_forced = teacher_forced,
                            .value_weighted = value_weighted});
    ask = &asks.weights.back();
  }
  ask->kernels.push_back(kernel);
}

VectorsAsk queries_and_keys(const Document& document) {
  VectorsAsk ask;
  ask.layer = document.scene().layer;
  ask.kernels = {KernelSpec{}};
  ask.teacher_forced = document.view.teacher_forced;
  return ask;
}

void add_vectors(Asks& asks, const VectorsAsk& ask) {
  if (std::ranges::count(asks.vectors, ask) == 0) asks.vectors.push_back(ask);
}

void add_attention_row(Asks& asks, const AttentionRowAsk& ask) {
  if (std::ranges::count(asks.attention_rows, ask) == 0) asks.attention_rows.push_back(ask);
}

void add_tile(Asks& asks, const TileAsk& ask) {
  if (std::ranges::count(asks.tiles, ask) == 0) asks.tiles.push_back(ask);
}

void add_head_table(Asks& asks, const HeadTableAsk& ask) {
  if (std::ranges::count(asks.head_tables, ask) == 0) asks.head_tables.push_back(ask);
}

void add_asks(Asks& to, const Asks& more) {
  to.pixels |= more.pixels;
  to.hidden |= more.hidden;
  if (more.rollout) to.rollout = more.rollout;
  for (const int layer : more.focus_layers) add_focus(to, layer);
  for (const WeightsAsk& ask : more.weights) {
    for (const KernelSpec& kernel : ask.kernels)
      add_weights(to, ask.layer, kernel, ask.teacher_forced, ask.rows, ask.value_weighted);
  }
  for (const AttentionRowAsk& ask : more.attention_rows) add_attention_row(to, ask);
  for (const VectorsAsk& ask : more.vectors) add_vectors(to, ask);
  for (const TileAsk& ask : more.tiles) add_tile(to, ask);
  for (const HeadTableAsk& ask : more.head_tables) add_head_table(to, ask);
  if (more.similar_heads) to.similar_heads = more.similar_heads;
  if (more.deletion) to.deletion = more.deletion;
}

Asks missing_asks(const Asks& wanted, const Asks& delivered) {
  Asks missing;
  missing.pixels = wanted.pixels && !delivered.pixels;
  missing.hidden = wanted.hidden && !delivered.hidden;
  if (wanted.rollout != delivered.rollout) missing.rollout = wanted.rollout;
  for (const int layer : wanted.focus_layers) {
    if (std::ranges::count(delivered.focus_layers, layer) == 0) add_focus(missing, layer);
  }
  for (const WeightsAsk& ask : wanted.weights) {
    for (const KernelSpec& kernel : ask.kernels) {
      if (!holds(delivered.weights, ask.layer, kernel, ask.teacher_forced, ask.rows, ask.value_weighted)) {
        add_weights(missing, ask.layer, kernel, ask.teacher_forced, ask.rows, ask.value_weighted);
      }
    }
  }
  for (const AttentionRowAsk& ask : wanted.attention_rows)
    if (std::ranges::count(delivered.attention_rows, ask) == 0) add_attention_row(missing, ask);
  for (const VectorsAsk& ask : wanted.vectors)
    if (std::ranges::count(delivered.vectors, ask) == 0) add_vectors(missing, ask);
  for (const TileAsk& ask : wanted.tiles)
    if (std::ranges::count(delivered.tiles, ask) == 0) add_tile(missing, ask);
  for (const HeadTableAsk& ask : wanted.head_tables)
    if (std::ranges::count(delivered.head_tables, ask) == 0) add_head_table(missing, ask);
  if (wanted.similar_heads != delivered.similar_heads) missing.similar_heads = wanted.similar_heads;
  if (wanted.deletion != delivered.deletion) missing.deletion = wanted.deletion;
  return missing;
}

Asks compared_asks(const Asks& asks, const Schedule& schedule) {
  const auto own = [&](int layer, const KernelSpec& kernel) {
    return kernel == schedule.layers.at(static_cast<std::size_t>(layer));
  };
  Asks compared;
  for (const WeightsAsk& ask : asks.weights) {
    for (const KernelSpec& kernel : ask.kernels) {
      if (!own(ask.layer, kernel))
        add_weights(compared, ask.layer, kernel, ask.teacher_forced, ask.rows, ask.value_weighted);
    }
  }
  for (const VectorsAsk& ask : asks.vectors) {
    if (std::ranges::any_of(ask.kernels, [&](const KernelSpec& kernel) { return !own(ask.layer, kernel); }))
      add_vectors(compared, ask);
  }
  for (const TileAsk& ask : asks.tiles) {
    if (!own(ask.layer, ask.kernel)) add_tile(compared, ask);
  }
  for (const HeadTableAsk& ask : asks.head_tables)
    if (ask.kernel) add_head_table(compared, ask);
  return compared;
}

bool any_ask(const Asks& asks) {
  return asks.pixels || asks.hidden || asks.rollout.has_value() || !asks.head_tables.empty() ||
         !asks.focus_layers.empty() || !asks.weights.empty() || !asks.vectors.empty() ||
         !asks.attention_rows.empty() || !asks.tiles.empty() || asks.similar_heads || asks.deletion;
}

bool can_run(const Document& document) {
  const Scene& scene = document.scene();
  if (!scene.input || scene.model == nullptr) return false;
  const auto* text = std::get_if<TextInput>(&*scene.input);
  return text == nullptr || text->text.find_first_not_of(" \t\n") != std::string::npos;
}

std::int64_t expected_tokens(const Document& document) {
  const ModelInfo& model = *document.scene().model;
  if (model.input == InputKind::text) return model.max_tokens;
  const std::int64_t side =
      document.execution.image_size.value_or(model.image_size) / std::max(model.patch_size, 1);
  return side * side + model.prefix_tokens;
}

double expected_bytes(const Document& document, const Wants& wants) {
  if (!can_run(document)) return 0;
  // The two run one after the other.
  const ModelInfo& model = *document.scene().model;
  const std::int64_t tokens = expected_tokens(document);
  return std::max(estimated_bytes(wants.first, model, tokens), estimated_bytes(wants.then, model, tokens));
}

std::string setup_key(const Scene& scene, Side side) {
  std::string key = scene.model_folder.string() + (scene.adapters.automatic ? "\nautomatic" : "\nexplicit");
  for (const auto& file : scene.adapters.files) key += "\n" + file.string();
  for (const KernelSpec& kernel : scene.schedules[static_cast<std::size_t>(side)].layers)
    key += "\n" + kernel.text();
  return key;
}

std::string request_key(const Document& document, Side side) {
  const Scene& scene = document.scene();
  std::string key = setup_key(scene, side);
  key += fmt::format("\n{}\n", scene.input ? input_key(*scene.input) : "");
  key += fmt::format("without {}\n", fmt::join(scene.hidden_tokens, ","));
  for (const HeadIndex& muted : scene.muted_heads)
    key += fmt::format("mute {}:{}\n", muted.layer, muted.head);
  key += fmt::format("\ntarget {} {} {}\nquery {} {}\n", static_cast<int>(scene.target.kind),
                     scene.target.index, scene.target.text, scene.default_query, scene.query.value_or(-1));
  const ExecutionOptions& execution = document.execution;
  key += fmt::format("{} {} {} {}", execution.device, execution.dtype, execution.image_size.value_or(0),
                     execution.seed);
  return key;
}

std::string subject_key(const Document& document) {
  return fmt::format("{} {}", document.kind == InputKind::image ? "image" : "text",
                     document.scene().model ? document.scene().model_folder.string() : "");
}

RunRequest make_run_request(const Document& document, Side side, const Asks& asks, std::uint64_t generation) {
  if (!can_run(document))
    throw Error("window", "there is no input or no model", "open a picture or a sentence");
  const Scene& scene = document.scene();
  RunRequest request;
  request.generation = generation;
  request.model_folder = scene.model_folder;
  request.adapters = scene.adapters;
  request.input = *scene.input;
  request.hidden_tokens = scene.hidden_tokens;
  request.muted_heads = scene.muted_heads;
  request.schedule = schedule_text(scene.schedules[static_cast<std::size_t>(side)]);
  request.target = scene.target;
  request.default_query = scene.default_query;
  request.query = scene.query;
  request.asks = asks;
  request.execution = document.execution;
  return request;
}

RunRequest folder_request(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  RunRequest request;
  request.model_folder = scene.model_folder;
  request.adapters = scene.adapters;
  request.schedule = schedule_text(scene.schedules[static_cast<std::size_t>(Side::a)]);
  request.execution = document.execution;
  return request;
}

} // namespace hydrascope::app
