// Tables of prompts and answers: what a decoder is asked, and how it should go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/inputs.h"

namespace hydrascope {

// A tab-separated table (engine/base/tsv.h) with a prompt and an answer in each line.
struct PromptTable {
  std::filesystem::path file;
  int prompt = 1, answer = 2; // columns, from 1
  bool header = false;        // the first line is skipped
  int limit = 0;              // lines; 0: all
  // The text around each prompt, which stands for {}. \n, \t and \\ mean a line end, a tab and a backslash,
  // here and in the table.
  std::string layout = "{}";
};

struct PromptAndAnswer {
  std::string prompt; // as in the table, without the text around it
  std::string answer;
};

// The lines of a table in its order; empty answers are allowed, empty prompts skipped. Throws Error (missing
// file, no line, a line without one of the columns), UsageError (impossible columns, a layout that does not
// name
// {} once).
std::vector<PromptAndAnswer> read_prompts(const PromptTable& table);

// A prompt within its layout, shortened at the end of the prompt itself until its tokens are at most `room`.
struct FittedPrompt {
  std::string text;
  TokenIds ids;
  bool shortened = false;
};
// Throws UsageError if the layout alone has more tokens.
FittedPrompt fitted_prompt(const Model& model, std::string_view layout, const std::string& prompt,
                           std::int64_t room);

// The answer as it follows a prompt: after a blank, unless one of both has white space there.
std::string answer_after(std::string_view prompt, const std::string& answer);

// A token that ends a text; −1 if the model has none.
std::int64_t end_token(const Model& model);

} // namespace hydrascope
