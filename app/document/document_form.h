// The document's fields, each named once for writing, reading and the schema (json_form.h).
#pragma once

#include "app/document/document.h"
#include "app/document/json_form.h"

namespace hydrascope::app {

template <>
struct Form<Document> {
  static Json write(const Document& document, const Writing& writing);
  // Everything is checked against the models that are there: what does not fit them is replaced and noted.
  // Throws BrokenFile naming the entry.
  static Document read(const Json& json, const std::string& at, Reading& reading);
  static Json schema(); // refers to #/$defs/scene
};
Json scene_schema();

} // namespace hydrascope::app
