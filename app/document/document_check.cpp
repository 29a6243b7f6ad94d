#include "app/document/document_check.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

template <typename T>
bool ascending(const std::vector<T>& values) {
  return std::ranges::adjacent_find(values, std::greater_equal{}) == values.end();
}

// A scene needs a model to show anything: the bundled one stands in for one that is missing.
void stand_in(Scene& scene, InputKind kind, const std::string& at, Reading& reading) {
  if (scene.model && scene.model->input != kind) {
    reading.note(at + "/model", scene.model->name + " takes another kind of input");
    scene.model.reset();
  }
  if (!scene.model) take_bundled_model(scene, kind);
}

// What was chosen has to be there: layers, heads and tokens of this model.
void fit(Scene& scene, const std::string& at, Reading& reading) {
  if (!scene.model) return;
  const ModelInfo& model = *scene.model;
  for (std::size_t side = 0; side < scene.schedules.size(); ++side) {
    auto& layers = scene.schedules[side].layers;
    const std::size_t had = layers.size();
    if (had == static_cast<std::size_t>(model.layers)) continue;
    layers.assign(static_cast<std::size_t>(model.layers), KernelSpec{});
    if (had > 0)
      reading.note(fmt::format("{}/schedules/{}", at, side),
                   fmt::format("has {} layers, {} has {}; all are softmax", had, model.name, model.layers));
  }
  if (scene.layer >= model.layers) {
    reading.note(at + "/layer", fmt::format("{} has no layer {}", model.name, scene.layer));
    scene.layer = model.layers - 1;
  }
  const auto no_head = [&](int head) { return head < 0 || head >= model.heads; };
  if (scene.head.head && no_head(*scene.head.head)) {
    reading.note(at + "/head", fmt::format("{} has no head {}", model.name, *scene.head.head));
    scene.head.head = 0;
  }
  std::ranges::sort(scene.head.subset);
  if (std::erase_if(scene.head.subset, no_head) > 0)
    reading.note(at + "/head/subset", "names heads that " + model.name + " has not");
  const auto no_such_head = [&](const HeadIndex& index) {
    return index.layer < 0 || index.layer >= model.layers || no_head(index.head);
  };
  if (std::erase_if(scene.muted_heads, no_such_head) > 0)
    reading.note(at + "/muted_heads", "names heads that " + model.name + " has not");
  if (scene.comparison.empty()) scene.comparison = {std::nullopt, std::nullopt};
}

void check_tokens(Document& document, InputKind kind, const std::string& at, Reading& reading) {
  Scene& scene = document.scene_of(kind);
  if (!ascending(scene.hidden_tokens)) reading.fail(at + "/hidden_tokens", "is not in ascending order");
  if (!ascending(scene.muted_heads)) reading.fail(at + "/muted_heads", "is not in ascending order");
  const auto negative = [](const std::optional<std::int64_t>& token) { return token && *token < 0; };
  if (negative(scene.query)) reading.fail(at + "/query", "is below 0");
  if (negative(scene.key)) reading.fail(at + "/key", "is below 0");
  if (!scene.hidden_tokens.empty() && scene.hidden_tokens.front() < 0)
    reading.fail(at + "/hidden_tokens", "holds a number below 0");
  if (!scene.input) {
    scene.hidden_tokens.clear();
    scene.default_query = true;
    scene.query.reset();
    scene.key.reset();
  }
}

} // namespace

void take_bundled_model(Scene& scene, InputKind kind) {
  try {
    const std::filesystem::path folder = resolve_model(kind == InputKind::image ? "vit-small" : "minilm");
    set_model(scene, folder, read_model_info(folder));
  } catch (const Error&) {
    return; // nothing is shown, which the window says
  }
}

void check_document(Document& document, const std::string& at, Reading& reading) {
  for (const InputKind kind : {InputKind::image, InputKind::text}) {
    const std::string here = at + "/scenes/" + (kind == InputKind::image ? "image" : "text");
    Scene& scene = document.scene_of(kind);
    if (scene.input && std::holds_alternative<ImageInput>(*scene.input) != (kind == InputKind::image))
      reading.fail(here + "/input", "is of the other kind");
    stand_in(scene, kind, here, reading);
    fit(scene, here, reading);
    check_tokens(document, kind, here, reading);
  }
  if (document.view.maps.empty()) reading.fail(at + "/view/maps", "is empty");
  if (document.view.logarithmic && document.view.percentile)
    reading.fail(at + "/view/percentile", "excludes logarithmic");
}

} // namespace hydrascope::app
