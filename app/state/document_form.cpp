#include "app/state/document_form.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "app/state/session.h"
#include "engine/plain/base64.h"
#include "engine/plain/paths.h"
#include "engine/plain/png.h"

namespace hydrascope::app {

namespace fs = std::filesystem;

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

template <>
struct Form<AdapterChoice> {
  static Json write(const AdapterChoice& choice, const Writing& writing) {
    Json files = Json::array();
    for (const fs::path& file : choice.files) files.push_back(writing.reference(file));
    return {{"automatic", choice.automatic}, {"files", std::move(files)}};
  }
  static AdapterChoice read(const Json& json, const std::string& at, Reading& reading) {
    FieldReader fields(json, at, reading);
    AdapterChoice choice;
    std::vector<std::string> references;
    fields("automatic", choice.automatic);
    fields("files", references);
    fields.note_unknown();
    for (const std::string& reference : references) {
      const auto file = reading.find(FileKind::adapter, reference);
      if (!file) return {}; // what is left would stand on a base that is not there
      choice.files.push_back(*file);
    }
    return choice;
  }
  static Json schema() {
    FieldSchema fields;
    fields("automatic", true);
    fields("files", std::vector<std::string>{});
    return {{"type", "object"}, {"properties", std::move(fields.properties)}};
  }
};

namespace {

// An input as it is stored.
struct StoredPicture {
  std::string name;
  std::optional<std::string> path, sha256, png;
  std::optional<std::array<int, 2>> size; // for who reads the file
};
template <typename Fields, Is<StoredPicture> S>
void describe(Fields& fields, S& picture) {
  fields("name", picture.name);
  fields("path", picture.path);
  fields("size", picture.size);
  fields("sha256", picture.sha256);
  fields("png", picture.png);
}

struct StoredText {
  std::string text;
  std::optional<std::string> pair;
};
template <typename Fields, Is<StoredText> S>
void describe(Fields& fields, S& text) {
  fields("text", text.text);
  fields("pair", text.pair);
}

Json picture_json(const ImageInput& image, const Writing& writing) {
  StoredPicture stored{.name = image.name, .path = {}, .sha256 = {}, .png = {}, .size = {}};
  if (image.image) stored.size = {image.image->width, image.image->height};
  if (!image.path.empty()) {
    stored.path = writing.reference(image.path);
    if (std::string hash = writing.hash(image.path); !hash.empty()) stored.sha256 = std::move(hash);
  } else if (writing.pixels && image.image) {
    stored.png = base64_of(png_of(*image.image));
  }
  return without_nulls(Form<StoredPicture>::write(stored, writing));
}

std::optional<RunInput> pasted_picture(const StoredPicture& stored, const std::string& at,
                                       const Reading& reading) {
  const auto bytes = bytes_of_base64(*stored.png);
  if (!bytes) reading.fail(at + "/png", "is no base64");
  auto image = std::make_shared<const Image>(decode_image(*bytes, reading.subject + " " + at + "/png"));
  return ImageInput{std::move(image), stored.name, {}};
}

std::optional<RunInput> picture_of(const StoredPicture& stored, const std::string& at, Reading& reading) {
  if (stored.png) return pasted_picture(stored, at, reading);
  if (!stored.path) {
    reading.note(at, "the picture " + stored.name + " had no file and was not kept");
    return std::nullopt;
  }
  const auto path = reading.find(FileKind::picture, *stored.path);
  if (!path) return std::nullopt;
  try {
    auto image = std::make_shared<const Image>(load_image(*path));
    if (stored.sha256 && sha256_of_file(*path) != *stored.sha256)
      reading.note(at, path->string() + " is another picture than when this was saved");
    return ImageInput{std::move(image), path->filename().string(), *path};
  } catch (const Error& error) {
    reading.unreadable(FileKind::picture, *stored.path, error.what());
    return std::nullopt;
  }
}

} // namespace

template <>
struct Form<std::optional<RunInput>> {
  static Json write(const std::optional<RunInput>& input, const Writing& writing) {
    if (!input) return nullptr;
    if (const auto* image = std::get_if<ImageInput>(&*input)) return picture_json(*image, writing);
    const auto& text = std::get<TextInput>(*input);
    return Form<StoredText>::write({text.text, text.pair}, writing);
  }
  static std::optional<RunInput> read(const Json& json, const std::string& at, Reading& reading) {
    if (json.is_null()) return std::nullopt;
    if (!json.contains("text")) return picture_of(Form<StoredPicture>::read(json, at, reading), at, reading);
    StoredText text = Form<StoredText>::read(json, at, reading);
    return TextInput{std::move(text.text), std::move(text.pair)};
  }
  static Json schema() {
    return {{"anyOf", {Form<StoredPicture>::schema(), Form<StoredText>::schema(), Json{{"type", "null"}}}}};
  }
};

template <>
struct Form<std::shared_ptr<const ModelInfo>> {
  using Model = std::shared_ptr<const ModelInfo>;
  static Json write(const Model& model, const Writing& writing) {
    if (!model) return nullptr;
    return {{"name", model->name}, {"folder", writing.reference(model->folder)}};
  }
  static Model read(const Json& json, const std::string& at, Reading& reading) {
    if (json.is_null()) return nullptr;
    FieldReader fields(json, at, reading);
    std::string name, reference;
    fields("name", name);
    fields("folder", reference);
    fields.note_unknown();
    const auto folder = reading.find(FileKind::model, reference);
    if (!folder) return nullptr;
    try {
      return std::make_shared<const ModelInfo>(read_model_info(*folder));
    } catch (const Error& error) {
      reading.unreadable(FileKind::model, reference, error.what());
      return nullptr;
    }
  }
  static Json schema() {
    FieldSchema fields;
    fields("name", std::string());
    fields("folder", std::string());
    Json object{{"type", "object"}, {"properties", std::move(fields.properties)}};
    return {{"anyOf", {std::move(object), Json{{"type", "null"}}}}};
  }
};

template <>
struct Form<std::shared_ptr<const PictureFolder>> {
  using Folder = std::shared_ptr<const PictureFolder>;
  static Json write(const Folder& folder, const Writing& writing) {
    return folder ? Json(writing.reference(folder->path)) : Json(nullptr);
  }
  static Folder read(const Json& json, const std::string& at, Reading& reading) {
    if (json.is_null()) return nullptr;
    const std::string reference = Form<std::string>::read(json, at, reading);
    const auto path = reading.find(FileKind::folder, reference);
    if (!path) return nullptr;
    try {
      return std::make_shared<const PictureFolder>(list_pictures(*path));
    } catch (const Error& error) {
      reading.unreadable(FileKind::folder, reference, error.what());
      return nullptr;
    }
  }
  static Json schema() { return Form<std::optional<std::string>>::schema(); }
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

namespace {

template <typename T>
bool ascending(const std::vector<T>& values) {
  return std::ranges::adjacent_find(values, std::greater_equal{}) == values.end();
}

void take_bundled_model(Scene& scene, InputKind kind) {
  try {
    const fs::path folder = resolve_model(kind == InputKind::image ? "vit-small" : "minilm");
    set_model(scene, folder, read_model_info(folder));
  } catch (const Error&) {
    return; // nothing is shown, which the window says
  }
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

void check(Document& document, const std::string& at, Reading& reading) {
  for (const InputKind kind : {InputKind::image, InputKind::text}) {
    const std::string here = at + "/scenes/" + enum_names<InputKind>.at(static_cast<std::size_t>(kind));
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

} // namespace

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
  check(document, at, reading);
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
