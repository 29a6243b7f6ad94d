// The one place where commands take effect.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/jobs/coordinator.h"
#include "app/jobs/jobs.h"
#include "app/shell/clipboard.h"
#include "app/shell/everything_export.h"
#include "app/shell/exports.h"
#include "app/shell/layout.h"
#include "app/shell/session_store.h"
#include "app/shell/shell.h"

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
  const std::function<void(Editor&, const ShowFigure&)>& show_figure;
};

// All that has been emitted, and what is emitted on the way. Returns whether there was anything.
bool apply_commands(const Services& services);

} // namespace hydrascope::app
