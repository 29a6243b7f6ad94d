// What attention is given in the layers of the model that is open, as far as the document and a run say it.
#pragma once

#include "app/document/document.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// `run`: the last one of the scene that is shown, or null; without one of this model the number of tokens is
// what pre-processing gives (pictures), or one (text). One of all ones without a model.
LayerShape layer_shape(const Document& document, const RunResult* run);

} // namespace hydrascope::app
