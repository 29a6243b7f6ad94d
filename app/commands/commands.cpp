#include "app/commands/commands.h"

#include "app/commands/command.h"

namespace hydrascope::app {

void add_commands(CLI::App& program, const std::string& command_line) {
  add_kernels_command(program);
  add_attend_command(program);
  add_run_command(program);
  add_tokenize_command(program);
  add_figure_command(program, command_line);
  add_reproduce_command(program);
  add_kl_command(program);
  add_distill_command(program, command_line);
  add_finetune_command(program, command_line);
  add_evaluate_command(program);
  add_recall_command(program);
  add_flops_command(program);
  add_bench_command(program);
  add_fetch_command(program);
}

} // namespace hydrascope::app
