#include "app/commands/command.h"

#include "app/views/command_text.h"

namespace hydrascope::app {

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

} // namespace hydrascope::app
