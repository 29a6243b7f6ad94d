// hydrascope tokenize: token ids of the texts on standard input, a JSON list per line.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
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

using Ids = std::vector<std::int32_t>;

std::function<Ids(std::string_view)> encoder_of(const std::filesystem::path& folder) {
  if (has_byte_pair(folder)) {
    return [tokenizer = std::make_shared<const BytePair>(load_byte_pair(folder))](std::string_view line) {
      Ids ids;
      for (const BytePairToken& token : tokenizer->encode(line)) ids.push_back(token.id);
      return ids;
    };
  }
  return [tokenizer = std::make_shared<const WordPiece>(load_wordpiece(folder))](std::string_view line) {
    const std::size_t tab = line.find('\t');
    return tab == std::string_view::npos ? tokenizer->encode(line)
                                         : tokenizer->encode(line.substr(0, tab), line.substr(tab + 1));
  };
}

void tokenize(const std::string& model) {
  const auto encode = encoder_of(resolve_model(model));
  const std::string input{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  const std::string_view text = input;
  fmt::memory_buffer output;
  // Every line has an answer, blank ones too, and a text may begin with a byte-order mark: this is no table
  // for read_tsv. Lines end at \n only; nothing after the last \n is not a line.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    fmt::format_to(std::back_inserter(output), "[{}]\n", fmt::join(encode(text.substr(at, end - at)), ", "));
    at = end + 1;
  }
  const bool written = std::fwrite(output.data(), 1, output.size(), stdout) == output.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error("standard output", "could not be written", "see that the disk has room");
}

} // namespace

void add_tokenize_command(CLI::App& program) {
  auto* command = program.add_subcommand(
      "tokenize", "print the token ids of the texts on standard input, one text a line");
  command->footer(
      "What the tokenizer adds is included: [CLS] and [SEP] for a BERT, where a tab within a line separates "
      "a "
      "pair; a begin-of-text token for some decoders. Nothing is padded or cut.");
  const auto model = std::make_shared<std::string>("minilm");
  command
      ->add_option("--model", *model,
                   "catalogue name, Hugging Face folder, or repository name in the Hugging Face cache")
      ->capture_default_str();
  command->callback([model] { tokenize(*model); });
}

} // namespace hydrascope::app
