// The subcommands: one file each, listed in one place, all taking the same common options.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/document/common_options.h"

namespace hydrascope::app {

struct WindowOptions;

// --kernel, --replace, --layers; `schedule` must outlive the parse.
void add_schedule_options(CLI::App& command, ScheduleText& schedule);

// Adds all of them to a subcommand; `options` must outlive the parse.
void add_common_options(CLI::App& command, CommonOptions& options);

// Files, --text, --screenshot with its --action, --size, --scale and --theme, and the common options.
void add_window_options(CLI::App& program, WindowOptions& options);

// The command line as it was typed, quoted for a shell, for metadata. Set once by main.
std::string command_line_text(int argc, const char* const* argv);

// Each adds its subcommand, whose callback throws Error on failure. The whole program's command line as text
// is passed for those that write it into metadata.
void add_kernels_command(CLI::App& program);
void add_attend_command(CLI::App& program);
void add_run_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_figure_command(CLI::App& program, const std::string& command_line);
void add_reproduce_command(CLI::App& program);
void add_kl_command(CLI::App& program);
void add_distill_command(CLI::App& program, const std::string& command_line);
void add_finetune_command(CLI::App& program, const std::string& command_line);
void add_evaluate_command(CLI::App& program);
void add_recall_command(CLI::App& program);
void add_flops_command(CLI::App& program);
void add_fetch_command(CLI::App& program);
void add_bench_command(CLI::App& program);
// Below `bench`.
void add_bench_browse(CLI::App& bench);
void add_bench_kernels(CLI::App& bench);
void add_bench_model(CLI::App& bench);
void add_bench_scaling(CLI::App& bench);
void add_bench_heads(CLI::App& bench);

} // namespace hydrascope::app
