// Tokens of decoders, which carry the spaces and line breaks before them, as figures draw them: from the
// texts that the tokenizer gives for people, in which a line break is \n. Plain header.
#pragma once

#include <string>
#include <string_view>

namespace hydrascope {

// Without the space before a word, which a gap shows. What would not be seen has a sign: other spaces "␣",
// line breaks "↵", tabs "⇥".
std::string drawn_token(std::string_view token);
// The same with a sign for every space: for lists, where a gap shows nothing.
std::string listed_token(std::string_view token);

// Whether a gap separates it from the token before it.
bool begins_word(std::string_view token);
// Whether the next token begins a new line.
bool ends_line(std::string_view token);

} // namespace hydrascope
