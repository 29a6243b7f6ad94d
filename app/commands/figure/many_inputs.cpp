#include "app/commands/figure/many_inputs.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <nlohmann/json.hpp>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/views/provenance.h"
#include "engine/base/capture.h"
#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"
#include "engine/base/tsv.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::vector<fs::path> matches(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  globfree(&found);
  return files;
}

// One figure to draw.
struct Item {
  FigureOptions options; // with --image or --text, and the one kernel
  std::string command;   // draws this figure alone
};

struct Named {
  std::string placeholder, value;
};

std::string filled(std::string pattern, const std::vector<Named>& names) {
  for (const auto& [placeholder, value] : names) {
    for (auto at = pattern.find(placeholder); at != std::string::npos;
         at = pattern.find(placeholder, at + value.size()))
      pattern.replace(at, placeholder.size(), value);
  }
  return pattern;
}

// A kernel as part of a file's name, with characters that every file system accepts.
std::string name_of(const KernelSpec& kernel) {
  std::string name = kernel.text();
  std::ranges::replace(name, ':', '_');
  std::ranges::replace(name, '/', '_');
  return name;
}

struct Input {
  std::vector<std::string> words; // its options on a command line
  FigureOptions options;
  std::vector<Named> names;
};

void add_pictures(const FigureOptions& options, std::vector<Input>& inputs) {
  for (const FolderPicture& picture : pictures_of(options.images)) {
    Input input{{"--image", picture.file.string()}, options, {}};
    input.options.image = picture.file.string();
    input.names = {{"{stem}", picture.file.stem().string()},
                   {"{folder}", picture.file.parent_path().filename().string()},
                   {"{line}", ""}};
    inputs.push_back(std::move(input));
  }
}

void add_captures(const FigureOptions& options, std::vector<Input>& inputs) {
  for (const fs::path& capture : captures_of(options.captures)) {
    Input input{{"--capture", capture.string()}, options, {}};
    input.options.common.capture = capture.string();
    input.names = {{"{stem}", capture.stem().string()},
                   {"{folder}", capture.parent_path().filename().string()},
                   {"{line}", ""}};
    inputs.push_back(std::move(input));
  }
}

void add_texts(const FigureOptions& options, std::vector<Input>& inputs) {
  for (const TsvLine& line : read_tsv(options.texts)) {
    Input input{{"--text", line.cells.front()}, options, {}};
    input.options.text = line.cells.front();
    if (line.cells.size() > 1) {
      input.options.with_pair = true;
      input.options.pair = fmt::format("{}", fmt::join(std::span(line.cells).subspan(1), "\t"));
      input.words.insert(input.words.end(), {"--pair", input.options.pair});
    }
    const fs::path path = options.texts;
    input.names = {{"{stem}", path.stem().string()},
                   {"{folder}", path.parent_path().filename().string()},
                   {"{line}", fmt::format("{:04}", line.number)}};
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) throw Error(options.texts, "holds no sentence", "write one a line");
}

std::vector<Item> items_of(const FigureOptions& options, const std::string& command) {
  std::vector<Input> inputs;
  if (!options.images.empty()) add_pictures(options, inputs);
  if (!options.texts.empty()) add_texts(options, inputs);
  if (!options.captures.empty()) add_captures(options, inputs);
  std::vector<std::string> words = command_words(without_output_options(command));
  std::erase_if(words, [&](const std::string& word) {
    return std::ranges::find(options.captures, word) != options.captures.end();
  });
  for (const char* const option : {"--images", "--texts"}) words = without_option(words, option);
  const bool by_kernel = options.output.find("{kernel}") != std::string::npos;
  if (by_kernel && options.kernels.empty())
    throw UsageError("-o " + options.output, "there are no kernels to fill {kernel} with",
                     "name them with --kernels");
  std::vector<Item> items;
  std::map<std::string, std::string> taken; // output, its input
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    Input& input = inputs[index];
    input.names.push_back({"{index}", fmt::format("{:04}", index + 1)});
    const std::vector<std::string> kernels =
        by_kernel ? split_kernel_list(options.kernels) : std::vector<std::string>{options.kernels};
    for (const std::string& kernel : kernels) {
      Item item{input.options, ""};
      item.options.images.clear();
      item.options.texts.clear();
      item.options.captures.clear();
      item.options.kernels = kernel;
      std::vector<Named> names = input.names;
      std::vector<std::string> own = words;
      if (by_kernel) {
        names.push_back({"{kernel}", name_of(parse_kernel_spec(kernel, "--kernels"))});
        own = without_option(own, "--kernels");
        own.insert(own.end(), {"--kernels", kernel});
      }
      own.insert(own.end(), input.words.begin(), input.words.end());
      item.command = command_text(own);
      item.options.output = filled(options.output, names);
      const auto [before, is_new] = taken.emplace(item.options.output, input.words.at(1));
      if (!is_new)
        throw UsageError("-o " + options.output,
                         fmt::format("{} and {} would both be written to {}", before->second,
                                     input.words.at(1), item.options.output),
                         "put {folder}, {line} or {index} into the name");
      items.push_back(std::move(item));
    }
  }
  return items;
}

