// hydrascope completion and manual: files for shells and man, made from the options of all commands.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "app/commands/commands.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/base/text.h"
#include "engine/base/version.h"

namespace hydrascope::app {
namespace {

std::vector<CLI::App*> commands_of(CLI::App& parent) {
  return parent.get_subcommands([](CLI::App* command) { return !command->get_name().empty(); });
}

void for_each_command(CLI::App& command, const std::function<void(CLI::App&)>& visit) {
  visit(command);
  for (CLI::App* const each : commands_of(command)) for_each_command(*each, visit);
}

// Those that --help lists.
std::vector<const CLI::Option*> listed_options(CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty()) options.push_back(option);
  return options;
}

std::vector<std::string> option_names(CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : listed_options(command)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// What may follow an option: words, or nothing where a file is meant.
std::vector<std::string> values_of(const std::string& option) {
  if (option == "--kernel" || option == "--kernels") {
    std::vector<std::string> names;
    for (const KernelInfo& kernel : kernel_infos()) names.emplace_back(kernel.name);
    return names;
  }
  if (option == "--model") return {"vit-small", "minilm"};
  if (option == "--dtype") return {"float32", "bfloat16", "float16"};
  if (option == "--device") return {"auto", "cpu", "cuda"};
  return {};
}

// What `figure` can draw: its positional argument is described by the list of names.
std::vector<std::string> figure_kinds_of(CLI::App& command) {
  std::vector<std::string> names;
  if (command.get_name() != "figure") return names;
  for (std::string_view name : split(command.get_option("kind")->get_description(), ','))
    names.emplace_back(trimmed(name, " "));
  return names;
}

// The words that may stand after the command: its commands, its options, and what figure can draw.
std::string words_of(CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* each : commands_of(command)) words.push_back(each->get_name());
  for (const std::string& name : figure_kinds_of(command)) words.push_back(name);
  for (const std::string& name : option_names(command)) words.push_back(name);
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_completion(CLI::App& program) {
  std::string cases, values;
  for_each_command(program, [&](CLI::App& command) {
    cases += fmt::format("    '{}') words='{}' ;;\n", command_name(command), words_of(command));
  });
  for (const char* option : {"--kernel", "--kernels", "--model", "--dtype", "--device"})
    values += fmt::format("    {}) words='{}' ;;\n", option, fmt::join(values_of(option), " "));
  std::string nested;
  for (CLI::App* const each : commands_of(program))
    if (!commands_of(*each).empty()) nested += (nested.empty() ? "" : "|") + each->get_name();
  return fmt::format(R"(# bash completion for hydrascope; made by: hydrascope completion bash
_hydrascope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
    -*) break ;;
    *) command="$command${{command:+ }}${{COMP_WORDS[i]}}" ;;
    esac
    case $command in {}) ;; *) break ;; esac
  done
  case $previous in
{}    *)
    case $command in
{}    esac
    ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o bashdefault -o default -F _hydrascope hydrascope
)",
                     nested, values, cases);
}

// zsh runs bash's completions.
std::string zsh_completion(CLI::App& program) {
  return "#compdef hydrascope\nautoload -U +X bashcompinit && bashcompinit\n" + bash_completion(program);
}

std::string fish_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + quoted + "'";
}

std::string fish_completion(CLI::App& program) {
  std::string text = "# fish completion for hydrascope; made by: hydrascope completion fish\n";
  for_each_command(program, [&](CLI::App& command) {
    const std::string path = command_name(command);
    std::string condition = path.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from ";
    if (!path.empty()) condition += path.substr(path.rfind(' ') + 1);
    const std::string start = fmt::format("complete -c hydrascope -n {}", fish_quoted(condition));
    for (const CLI::App* each : commands_of(command))
      text +=
          fmt::format("{} -f -a {} -d {}\n", start, each->get_name(), fish_quoted(each->get_description()));
    for (const std::string& name : figure_kinds_of(command)) text += fmt::format("{} -a {}\n", start, name);
    for (const CLI::Option* option : listed_options(command)) {
      for (const std::string& name : option->get_lnames()) {
        text += fmt::format("{} -l {} -d {}", start, name, fish_quoted(option->get_description()));
        if (const auto values = values_of("--" + name); !values.empty())
          text += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(values, " "))));
        else if (option->get_items_expected_max() > 0)
          text += " -r";
        text += "\n";
      }
    }
  });
  return text;
}

// roff's own characters, escaped. Its fonts have no ‖.
std::string roff(std::string text) {
  constexpr std::string_view norm = "‖";
  for (std::size_t at = text.find(norm); at != std::string::npos; at = text.find(norm, at))
    text.replace(at, norm.size(), "||");
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '-')
      escaped += "\\-";
    else if (c == '\\')
      escaped += "\\e";
    else
      escaped += c;
    line_begins = c == '\n';
  }
  return escaped;
}

std::string manual_page(CLI::App& program) {
  std::string text = fmt::format(".TH HYDRASCOPE 1 \"\" \"Hydrascope {}\" \"User commands\"\n", version);
  text +=
      ".SH NAME\nhydrascope \\- see what a transformer attends to, and swap its attention kernels\n"
      ".SH SYNOPSIS\n.B hydrascope\n[\\fIFILE\\fR...]\n.br\n.B hydrascope\n\\fICOMMAND\\fR "
      "[\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n";
  text += roff(program.get_description()) + "\n.PP\n" + roff(program.get_footer()) + "\n";
  for_each_command(program, [&](CLI::App& command) {
    const std::string path = command_name(command);
    text += path.empty() ? std::string(".SH OPTIONS\n")
                         : fmt::format(".SH \"HYDRASCOPE {}\"\n{}\n", path, roff(command.get_description()));
    if (!path.empty() && !command.get_footer().empty())
      text += ".PP\n.nf\n" + roff(command.get_footer()) + "\n.fi\n";
    for (const CLI::Option* option : listed_options(command)) {
      const std::string type = option->get_items_expected_max() > 0 && !option->get_positional()
                                   ? " \\fI" + roff(option->get_type_name()) + "\\fR"
                                   : std::string();
      text +=
          fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                      roff(option->get_positional() ? option->get_name(true) : option->get_name(false, true)),
                      type, roff(option->get_description()));
    }
  });
  return text + ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n";
}

} // namespace

void add_shell_file_commands(CLI::App& program) {
  CLI::App* const completion =
      program.add_subcommand("completion", "print the completion of commands and options for a shell");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("In bash: source <(hydrascope completion bash)");
  completion->callback([shell, &program] {
    if (*shell == "bash") fmt::print("{}", bash_completion(program));
    if (*shell == "zsh") fmt::print("{}", zsh_completion(program));
    if (*shell == "fish") fmt::print("{}", fish_completion(program));
  });
  CLI::App* const manual = program.add_subcommand("manual", "print the manual page");
  manual->footer("To read it: hydrascope manual | man -l -");
  manual->callback([&program] { fmt::print("{}", manual_page(program)); });
}

} // namespace hydrascope::app
