// Executes commands.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/document/commands.h"
#include "app/jobs/coordinator.h"
#include "app/jobs/jobs.h"
#include "app/shell/clipboard.h"
#include "app/shell/exports.h"
#include "app/shell/layout.h"
#include "app/shell/shell.h"
#include "app/shell/storage.h"

namespace hydrascope::app {

// What commands act on.
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
  std::function<std::optional<Figure>(const std::string&)> figure_of; // of the panel with this id
  const std::function<void(Editor&, const ShowFigure&)>& show_figure;
};

// Executes all emitted commands, including those emitted meanwhile. Returns whether there were any.
bool apply_commands(const Services& services);

} // namespace hydrascope::app
