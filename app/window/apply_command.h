// The one place where commands take effect.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/state/coordinator.h"
#include "app/state/jobs.h"
#include "app/window/clipboard.h"
#include "app/window/everything_export.h"
#include "app/window/exports.h"
#include "app/window/layout.h"
#include "app/window/session_store.h"
#include "app/window/shell.h"

namespace hydrascope::app {

// What commands are applied to; all of it outlives this.
struct Services {
  Editor& editor;
  Coordinator& runs;
  Jobs& jobs;
  Exports& exports;
  EverythingExport& everything;
  Clipboard& clipboard;
  SessionStore& sessions;
  Dialogs& dialogs;
  Arrangement& arrangement;
  Overlays& overlays;
  bool& quit;
  std::function<std::optional<Figure>(const std::string&)> figure_of; // what a panel exports
};

// All that has been emitted, and what is emitted on the way. Returns whether there was anything.
bool apply_commands(const Services& services);

} // namespace hydrascope::app
