#include "app/shell/window.h"

#include <chrono>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/application.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/nearest_name.h"
#include "engine/base/paths.h"
#include "engine/base/png.h"
#include "engine/figures/read_provenance.h"

namespace hydrascope::app {

namespace {

WindowOptions hidden_window(const SessionExportOptions& options, const std::filesystem::path& file) {
  WindowOptions hidden;
  hidden.hidden = true;
  hidden.width = options.width;
  hidden.height = options.height;
  hidden.files = {file};
  return hidden;
}

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

Error session_timeout(const std::filesystem::path& file) {
  return Error(file.string(), "its runs did not finish within an hour",
               "close panels that take long, and save it again");
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
  write_file_atomically(options.screenshot, png_of(application.read_frame()));
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

std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder,
                                        const SessionExportOptions& options) {
  check_export_folder(folder);
  Application application(hidden_window(options, session_file));
  Editor& editor = application.editor();
  check_complete(application);
  if (editor.document().session == 0) {
    const auto& messages = editor.messages();
    throw Error(session_file.string(), messages.empty() ? "is no session" : messages.back().text);
  }
  application.everything().set_style(options.style);
  editor.emit(ExportEverything{folder});
  draw_until(application, std::chrono::minutes(60), session_timeout(session_file),
             [&] { return !application.everything().busy(); });
  if (!application.everything().error().empty()) throw Error(application.everything().error(), "");
  return application.everything().empty();
}

void reproduce_view(const std::filesystem::path& figure, const std::filesystem::path& output,
                    const SessionExportOptions& options) {
  const std::string panel = view_of(read_provenance(figure)).panel;
  Application application(hidden_window(options, figure));
  check_complete(application);
  constexpr int until_arranged = 30; // the session's own panels come to the front first, one per frame
  draw_frames(application, until_arranged);
  application.editor().emit(BringToFront{panel});
  draw_frames(application, 4); // requests the panel's results
  draw_until(application, std::chrono::minutes(60), session_timeout(figure),
             [&] { return application.settled(); });
  const auto drawn = application.figure_of(panel);
  const std::string& error = application.coordinator().results(Side::a).error;
  if (!drawn) throw Error(figure.string(), error.empty() ? "its panel shows nothing" : error);
  write_figure(*drawn, output, options.style);
}

} // namespace hydrascope::app