// The part of a figure's provenance that does not depend on its input.
ordered_json setup_of(ordered_json provenance) {
  for (const char* const key : {"command", "input", "target"}) provenance.erase(key);
  return provenance;
}

// Whether drawing the item again would give the existing file: it was drawn by the same command from the same
// bytes, with the model and adapters that this call has used for the item's kernel.
bool is_current(const Item& item, const std::map<std::string, ordered_json>& setups) {
  const auto setup = setups.find(item.options.kernels);
  if (setup == setups.end() || !fs::exists(item.options.output)) return false;
  try {
    const auto provenance = ordered_json::parse(read_provenance(item.options.output));
    if (provenance.value("command", "") != item.command || setup_of(provenance) != setup->second)
      return false;
    const ordered_json input = provenance.value("input", ordered_json::object());
    return item.options.image.empty() || input.value("hash", "") == sha256_of_file(item.options.image);
  } catch (const std::exception&) {
    return false; // not a figure of this program
  }
}

} // namespace

std::vector<fs::path> captures_of(const std::vector<std::string>& arguments) {
  std::vector<fs::path> captures;
  for (const std::string& argument : arguments) {
    if (capture_address(argument) || !fs::is_directory(argument)) {
      captures.emplace_back(argument);
      continue;
    }
    std::ranges::move(captures_in(argument), std::back_inserter(captures));
    if (captures.empty()) throw UsageError(argument, "the folder holds no capture", "name another one");
  }
  return captures;
}

std::vector<FolderPicture> pictures_of(const std::vector<std::string>& arguments) {
  std::vector<FolderPicture> pictures;
  for (const std::string& argument : arguments) {
    if (fs::is_directory(argument)) {
      std::ranges::move(list_pictures(argument).pictures, std::back_inserter(pictures));
      continue;
    }
    const std::vector<fs::path> files =
        fs::exists(argument) ? std::vector<fs::path>{argument} : matches(argument);
    if (files.empty())
      throw UsageError("--images " + argument, "names no picture",
                       "give a folder, a file or a quoted pattern as 'folder/*.jpg'");
    for (const fs::path& file : files) pictures.push_back({file, file.parent_path().filename().string()});
  }
  return pictures;
}

bool is_pattern(const std::string& output) {
  return std::ranges::any_of(std::vector<std::string>{"{stem}", "{folder}", "{line}", "{index}", "{kernel}"},
                             [&](const std::string& name) { return output.find(name) != std::string::npos; });
}

BatchOutcome draw_many(const FigureOptions& options, const std::string& command) {
  const std::vector<Item> items = items_of(options, command);
  const FigureKind& kind = figure_kind(options.kind);
  for (const Item& item : items) { // once for all
    const std::vector<std::string> notes = notes_of_letters(item.options);
    print_notes(notes);
    if (!notes.empty()) break;
  }
  BatchOutcome outcome;
  std::exception_ptr misuse; // the first one
  Runner runner;
  std::map<std::string, ordered_json> setups; // by kernels
  ProgressBar bar("figure " + options.kind);
  std::int64_t done = 0;
  for (const Item& item : items) {
    const fs::path output = item.options.output;
    try {
      if (is_current(item, setups)) {
        ++outcome.kept;
      } else {
        FigureTask task{item.options, runner, item.command};
        const Figure figure = kind.draw(task);
        if (figure.panels.empty())
          throw Error(output.string(), "this model and schedule have nothing to show");
        if (output.has_parent_path()) create_folders(output.parent_path());
        write_figure(figure, output, options.style);
        setups[item.options.kernels] = setup_of(ordered_json::parse(figure.provenance));
        ++outcome.written;
      }
    } catch (const BrokenDevice&) { // no other input would be drawn
      outcome.broken = std::current_exception();
      break;
    } catch (const UsageError& error) { // about this input, such as --query beyond a short text, or about all
      if (!misuse) misuse = std::current_exception();
      outcome.failures.push_back({output.string(), error.what()});
    } catch (const std::exception& error) {
      outcome.failures.push_back({output.string(), error_message(error)});
    }
    bar.show(++done, static_cast<std::int64_t>(items.size()));
  }
  if (misuse && !outcome.broken && outcome.written + outcome.kept == 0) std::rethrow_exception(misuse);
  return outcome;
}

} // namespace hydrascope::app
