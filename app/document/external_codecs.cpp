// How a document refers to what lies outside of it.
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/document/document_codec.h"
#include "app/document/json_codec.h"
#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace fs = std::filesystem;

Json JsonCodec<AdapterChoice>::write(const AdapterChoice& choice, const WriteContext& context) {
  Json files = Json::array();
  for (const fs::path& file : choice.files) files.push_back(context.reference(file));
  return {{"automatic", choice.automatic}, {"files", std::move(files)}};
}

AdapterChoice JsonCodec<AdapterChoice>::read(const Json& json, const std::string& at, ReadContext& context) {
  FieldReader fields(json, at, context);
  AdapterChoice choice;
  std::vector<std::string> references;
  fields("automatic", choice.automatic);
  fields("files", references);
  fields.note_unknown();
  for (const std::string& reference : references) {
    const auto file = context.find(FileKind::adapter, reference);
    if (!file) return {}; // the other adapters may be trained over the missing one
    choice.files.push_back(*file);
  }
  return choice;
}

Json JsonCodec<AdapterChoice>::schema() {
  FieldSchema fields;
  fields("automatic", true);
  fields("files", std::vector<std::string>{});
  return {{"type", "object"}, {"properties", std::move(fields.properties)}};
}

namespace {

// An input in JSON.
struct StoredPicture {
  std::string name;
  std::optional<std::string> path, sha256, png;
  std::optional<std::array<int, 2>> size; // for human readers
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

Json picture_json(const ImageInput& image, const WriteContext& context) {
  StoredPicture stored{.name = image.name, .path = {}, .sha256 = {}, .png = {}, .size = {}};
  if (image.image) stored.size = {image.image->width, image.image->height};
  if (!image.path.empty()) {
    stored.path = context.reference(image.path);
    if (std::string hash = context.hash(image.path); !hash.empty()) stored.sha256 = std::move(hash);
  } else if (context.pixels && image.image) {
    stored.png = encode_base64(encode_png(*image.image));
  }
  return without_nulls(JsonCodec<StoredPicture>::write(stored, context));
}

std::optional<RunInput> stored_picture(const StoredPicture& stored, const std::string& at,
                                       const ReadContext& context) {
  const auto bytes = decode_base64(*stored.png);
  if (!bytes) context.fail(at + "/png", "is no base64");
  auto image = std::make_shared<const Image>(decode_image(*bytes, context.subject + " " + at + "/png"));
  return ImageInput{std::move(image), stored.name, {}};
}

std::optional<RunInput> picture_of(const StoredPicture& stored, const std::string& at, ReadContext& context) {
  if (stored.png) return stored_picture(stored, at, context);
  if (!stored.path) {
    context.note(at, "the picture " + stored.name + " had no file and was not saved");
    return std::nullopt;
  }
  const auto path = context.find(FileKind::picture, *stored.path);
  if (!path) return std::nullopt;
  try {
    auto image = std::make_shared<const Image>(load_image(*path));
    if (stored.sha256 && sha256_of_file(*path) != *stored.sha256)
      context.note(at, path->string() + " has changed since this was saved");
    return ImageInput{std::move(image), path->filename().string(), *path};
  } catch (const Error& error) {
    context.unreadable(FileKind::picture, *stored.path, error.what());
    return std::nullopt;
  }
}

} // namespace

Json JsonCodec<std::optional<RunInput>>::write(const std::optional<RunInput>& input,
                                               const WriteContext& context) {
  if (!input) return nullptr;
  if (const auto* image = std::get_if<ImageInput>(&*input)) return picture_json(*image, context);
  const auto& text = std::get<TextInput>(*input);
  return JsonCodec<StoredText>::write({text.text, text.pair}, context);
}

std::optional<RunInput> JsonCodec<std::optional<RunInput>>::read(const Json& json, const std::string& at,
                                                                 ReadContext& context) {
  if (json.is_null()) return std::nullopt;
  if (!json.contains("text"))
    return picture_of(JsonCodec<StoredPicture>::read(json, at, context), at, context);
  StoredText text = JsonCodec<StoredText>::read(json, at, context);
  return TextInput{std::move(text.text), std::move(text.pair)};
}

Json JsonCodec<std::optional<RunInput>>::schema() {
  return {{"anyOf",
           {JsonCodec<StoredPicture>::schema(), JsonCodec<StoredText>::schema(), Json{{"type", "null"}}}}};
}

Json JsonCodec<std::shared_ptr<const ModelInfo>>::write(const std::shared_ptr<const ModelInfo>& model,
                                                        const WriteContext& context) {
  if (!model) return nullptr;
  return {{"name", model->name}, {"folder", context.reference(model->folder)}};
}

std::shared_ptr<const ModelInfo> JsonCodec<std::shared_ptr<const ModelInfo>>::read(const Json& json,
                                                                                   const std::string& at,
                                                                                   ReadContext& context) {
  if (json.is_null()) return nullptr;
  FieldReader fields(json, at, context);
  std::string name, reference;
  fields("name", name);
  fields("folder", reference);
  fields.note_unknown();
  const auto folder = context.find(FileKind::model, reference);
  if (!folder) return nullptr;
  try {
    return std::make_shared<const ModelInfo>(read_model_info(*folder));
  } catch (const Error& error) {
    context.unreadable(FileKind::model, reference, error.what());
    return nullptr;
  }
}

Json JsonCodec<std::shared_ptr<const ModelInfo>>::schema() {
  FieldSchema fields;
  fields("name", std::string());
  fields("folder", std::string());
  Json object{{"type", "object"}, {"properties", std::move(fields.properties)}};
  return {{"anyOf", {std::move(object), Json{{"type", "null"}}}}};
}

Json JsonCodec<std::shared_ptr<const PictureFolder>>::write(
    const std::shared_ptr<const PictureFolder>& folder, const WriteContext& context) {
  return folder ? Json(context.reference(folder->path)) : Json(nullptr);
}

std::shared_ptr<const PictureFolder> JsonCodec<std::shared_ptr<const PictureFolder>>::read(
    const Json& json, const std::string& at, ReadContext& context) {
  if (json.is_null()) return nullptr;
  const std::string reference = JsonCodec<std::string>::read(json, at, context);
  const auto path = context.find(FileKind::folder, reference);
  if (!path) return nullptr;
  try {
    return std::make_shared<const PictureFolder>(list_pictures(*path));
  } catch (const Error& error) {
    context.unreadable(FileKind::folder, reference, error.what());
    return nullptr;
  }
}

Json JsonCodec<std::shared_ptr<const PictureFolder>>::schema() {
  return JsonCodec<std::optional<std::string>>::schema();
}

} // namespace hydrascope::app
