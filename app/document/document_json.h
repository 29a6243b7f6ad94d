// The document as JSON: what tests assert on, and what is easily read in a bug report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/document/editor.h"

namespace hydrascope::app {

// Everything that undo and redo go over. Pictures are named by path and size, not written out.
nlohmann::ordered_json document_json(const Document& document);

// The document and the settings.
nlohmann::ordered_json editor_json(const Editor& editor);

} // namespace hydrascope::app
