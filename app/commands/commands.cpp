#include "app/commands/commands.h"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/commands/option_checks.h"
#include "app/jobs/listener.h"
#include "app/shell/window.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope::app {

void add_commands(CLI::App& program, const std::string& command_line) {
  add_kernels_command(program);
  add_attend_command(program);
  add_run_command(program);
  add_generate_command(program);
  add_tokenize_command(program);
  add_figure_command(program, command_line);
  add_reproduce_command(program);
  add_kl_command(program);
  add_distill_command(program, command_line);
  add_finetune_command(program, command_line);
  add_train_command(program, command_line);
  add_evaluate_command(program);
  add_recall_command(program);
  add_flops_command(program);
  CLI::App* const bench = program.add_subcommand("bench", "benchmark kernels, models and the window");
  bench->require_subcommand(1);
  add_bench_interact(*bench);
  add_bench_browse(*bench);
  add_bench_writing(*bench);
  add_bench_kernels(*bench);
  add_bench_model(*bench);
  add_bench_scaling(*bench);
  add_bench_heads(*bench);
  add_bench_generate(*bench);
  add_fetch_command(program);
  add_doctor_command(program);
  add_shell_file_commands(program);
}

namespace {

std::vector<std::string> names_of_commands(const CLI::App& parent) {
  std::vector<std::string> names;
  for (const CLI::App* each : parent.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The nearest name if it is near enough to be meant.
std::string near_name(const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return edit_distance(word, nearest) <= std::max<std::size_t>(2, word.size() / 3) ||
                 (!word.empty() && nearest.starts_with(word))
             ? nearest
             : std::string();
}

} // namespace

std::string suggestion(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> rest = command->remaining(true);
  if (rest.empty()) return {};
  std::string word = rest.front().substr(0, rest.front().find('='));
  return near_name(word, word.starts_with('-') ? names_of_options(*command) : names_of_commands(*command));
}

void check_window_options(const CLI::App& program, const WindowOptions& options) {
  for (const std::filesystem::path& file : options.files) {
    std::error_code failure;
    if (file.has_parent_path() || file.has_extension() || std::filesystem::exists(file, failure)) continue;
    const std::string near = near_name(file.string(), names_of_commands(program));
    throw UsageError(file.string(), "there is no such command or file",
                     near.empty() ? "see hydrascope --help" : "did you mean " + near + "?");
  }
  if (options.screenshot.has_extension() && lower_case(options.screenshot.extension().string()) != ".png")
    throw UsageError("--screenshot " + options.screenshot.string(), "a screenshot is a PNG",
                     "name it " + options.screenshot.filename().replace_extension(".png").string());
  constexpr double most_pixels = 16384; // a side, of a texture of OpenGL
  if (const double side = std::max(options.width, options.height) * options.scale.value_or(1);
      side > most_pixels)
    throw UsageError("--size and --scale", fmt::format("together give {:.0f} pixels a side", side),
                     fmt::format("at most {:.0f} can be drawn", most_pixels));
  if (!options.recording.empty() && options.recording.extension() != ".webp")
    throw UsageError("--record " + options.recording.string(), "a recording is an animated WebP",
                     "name it " + options.recording.filename().replace_extension(".webp").string());
}

void add_kernel_options(CLI::App& command, ScheduleText& schedule) {
  constexpr const char* group = "Model and kernels";
  command.add_option("--kernel", schedule.kernel, "kernel of all layers")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--replace", schedule.replace,
                  "front:k=KERNEL (the first k layers), back:k=KERNEL (the last k) or interleave:k=KERNEL (k "
                  "that alternate from the last)")
      ->allow_extra_args(false)
      ->group(group);
}

void add_schedule_options(CLI::App& command, ScheduleText& schedule) {
  add_kernel_options(command, schedule);
  command.add_option("--layers", schedule.layers, "kernels by layer, as \"0-9=softmax;10,11=hydra-cosine\"")
      ->allow_extra_args(false)
      ->group("Model and kernels");
}

namespace {

void add_capture_option(CLI::App& command, CommonOptions& options, const char* group) {
  command
      .add_option(
          "--capture", options.capture,
          "recorded attention (FILE, FILE:PART or FILE:PART:SEQUENCE), in place of a model and its input")
      ->group(group);
}

void refuse_captures(CLI::App& command) {
  const auto refuse = [&command](const std::string& /*capture*/) {
    throw UsageError("--capture", command_name(command) + " needs the model itself", "leave it out");
  };
  command.add_option_function<std::string>("--capture", refuse)->group("");
}

} // namespace

void add_common_options(CLI::App& command, CommonOptions& options, const CaptureUse captures) {
  constexpr const char* model = "Model and kernels";
  constexpr const char* execution = "Execution";
  command
      .add_option("--model", options.model,
                  "catalogue name, Hugging Face folder, or repository name in the Hugging Face cache")
      ->group(model);
  if (captures == CaptureUse::taken)
    add_capture_option(command, options, model);
  else
    refuse_captures(command);
  command.add_option("--adapter", options.adapters, "adapter file, applied in order (repeatable)")
      ->allow_extra_args(false)
      ->group(model);
  command
      .add_flag("--no-adapter", options.no_adapter,
                "run the model's own weights, without the bundled adapters")
      ->group(model);
  add_schedule_options(command, options.schedule);
  command.add_option("--image-size", options.image_size, "side of the square the picture is resized to")
      ->check(positive_number())
      ->group(model);
  command
      .add_option("--device", options.execution.device,
                  "auto or cpu, cuda or cuda:i where there is an NVIDIA GPU")
      ->capture_default_str()
      ->group(execution);
  command.add_option("--dtype", options.execution.dtype, "float32, bfloat16 or, on a GPU, float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str()
      ->group(execution);
  command.add_option("--threads", options.execution.threads, "threads for the model (default: all)")
      ->check(thread_count())
      ->group(execution);
  command.add_option("--seed", options.execution.seed, "random seed")
      ->capture_default_str()
      ->group(execution);
  command.add_flag("--json", options.json, "one JSON document on standard output")->group(execution);
}

std::string command_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  if (parent == nullptr) return {};
  const std::string above = command_name(*parent);
  return above.empty() ? command.get_name() : above + " " + command.get_name();
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
  program.add_flag_callback(
      "--listen", [&options] { options.socket = options.socket.empty() ? usual_socket() : options.socket; },
      "take captures from other programs of yours, such as a notebook (hydrascope_show in tools/capture.py)");
  program.add_option("--socket", options.socket, "listen at this Unix socket instead of the usual one");
  program.add_option("--screenshot", options.screenshot,
                     "write the window as it looks when the model has run to this PNG, and leave");
  CLI::Option* screenshot = program.get_option("--screenshot");
  CLI::Option* script = program.add_option("--script", options.script,
                                           "what to do in the recording, one step a line (docs/figures.md)");
  CLI::Option* record =
      program.add_option("--record", options.recording,
                         "perform a script and write what the window shows to this animated WebP, and leave");
  record->needs(script);
  script->needs(record);
  const auto off_screen = [screenshot, record](CLI::Option* option) {
    option->check([screenshot, record, name = option->get_name()](const std::string&) {
      const bool ok = screenshot->count() > 0 || record->count() > 0;
      return ok ? std::string() : name + " requires --screenshot or --record";
    });
  };
  program
      .add_option("--action", options.actions,
                  "action to run before the screenshot, by its id (repeatable): view.layout.compare")
      ->allow_extra_args(false)
      ->needs(screenshot);
  off_screen(program
                 .add_option_function<std::string>(
                     "--size",
                     [&options](const std::string& text) {
                       const auto cross = text.find('x');
                       options.width = std::stoi(text.substr(0, cross));
                       options.height = std::stoi(text.substr(cross + 1));
                     },
                     "of the screenshot or recording in points, as WIDTHxHEIGHT (1600x1000)")
                 ->check([](const std::string& text) {
                   const bool ok = std::regex_match(text, std::regex("[1-9][0-9]{2,3}x[1-9][0-9]{2,3}"));
                   return ok ? std::string() : text + " is not of the form 1600x1000";
                 }));
  off_screen(
      program.add_option("--scale", options.scale, "pixels a point in the screenshot or recording (1)")
          ->check(number_within(least_scale, greatest_scale)));
  off_screen(program
                 .add_option_function<std::string>(
                     "--theme",
                     [&options](const std::string& name) {
                       options.theme = name == "light" ? ThemeChoice::light : ThemeChoice::dark;
                     },
                     "of the screenshot or recording: dark or light (dark)")
                 ->check(CLI::IsMember({"dark", "light"})));
  add_common_options(program, options.common);
}

} // namespace hydrascope::app
