// What stands for the input of a capture where a model has a picture or a text.
#pragma once

#include <string>

#include "engine/models/model_info.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The picture beside the capture, an even one of its patches where there is none, or its tokens as a text.
// `note` receives why the picture could not be read, if so.
RunInput capture_input(const ModelInfo& capture, std::string* note = nullptr);

} // namespace hydrascope::app
