#include "app/document/document_codec.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"

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
inline constexpr auto enum_names<OverlayMode> = std::to_array<const char*>({"value", "dimmed"});
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
struct JsonCodec<KernelSpec> {
  static Json write(const KernelSpec& kernel, const WriteContext&) {
    std::string source = text_of_source(kernel);
    if (source.empty()) return kernel.text();
    return {{"kernel", kernel.text()}, {"source", std::move(source)}};
  }
  static KernelSpec read(const Json& json, const std::string& at, ReadContext& context) {
    const bool typed = json.is_object() && json.contains("kernel") && json.contains("source");
    const std::string text = JsonCodec<std::string>::read(typed ? json["kernel"] : json, at, context);
    constexpr std::size_t most = 64; // each is compiled for the run, which may take a second
    if (typed && context.maps.insert(text).second && context.maps.size() > most)
      context.fail(at, fmt::format("is another map: at most {} different ones are accepted", most));
    try {
      if (typed) return kernel_with_source(text, JsonCodec<std::string>::read(json["source"], at, context));
      return parse_kernel_spec(text, "“" + text + "”");
    } catch (const UsageError& error) {
      context.note(at, std::string(error.what()) + "; softmax is in its place");
      return {};
    }
  }
  static Json schema() {
    const Json text = {{"type", "string"},
                       {"description", "a kernel as the command line writes it: name:key=value"}};
    const Json typed = {{"type", "object"},
                        {"description", "the kernel phi with the source that its name stands for"},
                        {"properties", {{"kernel", {{"type", "string"}}}, {"source", {{"type", "string"}}}}},
                        {"required", {"kernel", "source"}}};
    return {{"anyOf", {text, typed}}};
  }
};

template <>
struct JsonCodec<Schedule> {
  using Layers = JsonCodec<std::vector<KernelSpec>>;
  static Json write(const Schedule& schedule, const WriteContext& context) {
    return Layers::write(schedule.layers, context);
  }
  static Schedule read(const Json& json, const std::string& at, ReadContext& context) {
    constexpr std::size_t most = 1000; // each may name a source, which is compiled
    if (json.is_array() && json.size() > most) context.fail(at, fmt::format("has more than {} layers", most));
    return {Layers::read(json, at, context)};
  }
  static Json schema() { return Layers::schema(); }
};

template <>
struct JsonCodec<HeadIndex> {
  using Pair = JsonCodec<std::array<int, 2>>;
  static Json write(const HeadIndex& index, const WriteContext&) { return {index.layer, index.head}; }
  static HeadIndex read(const Json& json, const std::string& at, ReadContext& context) {
    const auto [layer, head] = Pair::read(json, at, context);
    return {layer, head};
  }
  static Json schema() { return Pair::schema(); }
};

namespace {

// The query whose map is shown: "default", "all", or a token's index.
struct Query {
  bool by_default = true;
  std::optional<std::int64_t> token;
};

} // namespace

