#include "engine/run/prompts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/tsv.h"

namespace hydrascope {
namespace {

constexpr std::string_view place = "{}";

// \n, \t and \\ as what they stand for; other backslashes stay.
std::string without_escapes(const std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = text[at] == '\\' && at + 1 < text.size() ? text[at + 1] : '\0';
    if (next == 'n')
      result += '\n';
    else if (next == 't')
      result += '\t';
    else if (next == '\\')
      result += '\\';
    else
      result += text[at];
    if (next == 'n' || next == 't' || next == '\\') ++at;
  }
  return result;
}

bool is_white(const char byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

void check_table(const PromptTable& table) {
  const auto refuse = [](const char* option, const char* reason, const char* remedy) {
    throw UsageError(option, reason, remedy);
  };
  const char* const columns = "name the columns of the table, counted from 1";
  if (table.prompt < 1) refuse("--column", "must be 1 or more", columns);
  if (table.answer < 1) refuse("--answer-column", "must be 1 or more", columns);
  if (table.answer == table.prompt) refuse("--answer-column", "is the column of the prompts", columns);
  const auto first = table.layout.find(place);
  if (first == std::string::npos || table.layout.find(place, first + 1) != std::string::npos)
    refuse("--template", "must name the place of the prompt once",
           R"(write it as "Summarize this dialog:\n{}\n---\nSummary:")");
}

} // namespace

std::vector<PromptAndAnswer> read_prompts(const PromptTable& table) {
  check_table(table);
  if (std::filesystem::is_directory(table.file))
    throw UsageError(table.file.string(), "is a folder, not a table of prompts and answers",
                     "name a tab-separated file");
  std::vector<PromptAndAnswer> prompts;
  for (const TsvLine& line : read_tsv(table.file)) {
    if (table.header && line.number == 1) continue;
    if (table.limit > 0 && std::ssize(prompts) >= table.limit) break;
    PromptAndAnswer read;
    read.prompt = without_escapes(tsv_cell(line, table.prompt, table.file, "--column"));
    read.answer = without_escapes(tsv_cell(line, table.answer, table.file, "--answer-column"));
    if (!trimmed(read.prompt).empty()) prompts.push_back(std::move(read));
  }
  if (prompts.empty())
    throw Error(table.file.string(), "holds no prompt",
                "a line is a prompt and its answer, separated by a tab");
  return prompts;
}

FittedPrompt fitted_prompt(const Model& model, const std::string_view layout, const std::string& prompt,
                           const std::int64_t room) {
  const std::string whole = without_escapes(layout);
  const auto at = whole.find(place);
  const std::string before = whole.substr(0, at), after = whole.substr(at + place.size());
  std::string kept = prompt;
  FittedPrompt fitted;
  while (true) {
    fitted.text = before + kept;
    fitted.text += after;
    fitted.ids = model.text_ids(fitted.text);
    const auto tokens = static_cast<std::int64_t>(fitted.ids.size());
    if (tokens <= room) return fitted;
    if (kept.empty())
      throw UsageError("--template", fmt::format("has {} tokens, more than the {} of a prompt", tokens, room),
                       "use a shorter one, or a larger --chunk");
    fitted.shortened = true;
    // By the share of the tokens that are too many, and by at least one character.
    const double share = static_cast<double>(std::max<std::int64_t>(0, room)) / static_cast<double>(tokens);
    auto length = static_cast<std::size_t>(share * static_cast<double>(kept.size()));
    length = std::min(length, kept.size() - 1);
    while (length > 0 && (static_cast<unsigned char>(kept[length]) & 0xC0) == 0x80) --length;
    kept.resize(length);
  }
}

std::string answer_after(const std::string_view prompt, const std::string& answer) {
  const bool apart = prompt.empty() || is_white(prompt.back()) || answer.empty() || is_white(answer.front());
  return apart ? answer : " " + answer;
}

std::int64_t end_token(const Model& model) {
  for (std::int64_t id = 0; id < model.info().vocabulary; ++id)
    if (model.ends_text(id)) return id;
  return -1;
}

} // namespace hydrascope
