// The form of a training to be: what is trained, on what, and how.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

// `default_output`: where it is written if nobody says so.
void draw_training_form(Editor& editor, const Graphics& graphics, const std::string& default_output);

} // namespace hydrascope::app
