// The JSON of a document: its own fields (document_codec.cpp), and how it refers to pictures, models,
// adapters and folders outside of it (external_codecs.cpp). Include in .cpp files only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/document/document.h"
#include "app/document/json_codec.h"

namespace hydrascope::app {

template <>
struct JsonCodec<Document> {
  static Json write(const Document& document, const WriteContext& context);
  // Checks the document as check_document(). Throws BrokenFile naming the entry.
  static Document read(const Json& json, const std::string& at, ReadContext& context);
  static Json schema(); // refers to #/$defs/scene
};
Json scene_schema();

template <>
struct JsonCodec<AdapterChoice> {
  static Json write(const AdapterChoice& choice, const WriteContext& context);
  static AdapterChoice read(const Json& json, const std::string& at, ReadContext& context);
  static Json schema();
};

template <>
struct JsonCodec<std::optional<RunInput>> {
  static Json write(const std::optional<RunInput>& input, const WriteContext& context);
  static std::optional<RunInput> read(const Json& json, const std::string& at, ReadContext& context);
  static Json schema();
};

template <>
struct JsonCodec<std::shared_ptr<const ModelInfo>> {
  static Json write(const std::shared_ptr<const ModelInfo>& model, const WriteContext& context);
  static std::shared_ptr<const ModelInfo> read(const Json& json, const std::string& at, ReadContext& context);
  static Json schema();
};

template <>
struct JsonCodec<std::shared_ptr<const PictureFolder>> {
  static Json write(const std::shared_ptr<const PictureFolder>& folder, const WriteContext& context);
  static std::shared_ptr<const PictureFolder> read(const Json& json, const std::string& at,
                                                   ReadContext& context);
  static Json schema();
};

// Replaces, with a note, whatever does not fit the scenes' models; a scene without a model gets the bundled
// one. Throws BrokenFile naming an entry that is invalid for every model. `at`: the document's own entry.
void check_document(Document& document, const std::string& at, ReadContext& context);

} // namespace hydrascope::app
