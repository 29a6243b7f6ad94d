// The subcommands, and the options that they share. Plain header: CLI11 is included by the files that add
// options.
#pragma once

#include <string>
#include <vector>

#include "app/document/common_options.h"

namespace CLI {
class App;
}

namespace hydrascope::app {

class Editor;
struct ShowFigure;
struct WindowOptions;

// Adds all subcommands, in the order of --help. `command_line`: the whole command as typed, for metadata.
void add_commands(CLI::App& program, const std::string& command_line);

// "bench kernels": the names from below the program to the command.
std::string command_name(const CLI::App& command);

// The command line as typed, quoted for a shell, for metadata.
std::string command_line_text(int argc, const char* const* argv);

// What to write in the place of the first argument that `program` did not understand: the nearest command or
// option. Empty if none is near.
std::string suggestion(const CLI::App& program);

// Checks what parsing cannot. Throws UsageError if one of the window's files is neither a path nor a name
// with an ending, and is not there: it was meant as a command; and for a recording that is no .webp file.
void check_window_options(const CLI::App& program, const WindowOptions& options);

// ---- Shared options; what they are stored in must outlive the parse ----

// --kernel, --replace.
void add_kernel_options(CLI::App& command, ScheduleText& schedule);
// These, and --layers.
void add_schedule_options(CLI::App& command, ScheduleText& schedule);
// The schedule's options, --model, --adapter, --device, --dtype and the others that every command that runs a
// model has. A command that needs the model itself refuses --capture with that reason, and does not list it.
enum class CaptureUse { taken, refused };
void add_common_options(CLI::App& command, CommonOptions& options, CaptureUse captures = CaptureUse::taken);
// The window's: files, --text, --screenshot with its --action, --record with its --script; --size, --scale
// and
// --theme for both; and the common options.
void add_window_options(CLI::App& program, WindowOptions& options);

// ---- One each; the callback throws Error on failure ----
void add_kernels_command(CLI::App& program);
void add_attend_command(CLI::App& program);
void add_run_command(CLI::App& program);
void add_generate_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_figure_command(CLI::App& program, const std::string& command_line);
void add_reproduce_command(CLI::App& program);
void add_kl_command(CLI::App& program);
void add_distill_command(CLI::App& program, const std::string& command_line);
void add_finetune_command(CLI::App& program, const std::string& command_line);
void add_train_command(CLI::App& program, const std::string& command_line);
void add_evaluate_command(CLI::App& program);
void add_recall_command(CLI::App& program);
void add_flops_command(CLI::App& program);
void add_fetch_command(CLI::App& program);
void add_doctor_command(CLI::App& program);
void add_shell_file_commands(CLI::App& program); // completion, manual
// Below `bench`.
void add_bench_interact(CLI::App& bench);
void add_bench_browse(CLI::App& bench);
void add_bench_writing(CLI::App& bench);
void add_bench_kernels(CLI::App& bench);
void add_bench_model(CLI::App& bench);
void add_bench_scaling(CLI::App& bench);
void add_bench_heads(CLI::App& bench);
void add_bench_generate(CLI::App& bench);

// Opens a figure that `figure` has drawn in the window: the input of its command with its model, kernels,
// layer, head, query and target, as one undoable step, and brings the panel that shows its kind to the front.
// An input that is not where the command names it is looked for beside the figure. Reports an error, and
// changes nothing, where the command has no single input or is not understood.
void show_figure(Editor& editor, const ShowFigure& figure);

} // namespace hydrascope::app
