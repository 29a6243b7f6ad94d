#include "app/document/layer_shape.h"

#include <algorithm>

namespace hydrascope::app {

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
