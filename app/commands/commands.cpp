#include "app/commands/commands.h"

#include <regex>

#include <CLI/CLI.hpp>

#include "app/shell/window.h"
#include "app/views/provenance.h"

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
  CLI::App* const bench = program.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  add_bench_interact(*bench);
  add_bench_browse(*bench);
  add_bench_kernels(*bench);
  add_bench_model(*bench);
  add_bench_scaling(*bench);
  add_bench_heads(*bench);
  add_fetch_command(program);
}

void add_schedule_options(CLI::App& command, ScheduleText& schedule) {
  command.add_option("--kernel", schedule.kernel, "kernel of all layers")->capture_default_str();
  command.add_option("--replace", schedule.replace, "front:k=KERNEL, back:k=KERNEL or interleave:k=KERNEL")
      ->allow_extra_args(false);
  command.add_option("--layers", schedule.layers, "kernels by layer, as \"0-9=softmax;10,11=hydra-cosine\"")
      ->allow_extra_args(false);
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--model", options.model,
                     "catalogue name, Hugging Face folder, or repository name in the Hugging Face cache");
  command.add_option("--adapter", options.adapters, "adapter file, applied in order (repeatable)")
      ->allow_extra_args(false);
  command.add_flag("--no-adapter", options.no_adapter,
                   "run the model's own weights, without the bundled adapters");
  add_schedule_options(command, options.schedule);
  command.add_option("--image-size", options.image_size, "side of the square the picture is resized to")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--device", options.execution.device,
                  "auto or cpu; on a GPU run attend and bench kernels, scaling, heads")
      ->capture_default_str();
  command.add_option("--dtype", options.execution.dtype, "float32, bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  command.add_option("--threads", options.execution.threads, "threads for the model (default: all)")
      ->check(CLI::PositiveNumber);
  command.add_option("--seed", options.execution.seed, "seed of everything random")->capture_default_str();
  command.add_flag("--json", options.json, "one JSON document on standard output");
}

std::string command_line_text(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (!words.empty()) words.front() = "hydrascope"; // wherever it is installed
  return command_text(words);
}

void add_window_options(CLI::App& program, WindowOptions& options) {
  program.add_option("FILE", options.files,
                     "pictures, text files, model folders, sessions or exported figures to open");
  program.add_option("--text", options.text, "a sentence to start with");
  program.add_option("--screenshot", options.screenshot,
                     "write the window as it looks when the model has run to this PNG, and leave");
  CLI::Option* screenshot = program.get_option("--screenshot");
  program
      .add_option("--action", options.actions,
                  "action to run before the screenshot, by its id (repeatable): view.layout.compare")
      ->allow_extra_args(false)
      ->needs(screenshot);
  program
      .add_option_function<std::string>(
          "--size",
          [&options](const std::string& text) {
            const auto cross = text.find('x');
            options.width = std::stoi(text.substr(0, cross));
            options.height = std::stoi(text.substr(cross + 1));
          },
          "of the screenshot in points, as WIDTHxHEIGHT (1600x1000)")
      ->check([](const std::string& text) {
        const bool ok = std::regex_match(text, std::regex("[1-9][0-9]{2,3}x[1-9][0-9]{2,3}"));
        return ok ? std::string() : text + " is not of the form 1600x1000";
      })
      ->needs(screenshot);
  program.add_option("--scale", options.scale, "pixels a point in the screenshot (1)")
      ->check(CLI::Range(least_scale, greatest_scale))
      ->needs(screenshot);
  program
      .add_option_function<std::string>(
          "--theme",
          [&options](const std::string& name) {
            options.theme = name == "light" ? ThemeChoice::light : ThemeChoice::dark;
          },
          "of the screenshot: dark or light (dark)")
      ->check(CLI::IsMember({"dark", "light"}))
      ->needs(screenshot);
  add_common_options(program, options.common);
}

} // namespace hydrascope::app
