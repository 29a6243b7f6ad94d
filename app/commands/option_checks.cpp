#include "app/commands/option_checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

// `name` is shown in the help.
template <typename Holds>
CLI::Validator number_check(const std::string& name, const std::string& reason, const Holds& holds) {
  return {[=](const std::string& text) {
            const auto number = decimal_number(text);
            return number && holds(*number) ? std::string() : fmt::format("{} is not {}", text, reason);
          },
          name};
}

template <typename Integer>
bool is_whole(const std::string& text) {
  Integer value = 0;
  if (text.size() > 1 && text.starts_with('0')) return false; // CLI11 would read octal digits
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end;
}

// What a value must be by its option's type; empty if nothing is wrong with it.
std::string wrong_value(const std::string& type, const std::string& text) {
  if (text.empty()) return "its value is empty; give one or leave it out";
  if (type.starts_with("FLOAT") && !decimal_number(text)) return text + " is not a number";
  if (type.starts_with("INT") && !is_whole<std::int64_t>(text)) return text + " is not a whole number";
  if (type.starts_with("UINT") && !is_whole<std::uint64_t>(text))
    return text + " is not a whole number from 0 to 2^64 - 1";
  return {};
}

bool may_be_empty(const CLI::Option& option) {
  return option.check_name("--text") || option.check_name("--pair");
}

// An option that names a file, with the file.
struct NamedFile {
  std::string option;
  fs::path path;
};

constexpr std::array outputs{"--output", "--curve", "--screenshot", "--record"};
constexpr std::array inputs{"--data",    "--validation", "--image",  "--input", "--adapter",
                            "--capture", "--session",    "--script", "--texts", "--images",
                            "--boxes",   "--classes",    "--labels"};

bool is_one_of(const CLI::Option& option, const auto& names) {
  return std::ranges::any_of(names, [&](const char* name) { return option.check_name(name); });
}

// Devices such as /dev/null may be named twice.
bool are_one_file(const fs::path& left, const fs::path& right) {
  std::error_code none;
  if (fs::exists(left, none)) return fs::is_regular_file(left, none) && fs::equivalent(left, right, none);
  return fs::absolute(left, none).lexically_normal() == fs::absolute(right, none).lexically_normal();
}

// Whether -o names a folder.
bool writes_folder(const CLI::App& command) {
  const CLI::Option* const session = command.get_option_no_throw("--session");
  return command.get_name() == "train" || (session != nullptr && session->count() > 0);
}

} // namespace

CLI::Validator positive_number() {
  return number_check("POSITIVE", "above 0", [](const double number) { return number > 0; });
}

CLI::Validator non_negative_number() {
  return number_check("NONNEGATIVE", "0 or above", [](const double number) { return number >= 0; });
}

CLI::Validator number_within(const double least, const double most) {
  return number_check(fmt::format("in [{} - {}]", least, most), fmt::format("from {} to {}", least, most),
                      [=](const double number) { return number >= least && number <= most; });
}

CLI::Validator thread_count() {
  // Thousands take minutes to start; a test or a machine may want more than there are processors.
  const double most = std::max(256.0, 4.0 * std::thread::hardware_concurrency());
  return number_within(1, most).description("POSITIVE"); // the help is the same on every machine
}

void check_values(CLI::App& program) {
  for (CLI::Option* const option : program.get_options()) {
    if (option->get_items_expected_max() == 0 || may_be_empty(*option)) continue; // a flag
    // A transformation is the first of an option's checks.
    option->transform(CLI::Validator(
        [type = option->get_type_name()](std::string& text) { return wrong_value(type, text); }, ""));
  }
  for (CLI::App* const command : program.get_subcommands([](const CLI::App*) { return true; }))
    check_values(*command);
}

void check_outputs(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<NamedFile> written, others;
  for (const CLI::Option* const option : command->get_options()) {
    const bool output = is_one_of(*option, outputs);
    if (!output && !option->get_positional() && !is_one_of(*option, inputs)) continue;
    for (const std::string& value : option->results())
      (output ? written : others).push_back({option->get_name(), value});
  }
  for (auto output = written.begin(); output != written.end(); ++output) {
    const std::string name = fmt::format("{} {}", output->option, output->path.string());
    std::error_code none;
    const bool folder = output->option == "--output" && writes_folder(*command);
    if (!folder && fs::is_directory(output->path, none)) throw UsageError(name, "is a folder", "name a file");
    for (auto second = std::next(output); second != written.end(); ++second)
      if (are_one_file(output->path, second->path))
        throw UsageError(name, "is also the file of " + second->option, "name another one");
    for (const NamedFile& other : others)
      if (fs::exists(other.path, none) && are_one_file(output->path, other.path))
        throw UsageError(name, fmt::format("would replace the file of {}", other.option), "name another one");
  }
}

} // namespace hydrascope::app
