#include "engine/models/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/models/tokenizer/stand_ins.h"

namespace hydrascope {
namespace {

using Match = RegularExpression::Match;

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Part {
  std::size_t begin, end;
  bool matched;
};

// The matches and what lies between them, which together are the whole text.
std::vector<Part> parts_of(const std::vector<Match>& matches, std::size_t size, bool invert) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  std::size_t at = 0;
  for (const Match& match : matches) {
    if (match.begin > at) parts.push_back({at, match.begin, invert});
    parts.push_back({match.begin, match.end, !invert});
    at = match.end;
  }
  if (at < size) parts.push_back({at, size, invert});
  return parts;
}

// The behaviours that join parts. Of several matches in a row, only the first one is merged.
std::vector<Part> joined(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> result;
  bool before = false;
  const auto add = [&](const Part& part, bool join) {
    if (join && !result.empty()) {
      result.back().begin = std::min(result.back().begin, part.begin);
      result.back().end = std::max(result.back().end, part.end);
    } else {
      result.push_back(part);
    }
    before = part.matched;
  };
  if (behavior == SplitBehavior::merged_with_next) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(*part, part->matched && !before);
    std::reverse(result.begin(), result.end());
  } else {
    const bool contiguous = behavior == SplitBehavior::contiguous;
    for (const Part& part : parts) add(part, contiguous ? part.matched == before : part.matched && !before);
  }
  return result;
}

std::vector<Part> split_by(const std::vector<Match>& matches, std::size_t size, SplitBehavior behavior,
                           bool invert) {
  std::vector<Part> parts = parts_of(matches, size, invert);
  if (behavior == SplitBehavior::isolated) return parts;
  if (behavior != SplitBehavior::removed) return joined(parts, behavior);
  std::erase_if(parts, [](const Part& part) { return part.matched; });
  return parts;
}

std::vector<Match> digits_of(std::string_view text) {
  std::vector<Match> matches;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (is_numeric(point.value)) matches.push_back({at, at + point.length});
    at += point.length;
  }
  return matches;
}

} // namespace

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStep>& steps, const std::string& subject) {
  steps_.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps_[i].settings = steps[i];
    if (const auto* pattern = std::get_if<PatternStep>(&steps[i]))
      steps_[i].pattern.emplace(pattern->pattern, subject);
    const auto* const bytes = std::get_if<ByteLevelStep>(&steps[i]);
    if (bytes != nullptr && bytes->use_regex) steps_[i].pattern.emplace(gpt2_pattern, subject);
  }
}

void PreTokenizer::split_piece(const Step& step, std::string_view text, TextPiece piece,
                               std::vector<TextPiece>& out) {
  text = text.substr(piece.begin, piece.end - piece.begin);
  const auto* const bytes = std::get_if<ByteLevelStep>(&step.settings);
  const bool add_space = bytes != nullptr && bytes->add_prefix_space && !text.starts_with(' ');
  std::string spaced;
  if (add_space) text = spaced.append(1, ' ').append(text);

  std::vector<Part> parts;
  if (const auto* digits = std::get_if<DigitsStep>(&step.settings)) {
    parts = split_by(digits_of(text), text.size(),
                     digits->individual ? SplitBehavior::isolated : SplitBehavior::contiguous, false);
  } else if (const auto* pattern = std::get_if<PatternStep>(&step.settings)) {
    parts = split_by(step.pattern->find_all(text), text.size(), pattern->behavior, pattern->invert);
  } else if (step.pattern) {
    parts = parts_of(step.pattern->find_all(text), text.size(), false);
  } else {
    parts.push_back({0, text.size(), false});
  }
  for (const Part& part : parts) {
    if (part.begin == part.end) continue;
    const bool space = add_space && part.begin == 0;
    const std::size_t shift = add_space ? 1 : 0;
    out.push_back({piece.begin + part.begin - (space ? 0 : shift), piece.begin + part.end - shift, space});
  }
}

std::vector<TextPiece> PreTokenizer::split(std::string_view text) const {
  std::vector<TextPiece> pieces;
  if (!text.empty()) pieces.push_back({0, text.size()});
  for (const Step& step : steps_) {
    std::vector<TextPiece> next;
    next.reserve(pieces.size());
    for (const TextPiece& piece : pieces) split_piece(step, text, piece, next);
    pieces = std::move(next);
  }
  return pieces;
}

} // namespace hydrascope
