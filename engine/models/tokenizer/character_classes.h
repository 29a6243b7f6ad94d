// How BERT's tokenizer sorts characters. The classes are those of Hugging Face's tokenizers library, which
// follows an older Unicode than current libraries do: only its own tables give its token ids for every text.
#pragma once

namespace hydrascope {

bool is_removed(char32_t point);     // dropped by clean_text: control, format, private use, U+0000, U+FFFD
bool is_space(char32_t point);       // turned into a space by clean_text
bool is_ideograph(char32_t point);   // set apart by handle_chinese_chars
bool is_nonspacing(char32_t point);  // dropped by strip_accents after decomposition
bool is_punctuation(char32_t point); // a word of its own

} // namespace hydrascope
