#include "app/document/document_json.h"

#include <nlohmann/json.hpp>

#include "app/document/document_form.h"

namespace hydrascope::app {

Json document_json(const Document& document) {
  Writing writing;
  writing.reference = [](const std::filesystem::path& path) { return path.string(); };
  writing.hash = [](const std::filesystem::path&) { return std::string(); };
  return Form<Document>::write(document, writing);
}

Json editor_json(const Editor& editor) {
  Json json;
  json["document"] = document_json(editor.document());
  json["settings"] = Json::parse(settings_text(editor.settings()));
  return json;
}

} // namespace hydrascope::app
