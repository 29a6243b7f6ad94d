#include "app/document/outside_forms.h"

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace fs = std::filesystem;

Json Form<AdapterChoice>::write(const AdapterChoice& choice, const Writing& writing) {
  Json files = Json::array();
  for (const fs::path& file : choice.files) files.push_back(writing.reference(file));
  return {{"automatic", choice.automatic}, {"files", std::move(files)}};
}

AdapterChoice Form<AdapterChoice>::read(const Json& json, const std::string& at, Reading& reading) {
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

Json Form<AdapterChoice>::schema() {
  FieldSchema fields;
  fields("automatic", true);
  fields("files", std::vector<std::string>{});
  return {{"type", "object"}, {"properties", std::move(fields.properties)}};
}

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
    stored.png = encode_base64(encode_png(*image.image));
  }
  return without_nulls(Form<StoredPicture>::write(stored, writing));
}

std::optional<RunInput> pasted_picture(const StoredPicture& stored, const std::string& at,
                                       const Reading& reading) {
  const auto bytes = decode_base64(*stored.png);
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

Json Form<std::optional<RunInput>>::write(const std::optional<RunInput>& input, const Writing& writing) {
  if (!input) return nullptr;
  if (const auto* image = std::get_if<ImageInput>(&*input)) return picture_json(*image, writing);
  const auto& text = std::get<TextInput>(*input);
  return Form<StoredText>::write({text.text, text.pair}, writing);
}

std::optional<RunInput> Form<std::optional<RunInput>>::read(const Json& json, const std::string& at,
                                                            Reading& reading) {
  if (json.is_null()) return std::nullopt;
  if (!json.contains("text")) return picture_of(Form<StoredPicture>::read(json, at, reading), at, reading);
  StoredText text = Form<StoredText>::read(json, at, reading);
  return TextInput{std::move(text.text), std::move(text.pair)};
}

Json Form<std::optional<RunInput>>::schema() {
  return {{"anyOf", {Form<StoredPicture>::schema(), Form<StoredText>::schema(), Json{{"type", "null"}}}}};
}

Json Form<std::shared_ptr<const ModelInfo>>::write(const std::shared_ptr<const ModelInfo>& model,
                                                   const Writing& writing) {
  if (!model) return nullptr;
  return {{"name", model->name}, {"folder", writing.reference(model->folder)}};
}

std::shared_ptr<const ModelInfo> Form<std::shared_ptr<const ModelInfo>>::read(const Json& json,
                                                                              const std::string& at,
                                                                              Reading& reading) {
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

Json Form<std::shared_ptr<const ModelInfo>>::schema() {
  FieldSchema fields;
  fields("name", std::string());
  fields("folder", std::string());
  Json object{{"type", "object"}, {"properties", std::move(fields.properties)}};
  return {{"anyOf", {std::move(object), Json{{"type", "null"}}}}};
}

Json Form<std::shared_ptr<const PictureFolder>>::write(const std::shared_ptr<const PictureFolder>& folder,
                                                       const Writing& writing) {
  return folder ? Json(writing.reference(folder->path)) : Json(nullptr);
}

std::shared_ptr<const PictureFolder> Form<std::shared_ptr<const PictureFolder>>::read(const Json& json,
                                                                                      const std::string& at,
                                                                                      Reading& reading) {
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

Json Form<std::shared_ptr<const PictureFolder>>::schema() {
  return Form<std::optional<std::string>>::schema();
}

} // namespace hydrascope::app
