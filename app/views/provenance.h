// The provenance of a figure: a JSON text stored inside its file. Plain header.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/paths.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// A command line that a shell splits into these words: quoted where necessary.
std::string command_text(std::span<const std::string> words);
// The inverse of command_text.
std::vector<std::string> command_words(std::string_view text);

// Removes an option and its value in every form: `--name VALUE`, `--name=VALUE`, and for a name of one letter
// `-n VALUE`, `-nVALUE`. `name` includes its dashes.
std::vector<std::string> without_option(std::vector<std::string> words, std::string_view name);

// The version of this program.
std::string program_version();

// Removes -o and --output with their file, and --json: they do not change what is drawn.
std::string without_output_options(const std::string& command_line);

// {program, version, command, model {name, hash}, adapters [{name, hash}], schedule, input {kind, name,
// hash}, device, dtype, seed}. No time of day and no path of the output, so that the same request gives the
// same bytes. `hash_of_file`: of the input's file; its errors pass.
std::string provenance_json(
    const RunResult& run, const RunInput& input, const ExecutionOptions& execution,
    const std::string& command_line,
    const std::function<std::string(const std::filesystem::path&)>& hash_of_file = sha256_of_file);

// Adds the exported view: the id of the panel, and the session as JSON text.
std::string with_view(const std::string& provenance, const std::string& panel, const std::string& session);
// The view and the command in a provenance.
struct FigureView {
  std::string panel, session,
      command; // session: JSON text; empty if the figure was not exported from a window
};
FigureView view_of(const std::string& provenance);

} // namespace hydrascope::app
