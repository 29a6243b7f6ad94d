// hydrascope reproduce: draws a figure again by the command in its own metadata.
#include "app/commands/commands.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/option_checks.h"
#include "app/shell/session_export.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ReproduceOptions {
  std::string figure, output;
  bool json = false;
};

fs::path default_output(const fs::path& figure) {
  return figure.parent_path() / (figure.stem().string() + "-reproduced" + figure.extension().string());
}

// Runs the words as a figure command.
void draw_again(const std::vector<std::string>& words, const fs::path& output) {
  std::vector<std::string> typed = words;
  typed.insert(typed.end(), {"-o", output.string()});
  CLI::App program("", "hydrascope");
  add_figure_command(program, command_text(typed));
  program.parse_complete_callback([&] { check_outputs(program); });
  std::vector<std::string> arguments(typed.rbegin(), typed.rend() - 1); // in reverse, without the program
  try {
    program.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw Error("reproduce",
                fmt::format("this version does not understand the figure's command: {}", error.what()),
                "draw it with the version that its metadata name");
  }
}

// The keys of the provenance that differ and can change the figure.
std::vector<std::string> differences(const ordered_json& then, const ordered_json& now) {
  std::vector<std::string> differing;
  for (const char* const key :
       {"version", "model", "adapters", "input", "inputs", "device", "dtype", "seed"}) {
    if (then.value(key, ordered_json()) != now.value(key, ordered_json())) differing.emplace_back(key);
  }
  return differing;
}

void reproduce(const ReproduceOptions& options) {
  const fs::path figure = options.figure;
  const auto then = ordered_json::parse(read_provenance(figure));
  const fs::path output = options.output.empty() ? default_output(figure) : fs::path(options.output);
  const auto command = then.find("command");
  const bool drawn_by_command = command != then.end() && command->is_string();
  const std::vector<std::string> words =
      drawn_by_command
          ? command_words(without_output_options(command->get<std::string>())) // --json of old ones
          : std::vector<std::string>();
  if (then.contains("session")) {
    reproduce_view(figure, output);
  } else if (words.size() > 1 && words[1] == "figure") {
    draw_again(words, output);
  } else {
    throw Error(figure.string(), "names neither a command nor a session to draw it by", "draw it anew");
  }
  const auto now = ordered_json::parse(read_provenance(output));
  const bool same = read_text_file(figure) == read_text_file(output);
  const std::vector<std::string> differing = differences(then, now);
  if (options.json) {
    fmt::print(
        "{}\n",
        text_of_json(ordered_json{{"figure", output.string()}, {"identical", same}, {"differs", differing}},
                     1));
    return;
  }
  fmt::print("{}: {}\n", output.string(), same ? "identical" : "not identical");
  if (!same && differing.empty() && then.contains("session"))
    fmt::print("last digits of a window's numbers depend on what else its runs were asked for\n");
  if (!differing.empty()) fmt::print("since then changed: {}\n", fmt::join(differing, ", "));
}

} // namespace

void add_reproduce_command(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("reproduce", "draw a figure again by the command in its own metadata");
  command->footer(
      "Its inputs are looked for where the command names them, from the current folder. Says whether\n"
      "the new file is the same byte for byte, and if not, what has changed since.");
  const auto options = std::make_shared<ReproduceOptions>();
  command->add_option("figure", options->figure, "figure that Hydrascope has written")->required();
  command->add_option("-o,--output", options->output, "file to write (default: beside it, NAME-reproduced)");
  command->add_flag("--json", options->json, "one JSON document on standard output");
  command->callback([options] { reproduce(*options); });
}

} // namespace hydrascope::app
