// Which token is the query: the class token, the distillation token, all, or any patch or word.
#pragma once

#include "app/document/editor.h"

namespace hydrascope::app {

// `run` says what the tokens are and which of them the target reads; null before the first run, when only
// those can be chosen that every input has.
void query_combo(Editor& editor, const RunResult* run, float width);

} // namespace hydrascope::app
