#include "app/document/document.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/last_token.h"

namespace hydrascope::app {

bool same_input(const RunInput& left, const RunInput& right) {
  if (left.index() != right.index()) return false;
  if (const auto* image = std::get_if<ImageInput>(&left)) {
    const auto& other = std::get<ImageInput>(right);
    return image->image == other.image && image->path == other.path;
  }
  const auto& text = std::get<TextInput>(left);
  const auto& other = std::get<TextInput>(right);
  return text.text == other.text && text.pair == other.pair;
}

bool Scene::operator==(const Scene& other) const {
  const bool inputs =
      input.has_value() == other.input.has_value() && (!input || same_input(*input, *other.input));
  const bool models = !model || !other.model || model->stamp == other.model->stamp; // of the same folder
  return inputs && models && hidden_tokens == other.hidden_tokens && muted_heads == other.muted_heads &&
         model_folder == other.model_folder && adapters == other.adapters && schedules == other.schedules &&
         layer == other.layer && head == other.head && default_query == other.default_query &&
         query == other.query && key == other.key && target == other.target &&
         comparison == other.comparison && detail_kernel == other.detail_kernel;
}

Side edited_side(const ViewOptions& view) { return view.shown == Shown::b ? Side::b : Side::a; }

Schedule& edited_schedule(Document& document) {
  return document.scene().schedules[static_cast<std::size_t>(edited_side(document.view))];
}

const Schedule& edited_schedule(const Document& document) {
  return document.scene().schedules[static_cast<std::size_t>(edited_side(document.view))];
}

std::string input_name(const RunInput& input) {
  if (const auto* image = std::get_if<ImageInput>(&input)) return image->name;
  return std::get<TextInput>(input).text;
}

void forget_tokens(Scene& scene) {
  scene.hidden_tokens.clear();
  scene.default_query = true;
  scene.query.reset();
  scene.key.reset();
}

void set_model(Scene& scene, std::filesystem::path folder, ModelInfo info) {
  const auto layers = static_cast<std::size_t>(std::max(info.layers, 0));
  for (Schedule& schedule : scene.schedules) {
    if (schedule.layers.size() != layers) schedule.layers.assign(layers, KernelSpec{});
  }
  if (scene.model_folder != folder) scene.adapters = {}; // they belong to their model
  scene.model_folder = std::move(folder);
  // The last layer stays the last: it is what is looked at, and replaced, first.
  const bool last = scene.model == nullptr || scene.layer >= scene.model->layers - 1;
  scene.layer = last ? info.layers - 1 : std::clamp(scene.layer, 0, std::max(info.layers - 1, 0));
  if (scene.head.head && *scene.head.head >= info.heads) scene.head.head = 0;
  std::erase_if(scene.head.subset, [&](int head) { return head >= info.heads; });
  std::erase_if(scene.muted_heads, [&](const HeadIndex& muted) {
    return muted.layer >= info.layers || muted.head >= info.heads;
  });
  scene.model = std::make_shared<const ModelInfo>(std::move(info));
  scene.target = {};
  forget_tokens(scene);
}

bool is_decoder(const Scene& scene) { return scene.model && scene.model->causal; }

std::int64_t row_query(const Scene& scene) {
  if (!scene.default_query && scene.query) return *scene.query;
  return is_decoder(scene) ? last_token : 0;
}

std::int64_t row_query(const Scene& scene, const RunResult& run) {
  return token_index(row_query(scene), std::ssize(run.tokens));
}

bool is_capture(const Scene& scene) { return scene.model && scene.model->capture; }

std::set<MapKind> shown_maps(const Document& document) {
  std::set<MapKind> maps = document.view.maps;
  if (is_capture(document.scene()) && maps.erase(MapKind::focus) > 0 && maps.empty())
    maps.insert(MapKind::attention);
  return maps;
}

void take_bundled_model(Scene& scene, InputKind kind) {
  try {
    const std::filesystem::path folder = resolve_model(bundled_model(kind));
    set_model(scene, folder, read_model_info(folder));
  } catch (const Error&) {
    return; // the window reports that there is no model
  }
}

KernelSpec compared_kernel(const Document& document, int position) {
  const Scene& scene = document.scene();
  const auto index = static_cast<std::size_t>(position);
  if (index < scene.comparison.size() && scene.comparison[index]) return *scene.comparison[index];
  if (position == 0) return KernelSpec{};
  const Schedule& schedule = edited_schedule(document);
  const auto layer = static_cast<std::size_t>(scene.layer);
  if (layer < schedule.layers.size() && !kernel_info(schedule.layers[layer]).exact_softmax) {
    return schedule.layers[layer];
  }
  return KernelSpec{.name = "hedgehog", .parameters = {}};
}

KernelSpec selected_kernel(const Document& document) {
  const Schedule& schedule = edited_schedule(document);
  const auto layer = static_cast<std::size_t>(document.scene().layer);
  return layer < schedule.layers.size() ? schedule.layers[layer] : KernelSpec{};
}

KernelSpec detail_kernel(const Document& document) {
  return document.scene().detail_kernel.value_or(selected_kernel(document));
}

std::string setup_key(const Scene& scene, Side side) {
  std::string key = scene.model_folder.string() + '\n' + (scene.model ? scene.model->stamp : "");
  key += scene.adapters.automatic ? "\nautomatic" : "\nexplicit";
  for (const auto& file : scene.adapters.files) key += "\n" + file.string();
  for (const KernelSpec& kernel : scene.schedules[static_cast<std::size_t>(side)].layers)
    key += "\n" + kernel.text();
  return key;
}

std::string execution_key(const ExecutionOptions& execution) {
  return fmt::format("{} {} {} {}", execution.device, execution.dtype, execution.image_size.value_or(0),
                     execution.seed);
}

LayerShape layer_shape(const Document& document, const RunResult* run) {
  LayerShape shape;
  shape.device = document.execution.device;
  shape.dtype = document.execution.dtype;
  const Scene& scene = document.scene();
  if (!scene.model) return shape;
  const ModelInfo& model = *scene.model;
  shape.heads = std::max(model.heads, 1);
  shape.head_width = model.width / shape.heads;
  shape.has_mask = model.input == InputKind::text && !scene.hidden_tokens.empty();
  shape.causal = model.causal;
  if (const auto& capture = model.capture) {
    shape.has_layer_input = false;
    shape.cross = capture->queries > 0;
    shape.tokens = capture->tokens;
    shape.prefix_tokens = capture->prefix;
    shape.rows = capture->rows;
    shape.columns = capture->columns;
    return shape;
  }
  if (run != nullptr && run->model.folder == model.folder && !run->tokens.empty()) {
    shape.tokens = static_cast<std::int64_t>(run->tokens.size());
    shape.prefix_tokens = run->prefix_tokens;
    shape.rows = run->rows;
    shape.columns = run->columns;
  } else if (model.input == InputKind::image) {
    const int side = document.execution.image_size.value_or(model.image_size) / std::max(model.patch_size, 1);
    shape.prefix_tokens = model.prefix_tokens;
    shape.rows = shape.columns = side;
    shape.tokens = shape.prefix_tokens + shape.rows * shape.columns;
  }
  return shape;
}

} // namespace hydrascope::app
