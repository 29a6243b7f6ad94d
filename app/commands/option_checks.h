// Checks of options' values that CLI11 lacks, and of the files that a command writes.
#pragma once

#include <CLI/CLI.hpp>

namespace hydrascope::app {

// In place of CLI11's checks of the same names, which let nan through and name the largest double.
CLI::Validator positive_number();
CLI::Validator non_negative_number();
CLI::Validator number_within(double least, double most);
CLI::Validator thread_count(); // from 1 to 256, or to 4 for each processor

// Lets each option of the program and its subcommands refuse an empty text, but for --text and --pair, and
// numbers that are not numbers, not whole or not in their type's range, before its other checks.
void check_values(CLI::App& program);

// Checks -o, --curve, --screenshot and --record of the parsed command before it runs: none may be a folder
// where a file is written, nor a file that another of them or an option for inputs names. Patterns such as
// {name} are not filled in, nor are folders searched. Throws UsageError.
void check_outputs(const CLI::App& program);

} // namespace hydrascope::app
