// hydrascope figure: any view as a file, with its numbers and its provenance.
#include "app/commands/commands.h"

#include <functional>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/many_inputs.h"
#include "app/commands/figure/options.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/shell/session_export.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"

namespace hydrascope::app {
namespace {

void check_output(const FigureOptions& options) {
  check_figure_ending(options.output);
  const std::string ending = std::filesystem::path(options.output).extension().string();
  if ((ending == ".tex" || ending == ".md") && options.kind != "table")
    throw UsageError("-o " + options.output, "only a table is written as " + ending,
                     "use figure table, or .svg, .pdf, .png, .csv, .json or .npy");
}

void draw_one(const FigureOptions& options, const std::string& command,
              const std::function<Figure(FigureTask&)>& draw) {
  Runner runner;
  FigureTask task{options, runner, command};
  const Figure figure = draw(task);
  print_notes(task.notes);
  if (figure.panels.empty()) {
    std::cerr << "note: this model and schedule have nothing to show as " << options.kind
              << "; no figure was written\n";
    return;
  }
  write_figure(figure, options.output, options.style);
  if (options.common.json) {
    const auto provenance = nlohmann::ordered_json::parse(figure.provenance);
    std::cout << text_of_json(nlohmann::ordered_json{{"figure", options.output}, {"provenance", provenance}},
                              1)
              << "\n";
  } else if (isatty(STDOUT_FILENO) != 0) {
    fmt::print("{} written\n", options.output);
  }
}

void draw_pattern(const FigureOptions& options, const std::string& command) {
  const BatchOutcome outcome = draw_many(options, command);
  const std::size_t failed = outcome.failures.size();
  if (options.common.json) {
    nlohmann::ordered_json failures = nlohmann::ordered_json::array();
    for (const auto& [output, reason] : outcome.failures)
      failures.push_back({{"output", output}, {"reason", reason}});
    std::cout << text_of_json(
                     nlohmann::ordered_json{
                         {"written", outcome.written}, {"kept", outcome.kept}, {"failed", failures}},
                     1)
              << "\n";
  } else {
    fmt::print("{} written, {} kept, {} failed\n", outcome.written, outcome.kept, failed);
  }
  for (const auto& [output, reason] : outcome.failures)
    std::cerr << "failed: " << output << ": " << reason << "\n";
  if (outcome.broken) std::rethrow_exception(outcome.broken);
  if (failed > 0) {
    throw Error("figure",
                fmt::format("{} of {} figures failed", failed,
                            static_cast<std::size_t>(outcome.written + outcome.kept) + failed),
                "they are listed above; the others are written, and the same command goes on from there");
  }
}

void draw(FigureOptions& options, const std::string& command) {
  const FigureKind& kind = figure_kind(options.kind);
  check_output(options);
  print_notes(notes_of_letters(options));
  if ((options.untrained || !options.trained.empty()) && options.kind != "heads" &&
      options.kind != "strategies")
    throw UsageError(options.untrained ? "--untrained" : "--trained",
                     "is for figure heads and figure strategies alone", "use --no-adapter or --adapter");
  if (!options.captures.empty()) {
    if (!options.common.capture.empty())
      throw UsageError("--capture", "there is a capture already", "leave it out");
    const auto captures = captures_of(options.captures);
    if (captures.size() == 1 && !is_pattern(options.output)) {
      options.common.capture = captures.front().string();
      options.captures.clear();
    }
  }
  const bool many = !options.images.empty() || !options.texts.empty() || !options.captures.empty();
  if (many && kind.of_one_input) {
    if (!options.image.empty() || !options.text.empty())
      throw UsageError("figure " + options.kind, "there are both one input and many",
                       "leave out --image and --text, or --images and --texts");
    if (is_pattern(options.output)) return draw_pattern(options, command);
    if (options.kind == "focus" && options.texts.empty() && options.captures.empty())
      return draw_one(options, command, draw_focus_rows);
    throw UsageError("-o " + options.output, "the figures of many inputs do not fit into one file",
                     "put {stem}, {line} or {index} into its name");
  }
  draw_one(options, command, kind.draw);
}

// Writes every open panel of a session to a folder.
void draw_session(const FigureOptions& options) {
  if (!options.kind.empty())
    throw UsageError("--session", "draws every open panel and no kind", "leave out " + options.kind);
  for (const std::string& panel : export_session(options.session, options.output, options.style))
    std::cerr << "note: " << panel << " shows nothing\n";
  if (options.common.json) {
    const auto index = std::filesystem::path(options.output) / "index.html";
    std::cout << text_of_json(nlohmann::ordered_json{{"folder", options.output}, {"index", index.string()}},
                              1)
              << "\n";
  } else if (isatty(STDOUT_FILENO) != 0) {
    fmt::print("{} written; all figures: {}\n", options.output,
               (std::filesystem::path(options.output) / "index.html").string());
  }
}

// The theme, and the preset's width and text size unless given on the command line.
void apply_style(FigureOptions& options, const CLI::App& command) {
  options.style.dark = options.theme == "dark";
  if (options.preset.empty()) return;
  const FigureStyle preset = paper_style(options.preset);
  if (command.count("--width-mm") == 0) options.style.width_mm = preset.width_mm;
  if (command.count("--font-points") == 0) options.style.font_points = preset.font_points;
}

std::string kinds_text() {
  std::string text =
      "Example: hydrascope figure focus --image cat.jpg --kernel hydra-cosine -o focus.pdf\n\nKinds:\n";
  for (const FigureKind& kind : figure_kinds()) text += fmt::format("  {:13} {}\n", kind.name, kind.summary);
  return text;
}

} // namespace

void add_figure_command(CLI::App& program, const std::string& command_line) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App* const command = program.add_subcommand(
      "figure", "write a view as a figure (svg, pdf, png) or as its numbers (csv, json, npy, tex, md)");
  command->footer(kinds_text());
  add_figure_options(*command, *options);
  command->callback([options, command, command_line] {
    options->with_pair = command->count("--pair") > 0;
    apply_style(*options, *command);
    if (!options->session.empty()) return draw_session(*options);
    if (options->kind.empty()) throw UsageError("figure", "no kind is named", "see hydrascope figure --help");
    draw(*options, command_line);
  });
}

} // namespace hydrascope::app
