// The program's entry. Exit status: 0 success, 1 failure, 2 wrong usage.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/shell/window.h"
#include "engine/attention/simd/processor.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/process.h"
#include "engine/base/text.h"

namespace {

using namespace hydrascope;

constexpr int failed = 1;
constexpr int usage = 2;

int report(std::string_view message, int status) {
  std::cerr << "error: " << first_line(message) << '\n';
  return status;
}

// The program's own messages are one line, but may hold a file's name with line breaks.
std::string on_one_line(std::string text) {
  constexpr std::string_view line_break = "\\n";
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at))
    text.replace(at, 1, line_break);
  return text;
}

int report_unprinted() {
  return report("standard output: cannot be written to its end; free some space, or write it to another disk",
                failed);
}

// What a command printed may reach a full disk only here.
int check_printed(const int status) {
  std::cout.flush();
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  return printed || status != 0 ? status : report_unprinted();
}

// OpenMP's threads spin between parallel regions by default and would occupy the core of the frame loop.
// libgomp reads OMP_WAIT_POLICY when it is loaded, so the window's program restarts with it set: before the
// libraries' constructors if the arguments look like the window's, since LibTorch's take 0.15 s, or else in
// main(). `restarted` keeps a program from doing it twice.
constexpr const char* wait_policy = "OMP_WAIT_POLICY";
constexpr const char* restarted = "HYDRASCOPE_RESTARTED";
constexpr std::array window_benchmarks{"interact", "browse", "write"};

// Whether the first argument is missing, an option or a file's name.
bool looks_like_window(const int argc, char** argv) {
  if (argc < 2) return true;
  const std::string_view first = argv[1];
  if (first == "bench")
    return argc > 2 &&
           std::ranges::find(window_benchmarks, std::string_view(argv[2])) != window_benchmarks.end();
  return first.find_first_of("-./") != std::string_view::npos;
}

// The C library is not set up yet: no getenv(), no allocation.
void restart_before_constructors(const int argc, char** argv, char** environment) {
  static std::array<char*, 4096> changed;
  std::size_t count = 0;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("OMP_WAIT_POLICY=") || text.starts_with("HYDRASCOPE_RESTARTED=")) return;
    if (count + 4 > changed.size()) return; // two more and the end
    changed[count++] = *variable;
  }
  if (!looks_like_window(argc, argv)) return;
  static std::array<char, 24> policy{"OMP_WAIT_POLICY=passive"};
  static std::array<char, 27> mark{"HYDRASCOPE_RESTARTED=early"};
  changed[count++] = policy.data();
  changed[count++] = mark.data();
  execve("/proc/self/exe", argv, changed.data());
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a constant pointer to a function
[[gnu::used, gnu::section(".preinit_array")]] constexpr auto before_constructors =
    restart_before_constructors;

// Restarts the program where looks_like_window() was wrong.
void restart_if_needed(const bool window, char** argv) {
  const std::string policy = environment(wait_policy);
  const bool set_here = environment(restarted) == "early" && policy == "passive";
  if (window ? !policy.empty() : !set_here) return;
  if (window)
    setenv(wait_policy, "passive", 1);
  else
    unsetenv(wait_policy);
  setenv(restarted, "late", 1);
  execv("/proc/self/exe", argv); // on failure the window is only less smooth, or the command slower
}

bool draws_window(const CLI::App& program) {
  if (program.get_subcommands().empty()) return true;
  if (!program.got_subcommand("bench")) return false;
  const CLI::App& bench = *program.get_subcommand("bench");
  return std::ranges::any_of(window_benchmarks, [&](const char* name) { return bench.got_subcommand(name); });
}

int run(int argc, char** argv) {
  CLI::App program(
      "Hydrascope: see what a vision transformer, BERT or a decoder attends to, and swap the attention "
      "kernel of any layer.",
      "hydrascope");
  program.set_version_flag("--version", app::version_text);
  program.footer("Without a command the window opens. Every command answers --help.");
  program.option_defaults()->always_capture_default(false);
  app::WindowOptions window;
  window.show_figure = app::show_figure;
  app::add_window_options(program, window);
  app::add_commands(program, app::command_line_text(argc, argv));
  app::check_values(program);
  program.require_subcommand(0, 1);

  // The callbacks run inside parse() and need the environment before LibTorch starts.
  program.parse_complete_callback([&] {
    app::check_outputs(program);
    restart_if_needed(draws_window(program), argv);
  });
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return program.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const std::string near = app::suggestion(program);
    return report(std::string(error.what()) +
                      (near.empty() ? "; see hydrascope --help" : "; did you mean " + near + "?"),
                  usage);
  }
  if (!program.get_subcommands().empty()) return 0;
  app::check_window_options(program, window);
  return app::run_window(window);
}

} // namespace

int main(int argc, char** argv) {
  try {
    std::signal(SIGXFSZ, SIG_IGN); // a file beyond its limit (ulimit -f) is an error of its writing
    cpu::processors();             // refuses an unknown HYDRASCOPE_PROCESSOR now rather than in the first run
    return check_printed(run(argc, argv));
  } catch (const UsageError& error) {
    return report(on_one_line(error.what()), usage);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return report_unprinted(); // fmt's message does not name it
    const bool own = dynamic_cast<const Error*>(&error) != nullptr;
    return report(own ? on_one_line(error_message(error)) : error_message(error), failed);
  }
}
