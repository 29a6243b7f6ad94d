#include "app/shell/session_export.h"

#include <chrono>
#include <functional>

#include "app/document/session_edits.h"
#include "app/shell/application.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/figures/figure.h"

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

void check_whole(Application& application, const std::filesystem::path& file) {
  const auto& waiting = application.editor().waiting_session;
  if (waiting)
    throw Error(file.string(), "lacks " + missing_text(*waiting),
                "open it in the window, which lets you locate what is missing");
}

// Draws frames until `done`, or an hour has passed.
void draw_until(Application& application, const std::filesystem::path& file,
                const std::function<bool()>& done) {
  const auto start = std::chrono::steady_clock::now();
  constexpr std::chrono::minutes patience{60};
  do {
    application.frame();
    application.wait(0.02);
    if (std::chrono::steady_clock::now() - start > patience)
      throw Error(file.string(), "its runs did not finish within an hour",
                  "close panels that take long, and save it again");
  } while (!done());
}

} // namespace

std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder,
                                        const SessionExportOptions& options) {
  check_export_folder(folder);
  Application application(hidden_window(options, session_file));
  Editor& editor = application.editor();
  check_whole(application, session_file);
  if (editor.document().session == 0) {
    const auto& messages = editor.messages();
    throw Error(session_file.string(), messages.empty() ? "is no session" : messages.back().text);
  }
  application.everything().set_style(options.style);
  editor.emit(ExportEverything{folder});
  draw_until(application, session_file, [&] { return !application.everything().busy(); });
  if (!application.everything().error().empty()) throw Error(application.everything().error(), "");
  return application.everything().empty();
}

void reproduce_view(const std::filesystem::path& figure, const std::filesystem::path& output,
                    const SessionExportOptions& options) {
  const std::string panel = view_of(read_provenance(figure)).panel;
  Application application(hidden_window(options, figure));
  check_whole(application, figure);
  // The panels that were in front come back one a frame; then it is this one's turn.
  constexpr int until_arranged = 30;
  for (int i = 0; i < until_arranged; ++i) application.frame();
  application.editor().emit(BringToFront{panel});
  for (int i = 0; i < 4; ++i) application.frame(); // what it shows is asked for
  draw_until(application, figure, [&] { return application.settled(); });
  const auto drawn = application.figure_of(panel);
  const std::string& error = application.coordinator().results(Side::a).error;
  if (!drawn) throw Error(figure.string(), error.empty() ? "its panel shows nothing" : error);
  write_figure(*drawn, output, options.style);
}

} // namespace hydrascope::app
