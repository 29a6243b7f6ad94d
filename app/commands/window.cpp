// The window's options: what the program takes without a command.
#include <regex>

#include "app/commands/command.h"
#include "app/shell/window.h"

namespace hydrascope::app {

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

} // namespace hydrascope::app
