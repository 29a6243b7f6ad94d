#include "app/window/session_export.h"

#include <chrono>

#include "app/state/session_edits.h"
#include "app/window/application.h"
#include "engine/plain/error.h"

namespace hydrascope::app {

std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder,
                                        const SessionExportOptions& options) {
  check_export_folder(folder);
  WindowOptions hidden;
  hidden.hidden = true;
  hidden.width = options.width;
  hidden.height = options.height;
  hidden.files = {session_file};
  Application application(hidden);
  Editor& editor = application.editor();
  if (const auto& waiting = editor.shell.waiting_session)
    throw Error(session_file.string(), "lacks " + missing_text(*waiting),
                "open it in the window, which lets you locate what is missing");
  if (editor.document().session == 0) {
    const auto& messages = editor.messages();
    throw Error(session_file.string(), messages.empty() ? "is no session" : messages.back().text);
  }
  application.everything().set_style(options.style);
  editor.shell.export_folder = folder;
  const auto start = std::chrono::steady_clock::now();
  constexpr std::chrono::minutes patience{60};
  do {
    application.frame();
    application.wait(0.02);
    if (std::chrono::steady_clock::now() - start > patience)
      throw Error(session_file.string(), "its runs did not finish within an hour",
                  "close panels that take long, and save it again");
  } while (application.everything().busy() || editor.shell.export_folder);
  if (!application.everything().error().empty()) throw Error(application.everything().error(), "");
  return application.everything().empty();
}

} // namespace hydrascope::app
