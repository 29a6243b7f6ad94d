// What is open when the window appears.
#pragma once

#include "app/document/editor.h"
#include "app/shell/session_store.h"
#include "app/shell/window.h"

namespace hydrascope::app {

// The files, the sentence and the choices of the command line; with none of them where the program was left
// the last time, if the user wants that, else an example picture. Undo begins there. What cannot be opened is
// said. Throws UsageError for a schedule that the model cannot have.
void start_document(Editor& editor, SessionStore& sessions, const WindowOptions& options);

} // namespace hydrascope::app
