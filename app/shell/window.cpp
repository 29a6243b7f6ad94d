#include "app/shell/window.h"

#include <chrono>

#include "app/document/session_edits.h"
#include "app/shell/application.h"
#include "app/ui/screenshot.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

// Draws until every panel has what it asked for.
void settle(Application& application) {
  const auto start = std::chrono::steady_clock::now();
  constexpr std::chrono::minutes patience{5};
  for (int i = 0; i < 3; ++i) application.frame(); // what was chosen is asked for
  while (!application.settled()) {
    if (std::chrono::steady_clock::now() - start > patience) {
      throw Error("--screenshot", "the model did not finish within five minutes",
                  "choose a smaller model or input");
    }
    application.frame();
    application.wait(0.02);
  }
  for (int i = 0; i < 3; ++i) application.frame();
}

void run_named(Application& application, const std::string& name) {
  if (find_action(application.actions(), name) == nullptr) {
    std::vector<std::string> names;
    for (const Action& action : application.actions()) names.push_back(action.id);
    throw UsageError("--action", "there is no action " + name,
                     "did you mean " + nearest_name(name, names) + "?");
  }
  if (!application.run(name)) throw Error("--action " + name, application.editor().messages().back().text);
}

int write_screenshot(const WindowOptions& options) {
  WindowOptions hidden = options;
  hidden.hidden = true;
  Application application(hidden);
  if (const auto& waiting = application.editor().waiting_session)
    throw Error(waiting->file.string(), "lacks " + missing_text(*waiting),
                "open it in the window, which lets you locate what is missing");
  settle(application);
  for (const std::string& action : options.actions) {
    run_named(application, action);
    settle(application);
  }
  const SideResults& results = application.coordinator().results(Side::a);
  if (!results.error.empty()) throw Error("--screenshot", results.error);
  if (results.any() == nullptr) {
    const auto& messages = application.editor().messages();
    throw Error("--screenshot", messages.empty() ? "there is nothing to show" : messages.back().text);
  }
  write_png(options.screenshot, application.read_frame());
  return 0;
}

} // namespace

int run_window(const WindowOptions& options) {
  if (!options.screenshot.empty()) return write_screenshot(options);
  Application application(options);
  while (application.running()) {
    // No frame is drawn while nothing changes: input and the worker end the wait.
    constexpr double long_time = 60;
    if (application.wait(long_time)) application.frame();
  }
  return 0;
}

} // namespace hydrascope::app
