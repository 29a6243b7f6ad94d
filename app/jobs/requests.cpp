#include "app/jobs/requests.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/run/quantity.h"

namespace hydrascope::app {

namespace {

std::string input_key(const RunInput& input) {
  if (const auto* image = std::get_if<ImageInput>(&input)) {
    return fmt::format("image {} {}", static_cast<const void*>(image->image.get()), image->path.string());
  }
  const auto& text = std::get<TextInput>(input);
  return fmt::format("text {}:{} {}", text.text.size(), text.text, text.pair.value_or("\x01"));
}

std::int64_t text_bytes(const Scene& scene) {
  const auto* text = scene.input ? std::get_if<TextInput>(&*scene.input) : nullptr;
  return text == nullptr ? 0 : std::ssize(text->text);
}

} // namespace

VectorsKey queries_and_keys(const Document& document) {
  return {.layer = document.scene().layer,
          .kernel = KernelSpec{},
          .teacher_forced = document.view.teacher_forced};
}

Requested of_model(const Document& document, Requested requested) {
  const auto& model = document.scene().model;
  if (!model) return requested;
  return {.first = keys_of_model(requested.first, *model), .then = keys_of_model(requested.then, *model)};
}

bool can_run(const Document& document) {
  const Scene& scene = document.scene();
  if (!scene.input || scene.model == nullptr) return false;
  const auto* text = std::get_if<TextInput>(&*scene.input);
  return text == nullptr || text->text.find_first_not_of(" \t\n") != std::string::npos;
}

std::int64_t expected_tokens(const Document& document) {
  const ModelInfo& model = *document.scene().model;
  if (model.capture) return model.capture->tokens;
  if (model.causal) // a token is a byte at least; one may stand before all
    return std::min<std::int64_t>(model.max_tokens, text_bytes(document.scene()) + 1);
  if (model.input == InputKind::text) return model.max_tokens;
  const std::int64_t side =
      document.execution.image_size.value_or(model.image_size) / std::max(model.patch_size, 1);
  return side * side + model.prefix_tokens;
}

std::int64_t likely_tokens(const Document& document) {
  constexpr std::int64_t bytes_a_token = 3; // of a byte-level vocabulary, in most languages and in code
  const Scene& scene = document.scene();
  return is_decoder(scene)
             ? std::min<std::int64_t>(scene.model->max_tokens, text_bytes(scene) / bytes_a_token)
             : expected_tokens(document);
}

double expected_bytes(const Document& document, const Requested& requested) {
  if (!can_run(document)) return 0;
  // The two run one after the other.
  const ModelInfo& model = *document.scene().model;
  const std::int64_t tokens = expected_tokens(document);
  return std::max(estimated_bytes(requested.first, model, tokens),
                  estimated_bytes(requested.then, model, tokens));
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
  return key + execution_key(document.execution);
}

std::string subject_key(const Document& document) {
  const Scene& scene = document.scene();
  const std::string kind = document.kind == InputKind::image ? "image" : "text";
  return scene.model ? fmt::format("{} {} {}", kind, scene.model_folder.string(), scene.model->stamp) : kind;
}

RunRequest make_run_request(const Document& document, Side side, const QuantityKeys& quantities,
                            std::uint64_t generation) {
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
  request.schedule = scene.schedules[static_cast<std::size_t>(side)];
  request.target = scene.target;
  request.default_query = scene.default_query;
  request.query = scene.query;
  request.quantities = quantities;
  request.execution = document.execution;
  return request;
}

RunRequest folder_request(const Document& document) {
  const Scene& scene = document.scene_of(InputKind::image);
  RunRequest request;
  request.model_folder = scene.model_folder;
  request.adapters = scene.adapters;
  request.schedule = scene.schedules[static_cast<std::size_t>(Side::a)];
  request.execution = document.execution;
  return request;
}

} // namespace hydrascope::app
