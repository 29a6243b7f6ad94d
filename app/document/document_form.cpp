#include "app/document/document_form.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "app/document/document_check.h"
#include "app/document/outside_forms.h"
#include "app/document/session.h"

namespace hydrascope::app {

template <>
inline constexpr auto enum_names<InputKind> = std::to_array<const char*>({"image", "text"});
template <>
inline constexpr auto enum_names<Shown> = std::to_array<const char*>({"a", "b", "difference", "all"});
template <>
inline constexpr auto enum_names<MapKind> = std::to_array<const char*>({"focus", "attention", "rollout"});
template <>
inline constexpr auto enum_names<Interpolation> = std::to_array<const char*>({"nearest", "bilinear",
                                                                              "bicubic"});
template <>
inline constexpr auto enum_names<TokenPairs> = std::to_array<const char*>({"all", "a_to_a", "a_to_b",
                                                                           "b_to_a", "b_to_b"});
template <>
inline constexpr auto enum_names<ChangeMeasure> = std::to_array<const char*>({"ratio", "cosine", "error"});
template <>
inline constexpr auto enum_names<HeadFusion> = std::to_array<const char*>({"mean", "min", "max"});
template <>
inline constexpr auto enum_names<Target::Kind> =
    std::to_array<const char*>({"predicted", "class_index", "class_name", "similarity", "norm"});

template <>
struct Form<KernelSpec> {
  static Json write(const KernelSpec& kernel, const Writing&) { return kernel.text(); }
  static KernelSpec read(const Json& json, const std::string& at, Reading& reading) {
    const std::string text = Form<std::string>::read(json, at, reading);
    try {
      return parse_kernel_spec(text, "“" + text + "”");
    } catch (const UsageError& error) {
      reading.note(at, std::string(error.what()) + "; softmax is in its place");
      return {};
    }
  }
  static Json schema() {
    return {{"type", "string"}, {"description", "a kernel as the command line writes it: name:key=value"}};
  }
};

template <>
struct Form<Schedule> {
  using Layers = Form<std::vector<KernelSpec>>;
  static Json write(const Schedule& schedule, const Writing& writing) {
    return Layers::write(schedule.layers, writing);
  }
  static Schedule read(const Json& json, const std::string& at, Reading& reading) {
    return {Layers::read(json, at, reading)};
  }
  static Json schema() { return Layers::schema(); }
};

template <>
struct Form<HeadIndex> {
  using Pair = Form<std::array<int, 2>>;
  static Json write(const HeadIndex& index, const Writing&) { return {index.layer, index.head}; }
  static HeadIndex read(const Json& json, const std::string& at, Reading& reading) {
    const auto [layer, head] = Pair::read(json, at, reading);
    return {layer, head};
  }
  static Json schema() { return Pair::schema(); }
};

namespace {

// The query whose map is shown: "default", "all", or a token.
struct Query {
  bool by_default = true;
  std::optional<std::int64_t> token;
};

} // namespace

template <>
struct Form<Query> {
  static Json write(const Query& query, const Writing&) {
    if (query.by_default) return "default";
    return query.token ? Json(*query.token) : Json("all");
  }
  static Query read(const Json& json, const std::string& at, Reading& reading) {
    if (json == "default") return {};
    if (json == "all") return {.by_default = false, .token = std::nullopt};
    if (!json.is_number_integer()) reading.fail(at, "is neither default, nor all, nor a token's number");
    return {.by_default = false, .token = Form<std::int64_t>::read(json, at, reading)};
  }
  static Json schema() {
    return {{"anyOf", {Json{{"enum", {"default", "all"}}}, Json{{"type", "integer"}, {"minimum", 0}}}}};
  }
};

template <typename Fields, Is<HeadChoice> S>
void describe(Fields& fields, S& choice) {
  fields("head", choice.head);
  fields("fusion", choice.fusion);
  fields("subset", choice.subset);
}

template <typename Fields, Is<Target> S>
void describe(Fields& fields, S& target) {
  fields("kind", target.kind);
  fields("index", target.index, Bounds{.least = 0});
  fields("text", target.text);
}

template <typename Fields, Is<ExecutionOptions> S>
void describe(Fields& fields, S& execution) {
  fields("device", execution.device);
  fields("dtype", execution.dtype);
  std::optional<int> threads;
  if (execution.threads != usual_threads()) threads = execution.threads;
  fields("threads", threads);
  if constexpr (!std::is_const_v<S>) execution.threads = threads.value_or(usual_threads());
  fields("image_size", execution.image_size);
  fields("seed", execution.seed);
}

template <typename Fields, Is<ViewOptions> S>
void describe(Fields& fields, S& view) {
  constexpr double below_one = 0.999999;
  fields("shown", view.shown);
  fields("maps", view.maps);
  fields("discard", view.discard, Bounds{.least = 0, .most = below_one});
  fields("with_sign", view.with_sign);
  fields("interpolation", view.interpolation);
  fields("opacity", view.opacity, Bounds{.least = 0, .most = 1});
  fields("logarithmic", view.logarithmic);
  fields("percentile", view.percentile);
  fields("all_heads", view.all_heads);
  fields("token_pairs", view.pairs);
  fields("shared_scale", view.shared_scale);
  fields("cividis", view.cividis);
  fields("value_weighted", view.value_weighted);
  fields("teacher_forced", view.teacher_forced);
  fields("change_measure", view.change_measure);
  fields("special_tokens", view.tokens.special);
  fields("whole_words", view.tokens.whole_words);
}

template <typename Fields, Is<Scene> S>
void describe(Fields& fields, S& scene) {
  fields("input", scene.input);
  fields("model", scene.model);
  if constexpr (!std::is_const_v<S>) {
    // What follows is chosen for this model.
    if (const auto model = std::exchange(scene.model, nullptr)) set_model(scene, model->folder, *model);
  }
  fields("adapters", scene.adapters);
  fields("schedules", scene.schedules);
  fields("hidden_tokens", scene.hidden_tokens);
  fields("muted_heads", scene.muted_heads);
  fields("layer", scene.layer, Bounds{.least = 0});
  fields("head", scene.head);
  Query query{scene.default_query, scene.query};
  fields("query", query);
  if constexpr (!std::is_const_v<S>) {
    scene.default_query = query.by_default;
    scene.query = query.token;
  }
  fields("key", scene.key);
  fields("target", scene.target);
  fields("comparison", scene.comparison);
  fields("detail_kernel", scene.detail_kernel);
}

namespace {

// The two scenes by the names of their kinds.
using Scenes = std::array<Scene, 2>;
template <typename Fields, Is<Scenes> S>
void describe(Fields& fields, S& scenes) {
  fields("image", scenes[0]);
  fields("text", scenes[1]);
}

} // namespace

template <>
struct Form<Scenes> {
  static Json write(const Scenes& scenes, const Writing& writing) {
    FieldWriter fields(writing);
    describe(fields, scenes);
    return std::move(fields.json);
  }
  static Scenes read(const Json& json, const std::string& at, Reading& reading) {
    Scenes scenes;
    read_into(scenes, json, at, reading);
    return scenes;
  }
  static void read_into(Scenes& scenes, const Json& json, const std::string& at, Reading& reading) {
    FieldReader fields(json, at, reading);
    describe(fields, scenes);
    fields.note_unknown();
  }
  static Json schema() {
    const Json scene{{"$ref", "#/$defs/scene"}};
    return {{"type", "object"}, {"properties", {{"image", scene}, {"text", scene}}}};
  }
};

template <typename Fields, Is<Document> S>
void describe(Fields& fields, S& document) {
  fields("kind", document.kind);
  fields("scenes", document.scenes);
  fields("folder", document.folder);
  fields("wrong_first", document.wrong_first);
  fields("view", document.view);
  fields("execution", document.execution);
  fields("layout", document.layout);
  fields("closed_panels", document.closed_panels);
}

int usual_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1); }

Json Form<Document>::write(const Document& document, const Writing& writing) {
  FieldWriter fields(writing);
  describe(fields, document);
  return std::move(fields.json);
}

Document Form<Document>::read(const Json& json, const std::string& at, Reading& reading) {
  Document document; // a scene that names no model is of the bundled one
  for (const InputKind kind : {InputKind::image, InputKind::text})
    take_bundled_model(document.scene_of(kind), kind);
  document.execution.threads = usual_threads();
  FieldReader fields(json, at, reading);
  describe(fields, document);
  fields.note_unknown();
  check_document(document, at, reading);
  return document;
}

Json Form<Document>::schema() {
  FieldSchema fields;
  Document document;
  describe(fields, document);
  return {{"type", "object"}, {"properties", std::move(fields.properties)}};
}

Json scene_schema() { return Form<Scene>::schema(); }

} // namespace hydrascope::app
