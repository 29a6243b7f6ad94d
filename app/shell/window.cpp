#include "app/shell/window.h"

#include <chrono>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/application.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

void check_complete(Application& application) {
  if (const auto& session = application.editor().incomplete_session)
    throw Error(session->file.string(), "lacks " + missing_text(*session),
                "open it in the window, which lets you locate what is missing");
}

// Draws frames until `done()`. Throws `timeout` after `limit`.
void draw_until(Application& application, std::chrono::minutes limit, const Error& timeout,
                const std::function<bool()>& done) {
  const auto start = std::chrono::steady_clock::now();
  do {
    application.frame();
    application.wait(0.02);
    if (std::chrono::steady_clock::now() - start > limit) throw Error(timeout);
  } while (!done());
}

void draw_frames(Application& application, int count) {
  for (int i = 0; i < count; ++i) application.frame();
}

// Draws until every panel has its results.
void settle(Application& application) {
  const Error timeout("--screenshot", "the model did not finish within five minutes",
                      "choose a smaller model or input");
  draw_frames(application, 3); // requests the results
  if (!application.settled())
    draw_until(application, std::chrono::minutes(5), timeout, [&] { return application.settled(); });
  draw_frames(application, 3);
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
  check_complete(application);
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
  write_file_atomically(options.screenshot, encode_png(application.read_frame()));
  return 0;
}

} // namespace

int run_window(const WindowOptions& options) {
  if (!options.screenshot.empty()) return write_screenshot(options);
  Application application(options);
  while (application.running()) {
    // Waits for input or results.
    constexpr double long_time = 60;
    if (application.wait(long_time)) application.frame();
  }
  return 0;
}

} // namespace hydrascope::app
