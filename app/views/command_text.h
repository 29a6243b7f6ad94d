// A command line as one text that a shell reads back as the same words. Plain header.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope::app {

// Quoted where a shell would otherwise change a word.
std::string command_text(std::span<const std::string> words);
// The words of a text that command_text wrote, without their quotes.
std::vector<std::string> command_words(std::string_view text);

// The words without an option and its value, in each form it may have: `--name VALUE`, `--name=VALUE`, and
// for a name of one letter `-n VALUE`, `-nVALUE`. `name` comes with its dashes.
std::vector<std::string> without_option(std::vector<std::string> words, std::string_view name);

} // namespace hydrascope::app
