#include "engine/figures/token_text.h"

namespace hydrascope {
namespace {

// The character at `at`, escaped or not, if it is one of the blanks; 0: it is none. Its bytes are counted.
char blank_at(const std::string_view token, const std::size_t at, std::size_t& bytes) {
  bytes = 1;
  const char byte = token[at];
  if (byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r') return byte;
  if (byte != '\\' || at + 1 == token.size()) return 0;
  bytes = 2;
  switch (token[at + 1]) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    default: bytes = 1; return 0;
  }
}

} // namespace

std::string listed_token(const std::string_view token) {
  std::string text;
  std::size_t bytes = 1;
  for (std::size_t at = 0; at < token.size(); at += bytes) {
    switch (blank_at(token, at, bytes)) {
      case ' ': text += "␣"; break;
      case '\n': text += "↵"; break;
      case '\t': text += "⇥"; break;
      case '\r': break; // of a line's end, which has its sign
      default: text += token[at];
    }
  }
  return text;
}

std::string drawn_token(const std::string_view token) {
  std::size_t bytes = 1;
  const bool word = token.size() > 1 && token[0] == ' ' && blank_at(token, 1, bytes) == 0;
  return listed_token(word ? token.substr(1) : token);
}

bool begins_word(const std::string_view token) {
  std::size_t bytes = 1;
  return !token.empty() && blank_at(token, 0, bytes) != 0;
}

bool ends_line(const std::string_view token) {
  std::size_t bytes = 1;
  for (std::size_t at = 0; at < token.size(); at += bytes)
    if (blank_at(token, at, bytes) == '\n') return true;
  return false;
}

} // namespace hydrascope
