#include "app/window/window.h"

#include <chrono>
#include <regex>

#include "app/state/session_edits.h"
#include "app/window/application.h"
#include "app/window/screenshot.h"
#include "engine/plain/error.h"
#include "engine/plain/nearest_name.h"

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

void add_window_options(CLI::App& program, WindowOptions& options) {
  program.add_option("FILE", options.files,
                     "pictures, text files, model folders, sessions or exported figures to open");
  program.add_option("--text", options.text, "a sentence to start with");
  program.add_option("--screenshot", options.screenshot,
                     "write the window as it looks when the model has run to this PNG, and leave");
  CLI::Option* screenshot = program.get_option("--screenshot");
  program
      .add_option("--action", options.actions,
                  "action to run before the screenshot, by its id (repeatable): view.layout.compare")
      ->allow_extra_args(false)
      ->needs(screenshot);
  program
      .add_option_function<std::string>(
          "--size",
          [&options](const std::string& text) {
            const auto cross = text.find('x');
            options.width = std::stoi(text.substr(0, cross));
            options.height = std::stoi(text.substr(cross + 1));
          },
          "of the screenshot in points, as WIDTHxHEIGHT (1600x1000)")
      ->check([](const std::string& text) {
        const bool ok = std::regex_match(text, std::regex("[1-9][0-9]{2,3}x[1-9][0-9]{2,3}"));
        return ok ? std::string() : text + " is not of the form 1600x1000";
      })
      ->needs(screenshot);
  program.add_option("--scale", options.scale, "pixels a point in the screenshot (1)")
      ->check(CLI::Range(least_scale, greatest_scale))
      ->needs(screenshot);
  program
      .add_option_function<std::string>(
          "--theme",
          [&options](const std::string& name) {
            options.theme = name == "light" ? ThemeChoice::light : ThemeChoice::dark;
          },
          "of the screenshot: dark or light (dark)")
      ->check(CLI::IsMember({"dark", "light"}))
      ->needs(screenshot);
  add_common_options(program, options.common);
}

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
