// Whether a document that was read makes sense, and fits the models that are there.
#pragma once

#include <string>

#include "app/document/document.h"
#include "app/document/json_form.h"

namespace hydrascope::app {

// The bundled model of this kind, if set-up has put it in place.
void take_bundled_model(Scene& scene, InputKind kind);

// Replaces what does not fit the scenes' models, and notes it; a scene without a model takes the bundled one.
// Throws BrokenFile naming the entry that makes no sense with any model. `at`: the document's own entry.
void check_document(Document& document, const std::string& at, Reading& reading);

} // namespace hydrascope::app
