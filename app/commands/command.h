// The subcommands: one file each, listed in one place, all taking the same common options.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/models/model_info.h"
#include "engine/runtime/run.h"

namespace hydrascope::app {

// The options every command that runs a model shares (commands.md's "Common options").
struct CommonOptions {
  std::string model; // catalogue name, folder or repository; empty: the default for the input
  std::vector<std::string> adapters;
  bool no_adapter = false;
  ScheduleText schedule;
  ExecutionOptions execution;
  int image_size = 0;
  bool json = false;
};

// --kernel, --replace, --layers; `schedule` must outlive the parse.
void add_schedule_options(CLI::App& command, ScheduleText& schedule);

// Adds all of them to a subcommand; `options` must outlive the parse.
void add_common_options(CLI::App& command, CommonOptions& options);

// The model folder for an input of this kind: --model, else the catalogue's default. Throws Error.
std::filesystem::path model_folder(const CommonOptions& options, InputKind input);

// A request with everything the common options say; input, asks and target are the command's own.
RunRequest make_request(const CommonOptions& options, InputKind input);

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
