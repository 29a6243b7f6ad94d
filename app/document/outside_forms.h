// How a document names what lies outside it: pictures, models, adapters, folders. Only for .cpp files that
// need all of JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/document/document.h"
#include "app/document/json_form.h"

namespace hydrascope::app {

template <>
struct Form<AdapterChoice> {
  static Json write(const AdapterChoice& choice, const Writing& writing);
  static AdapterChoice read(const Json& json, const std::string& at, Reading& reading);
  static Json schema();
};

template <>
struct Form<std::optional<RunInput>> {
  static Json write(const std::optional<RunInput>& input, const Writing& writing);
  static std::optional<RunInput> read(const Json& json, const std::string& at, Reading& reading);
  static Json schema();
};

template <>
struct Form<std::shared_ptr<const ModelInfo>> {
  static Json write(const std::shared_ptr<const ModelInfo>& model, const Writing& writing);
  static std::shared_ptr<const ModelInfo> read(const Json& json, const std::string& at, Reading& reading);
  static Json schema();
};

template <>
struct Form<std::shared_ptr<const PictureFolder>> {
  static Json write(const std::shared_ptr<const PictureFolder>& folder, const Writing& writing);
  static std::shared_ptr<const PictureFolder> read(const Json& json, const std::string& at, Reading& reading);
  static Json schema();
};

} // namespace hydrascope::app