template <>
struct JsonCodec<Query> {
  static Json write(const Query& query, const WriteContext&) {
    if (query.by_default) return "default";
    return query.token ? Json(*query.token) : Json("all");
  }
  static Query read(const Json& json, const std::string& at, ReadContext& context) {
    if (json == "default") return {};
    if (json == "all") return {.by_default = false, .token = std::nullopt};
    if (!json.is_number_integer()) context.fail(at, "is neither default, nor all, nor a token's number");
    return {.by_default = false, .token = JsonCodec<std::int64_t>::read(json, at, context)};
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
  fields("interpolation", view.look.interpolation);
  fields("overlay", view.look.mode);
  fields("opacity", view.look.opacity, Bounds{.least = 0, .most = 1});
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

template <typename Fields, Is<WritingOptions> S>
void describe(Fields& fields, S& writing) {
  constexpr double hottest = 2, least_share = 0.01;
  fields("temperature", writing.temperature, Bounds{.least = 0, .most = hottest});
  fields("top_p", writing.top_p, Bounds{.least = least_share, .most = 1});
  fields("seed", writing.seed);
  fields("tokens", writing.tokens, Bounds{.least = 1});
  fields("follow", writing.follow);
}

template <typename Fields, Is<Scene> S>
void describe(Fields& fields, S& scene) {
  fields("input", scene.input);
  fields("model", scene.model);
  if constexpr (!std::is_const_v<S>) {
    // The following entries depend on the model.
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

// The two scenes, named by their kinds.
using Scenes = std::array<Scene, 2>;
template <typename Fields, Is<Scenes> S>
void describe(Fields& fields, S& scenes) {
  fields("image", scenes[0]);
  fields("text", scenes[1]);
}

} // namespace

template <>
struct JsonCodec<Scenes> {
  static Json write(const Scenes& scenes, const WriteContext& context) {
    FieldWriter fields(context);
    describe(fields, scenes);
    return std::move(fields.json);
  }
  static Scenes read(const Json& json, const std::string& at, ReadContext& context) {
    Scenes scenes;
    read_into(scenes, json, at, context);
    return scenes;
  }
  static void read_into(Scenes& scenes, const Json& json, const std::string& at, ReadContext& context) {
    FieldReader fields(json, at, context);
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
  fields("writing", document.writing);
  fields("execution", document.execution);
  fields("layout", document.layout);
  fields("closed_panels", document.closed_panels);
}

namespace {

template <typename T>
bool ascending(const std::vector<T>& values) {
  return std::ranges::adjacent_find(values, std::greater_equal{}) == values.end();
}

// Replaces a missing or unsuitable model by the bundled one.
void replace_missing_model(Scene& scene, InputKind kind, const std::string& at, ReadContext& context) {
  if (scene.model && scene.model->input != kind) {
    context.note(at + "/model", scene.model->name + " takes another kind of input");
    scene.model.reset();
  }
  if (!scene.model) take_bundled_model(scene, kind);
}

// Fits schedules, layer and heads to the model.
void fit_to_model(Scene& scene, const std::string& at, ReadContext& context) {
  if (!scene.model) return;
  const ModelInfo& model = *scene.model;
  for (std::size_t side = 0; side < scene.schedules.size(); ++side) {
    auto& layers = scene.schedules[side].layers;
    const std::size_t had = layers.size();
    if (had == static_cast<std::size_t>(model.layers)) continue;
    layers.assign(static_cast<std::size_t>(model.layers), KernelSpec{});
    if (had > 0)
      context.note(fmt::format("{}/schedules/{}", at, side),
                   fmt::format("has {} layers, {} has {}; all are softmax", had, model.name, model.layers));
  }
  if (scene.layer >= model.layers) {
    context.note(at + "/layer", fmt::format("{} has no layer {}", model.name, scene.layer));
    scene.layer = model.layers - 1;
  }
  const auto no_head = [&](int head) { return head < 0 || head >= model.heads; };
  if (scene.head.head && no_head(*scene.head.head)) {
    context.note(at + "/head", fmt::format("{} has no head {}", model.name, *scene.head.head));
    scene.head.head = 0;
  }
  std::ranges::sort(scene.head.subset);
  if (std::erase_if(scene.head.subset, no_head) > 0)
    context.note(at + "/head/subset", "names heads that " + model.name + " has not");
  const auto no_such_head = [&](const HeadIndex& index) {
    return index.layer < 0 || index.layer >= model.layers || no_head(index.head);
  };
  if (std::erase_if(scene.muted_heads, no_such_head) > 0)
    context.note(at + "/muted_heads", "names heads that " + model.name + " has not");
  if (scene.comparison.empty()) scene.comparison = {std::nullopt, std::nullopt};
}

void check_tokens(Document& document, InputKind kind, const std::string& at, ReadContext& context) {
  Scene& scene = document.scene_of(kind);
  if (!ascending(scene.hidden_tokens)) context.fail(at + "/hidden_tokens", "is not in ascending order");
  if (!ascending(scene.muted_heads)) context.fail(at + "/muted_heads", "is not in ascending order");
  const auto negative = [](const std::optional<std::int64_t>& token) { return token && *token < 0; };
  if (negative(scene.query)) context.fail(at + "/query", "is below 0");
  if (negative(scene.key)) context.fail(at + "/key", "is below 0");
  if (!scene.hidden_tokens.empty() && scene.hidden_tokens.front() < 0)
    context.fail(at + "/hidden_tokens", "holds a number below 0");
  if (!scene.input) {
    scene.hidden_tokens.clear();
    scene.default_query = true;
    scene.query.reset();
    scene.key.reset();
  }
}

} // namespace

void check_document(Document& document, const std::string& at, ReadContext& context) {
  for (const InputKind kind : {InputKind::image, InputKind::text}) {
    const std::string here = at + "/scenes/" + (kind == InputKind::image ? "image" : "text");
    Scene& scene = document.scene_of(kind);
    if (scene.input && std::holds_alternative<ImageInput>(*scene.input) != (kind == InputKind::image))
      context.fail(here + "/input", "is of the other kind");
    replace_missing_model(scene, kind, here, context);
    fit_to_model(scene, here, context);
    check_tokens(document, kind, here, context);
  }
  if (document.view.maps.empty()) context.fail(at + "/view/maps", "is empty");
  if (document.view.logarithmic && document.view.percentile) { // earlier versions wrote both
    context.note(at + "/view/percentile", "excludes logarithmic and was ignored");
    document.view.percentile = false;
  }
}

int usual_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1); }
int writing_threads(const int threads) {
  return threads == usual_threads() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency()))
                                    : threads;
}

Json JsonCodec<Document>::write(const Document& document, const WriteContext& context) {
  FieldWriter fields(context);
  describe(fields, document);
  return std::move(fields.json);
}

Document JsonCodec<Document>::read(const Json& json, const std::string& at, ReadContext& context) {
  Document document; // a scene without an entry has the bundled model
  for (const InputKind kind : {InputKind::image, InputKind::text})
    take_bundled_model(document.scene_of(kind), kind);
  document.execution.threads = usual_threads();
  FieldReader fields(json, at, context);
  describe(fields, document);
  fields.note_unknown();
  check_document(document, at, context);
  return document;
}

Json JsonCodec<Document>::schema() {
  FieldSchema fields;
  Document document;
  describe(fields, document);
  return {{"type", "object"}, {"properties", std::move(fields.properties)}};
}

Json scene_schema() { return JsonCodec<Scene>::schema(); }

nlohmann::ordered_json document_json(const Document& document) {
  WriteContext context;
  context.reference = [](const std::filesystem::path& path) { return path.string(); };
  context.hash = [](const std::filesystem::path&) { return std::string(); };
  return JsonCodec<Document>::write(document, context);
}

} // namespace hydrascope::app
