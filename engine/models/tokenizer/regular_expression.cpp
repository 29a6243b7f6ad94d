#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/models/tokenizer/regular_expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>

#include <fmt/format.h>
#include <pcre2.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/models/tokenizer/stand_ins.h"

namespace hydrascope {
namespace {

std::string in_message(std::string_view pattern) {
  std::size_t shown = std::min<std::size_t>(pattern.size(), 80);
  while (shown < pattern.size() && (static_cast<unsigned char>(pattern[shown]) & 0xC0) == 0x80) --shown;
  return fmt::format("its pattern '{}{}'", pattern.substr(0, shown), shown < pattern.size() ? "…" : "");
}

// Refuses what Oniguruma and PCRE2 read differently, or what only one of them knows. What passes is read
// alike: characters, classes, groups, looking ahead and behind, alternatives and repeats.
class PatternCheck {
public:
  PatternCheck(std::string_view pattern, const std::string& subject) : pattern_(pattern), subject_(subject) {}

  void run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        character_of_class(c);
      } else if (c == '[') {
        begin_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        repeat();
      } else if (c == '^' || c == '$') {
        refuse(std::string("the anchor ") + c);
      } else {
        ++at_;
      }
    }
  }

private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ForeignFile(subject_,
                      fmt::format("{} uses {}, which this program does not read as its library does",
                                  in_message(pattern_), what),
                      "use a model with a tokenizer like GPT-2's, SmolLM2's, Llama 3's or Qwen2's");
  }
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  void escape() {
    if (at_ + 1 >= pattern_.size())
      throw BrokenFile(subject_, in_message(pattern_) + " ends with a backslash", "fetch the file again");
    const char c = pattern_[at_ + 1];
    if (c == 'p' || c == 'P') {
      category();
      return;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 &&
        std::string_view("sSdDrnt").find(c) == std::string_view::npos)
      refuse(std::string("\\") + c);
    at_ += 2;
  }

  void category() {
    static constexpr std::array names{"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N", "Nd",
                                      "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm",
                                      "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co"};
    const std::size_t close = pattern_.find('}', at_);
    std::string_view name;
    if (close != std::string_view::npos && at_ + 2 < pattern_.size() && pattern_[at_ + 2] == '{')
      name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (name.starts_with('^')) name.remove_prefix(1);
    if (std::find(names.begin(), names.end(), name) == names.end())
      refuse(
          fmt::format("the property {}", pattern_.substr(at_, std::min<std::size_t>(close - at_ + 1, 24))));
    at_ = close + 1;
  }

  void begin_class() {
    in_class_ = true;
    at_ += follows("[^") ? 2 : 1;
    if (follows("]")) refuse("a class that begins with ]");
  }
  void character_of_class(char c) {
    if (c == '[') refuse("a class within a class");
    if (follows("&&")) refuse("&& in a class");
    if (c == ']') in_class_ = false;
    ++at_;
  }

  void group() {
    static constexpr std::array known{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    if (follows("(*") || (follows("(?") && std::none_of(known.begin(), known.end(),
                                                        [&](const char* start) { return follows(start); })))
      refuse(fmt::format("the group {}", pattern_.substr(at_, 4)));
    at_ += follows("(?") ? 3 : 1;
  }

  // {n}, {n,} or {n,m}: a + behind them is possessive in PCRE2 alone, a ? behind {n} optional in Oniguruma
  // alone.
  void repeat() {
    const std::size_t close = pattern_.find('}', at_);
    const std::string_view inner =
        close == std::string_view::npos ? std::string_view() : pattern_.substr(at_ + 1, close - at_ - 1);
    const std::size_t comma = inner.find(',');
    const auto is_number = [](std::string_view text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const bool whole = comma == std::string_view::npos;
    const std::string_view most = whole ? inner : inner.substr(comma + 1);
    if (!is_number(inner.substr(0, comma)) || !(whole || most.empty() || is_number(most)))
      refuse("a brace that is no repeat");
    at_ = close + 1;
    if (follows("+") || (whole && follows("?"))) refuse(fmt::format("{{{}}}{}", inner, pattern_[at_]));
  }

  std::string_view pattern_;
  const std::string& subject_;
  std::size_t at_ = 0;
  bool in_class_ = false;
};

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

// What PCRE2 made, which is null where memory runs out.
template <typename T>
T* made(T* const object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  if (pcre2_get_error_message(code, buffer.data(), buffer.size()) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(buffer.data());
}

} // namespace

void RegularExpression::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

RegularExpression::RegularExpression(const std::string& pattern, const std::string& subject)
    : pattern_(pattern), subject_(subject) {
  PatternCheck(pattern, subject).run();
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      made(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF); // a dot matches all but the line feed
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get()));
  if (!code_ && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
  if (!code_)
    throw BrokenFile(
        subject,
        fmt::format("{} is not valid at byte {} ({})", in_message(pattern), offset, error_text(error)),
        "fetch the model's files again");
  // Without a just-in-time compiler (an unusual processor, no executable memory) patterns are interpreted.
  static_cast<void>(pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE));
}

std::vector<RegularExpression::Match> RegularExpression::find_all(std::string_view text) const {
  std::string copy;
  const std::string_view subject = with_stand_ins(text, copy); // of the same length
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(made(pcre2_match_data_create(1, nullptr)));
  std::vector<Match> matches;
  std::size_t from = 0;
  while (from <= text.size()) {
    const auto run = [&](std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data.get(), nullptr);
    };
    int found = run(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(PCRE2_NO_JIT); // the interpreter's memory grows
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (found < 0)
      throw Error(
          subject_,
          fmt::format("{} cannot be applied to this text ({})", in_message(pattern_), error_text(found)),
          "shorten the text, or correct the tokenizer's pattern");
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(data.get());
    const Match match{range[0], range[1]};
    if (match.begin == match.end && !matches.empty() && matches.back().end == match.end) {
      // Searched once more one character further on, as Oniguruma's iterator does.
      from += from < text.size() ? code_point_at(text, from).length : 1;
      continue;
    }
    matches.push_back(match);
    from = match.end;
  }
  return matches;
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain =
        static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

} // namespace hydrascope
