// hydrascope tokenize: token ids of the texts on standard input, a JSON list per line.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "app/commands/commands.h"
#include "engine/base/error.h"
#include "engine/models/model_info.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "engine/models/tokenizer/wordpiece.h"

namespace hydrascope::app {
namespace {

using Encode = std::function<std::vector<int>(std::string_view line)>;

// A tab separates the texts of a pair.
Encode by_word_pieces(WordPiece tokenizer) {
  return [tokenizer = std::move(tokenizer)](const std::string_view line) {
    const std::size_t tab = line.find('\t');
    return tab == std::string_view::npos ? tokenizer.encode(line)
                                         : tokenizer.encode(line.substr(0, tab), line.substr(tab + 1));
  };
}

Encode by_byte_pairs(BytePair loaded) {
  return [tokenizer = std::make_shared<const BytePair>(std::move(loaded))](const std::string_view line) {
    std::vector<int> ids;
    for (const BytePairToken& token : tokenizer->encode(line)) ids.push_back(token.id);
    return ids;
  };
}

void tokenize(const std::string& model) {
  const std::filesystem::path folder = resolve_model(model);
  const Encode encode = has_byte_pair(folder) ? by_byte_pairs(load_byte_pair(folder))
                                              : by_word_pieces(load_wordpiece(folder));
  const std::string input{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  const std::string_view text = input;
  fmt::memory_buffer output;
  // Every line has an answer, blank ones too, and a text may begin with a byte-order mark: this is no table
  // for read_tsv. Lines end at \n only; nothing after the last \n is not a line.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    fmt::format_to(std::back_inserter(output), "[{}]\n", fmt::join(encode(line), ", "));
    at = end + 1;
  }
  const bool written = std::fwrite(output.data(), 1, output.size(), stdout) == output.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error("standard output", "could not be written", "see that the disk has room");
}

} // namespace

void add_tokenize_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("tokenize", "Token ids of the texts on standard input, a text a line");
  command->footer(
      "A tab within a line separates a pair, except for a decoder. Special tokens that the tokenizer adds, as "
      "[CLS] and [SEP], are included; nothing is padded or cut.");
  const auto model = std::make_shared<std::string>("minilm");
  command
      ->add_option("--model", *model,
                   "catalogue name, Hugging Face folder, or repository name in the Hugging Face cache")
      ->capture_default_str();
  command->callback([model] { tokenize(*model); });
}

} // namespace hydrascope::app
