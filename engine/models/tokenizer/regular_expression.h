// The regular expressions of pre-tokenizers, by PCRE2. The library that tokenizers are made with uses
// Oniguruma; what the two read differently is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace hydrascope {

class RegularExpression {
public:
  struct Match {
    std::size_t begin, end; // bytes
    bool operator==(const Match&) const = default;
  };

  // Throws BrokenFile (not a pattern), ForeignFile (not the same in PCRE2), both naming `subject`.
  RegularExpression(const std::string& pattern, const std::string& subject);

  // All matches from left to right. An empty match directly behind another one is left out. The text must be
  // valid UTF-8. Throws Error if a match takes too many steps.
  std::vector<Match> find_all(std::string_view text) const;

private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::string pattern_, subject_;
};

// A pattern that matches exactly the text.
std::string literal_pattern(std::string_view text);

} // namespace hydrascope
