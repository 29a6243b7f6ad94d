#include "app/views/command_text.h"

#include <algorithm>

namespace hydrascope::app {
namespace {

std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char character : word) text += character == '\'' ? "'\\''" : std::string(1, character);
  return text + "'";
}

} // namespace

std::string command_text(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::vector<std::string> command_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_quotes = false, inside = false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (character == ' ' && !in_quotes) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (character == '\\' && !in_quotes && index + 1 < text.size()) {
      words.back() += text[++index];
    } else if (character == '\'') {
      in_quotes = !in_quotes;
    } else {
      words.back() += character;
    }
  }
  return words;
}

std::vector<std::string> without_option(std::vector<std::string> words, std::string_view name) {
  const bool letter = !name.starts_with("--");
  std::vector<std::string> kept;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == name) {
      ++index;
      continue;
    }
    const bool attached = word.starts_with(name) && (letter || word[name.size()] == '=');
    if (!attached) kept.push_back(word);
  }
  return kept;
}

} // namespace hydrascope::app
