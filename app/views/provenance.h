// Where a figure comes from, as one JSON text that is stored inside the figure's file. Plain header.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run/run.h"

namespace hydrascope::app {

// Quoted where a shell would otherwise change a word.
std::string command_text(std::span<const std::string> words);
// The words of a text that command_text wrote, without their quotes.
std::vector<std::string> command_words(std::string_view text);

// The words without an option and its value, in each form it may have: `--name VALUE`, `--name=VALUE`, and
// for a name of one letter `-n VALUE`, `-nVALUE`. `name` comes with its dashes.
std::vector<std::string> without_option(std::vector<std::string> words, std::string_view name);

// The program's own version.
std::string program_version();

// `command_line` without the option that names the output file (-o FILE, --output FILE, -oFILE,
// --output=FILE).
std::string without_output_path(const std::string& command_line);

// {program, version, command, model {name, hash}, adapters [{name, hash}], schedule, input {kind, name,
// hash}, device, dtype, seed}. No time of day and no path of the output, so that the same request gives the
// same bytes.
std::string provenance_json(const RunResult& run, const RunInput& input, const ExecutionOptions& execution,
                            const std::string& command_line);

// The same with the view that was exported from: the panel's id, and its session as JSON text.
std::string with_view(const std::string& provenance, const std::string& panel, const std::string& session);
// What of that a figure's provenance holds.
struct FigureView {
  std::string panel, session, command; // session: JSON text; empty where the figure was not made in a window
};
FigureView view_of(const std::string& provenance);

} // namespace hydrascope::app
