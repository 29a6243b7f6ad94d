#include "engine/models/tokenizer/byte_pair.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "engine/models/tokenizer/aligned_text.h"

namespace hydrascope {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U |
         static_cast<std::uint32_t>(right);
}

constexpr std::size_t longest_cached_piece = 64; // bytes; longer ones seldom repeat
constexpr std::size_t largest_cache = 1U << 16U; // pieces

} // namespace

// A piece's tokens, with bytes counted from the piece's first.
struct BytePair::Word {
  struct Token {
    std::int32_t id;
    std::size_t begin, end;
  };
  std::vector<Token> tokens;
};

// One call of encode().
class BytePair::Encoder {
public:
  explicit Encoder(const BytePair& tokenizer) : tokenizer_(tokenizer), settings_(tokenizer.settings_) {}

  std::vector<BytePairToken> run(std::string_view text, bool special) {
    if (special) add_outside(settings_.before);
    if (is_utf8(text)) {
      add_text(text);
    } else {
      const AlignedText valid = with_replacements(text);
      const std::size_t first = tokens_.size();
      add_text(valid.text());
      for (std::size_t i = first; i < tokens_.size(); ++i) move_to_source(tokens_[i], valid, 0);
    }
    if (special) add_outside(settings_.after);
    return std::move(tokens_);
  }

private:
  // A run of bytes of a piece, in a list from left to right.
  struct Symbol {
    std::int32_t id = 0;
    std::size_t begin = 0, end = 0;
    std::ptrdiff_t previous = -1, next = -1; // −1: none
    bool joined = false;                     // now part of the symbol before it
  };

  // A merge that was possible when it was queued: that of symbols[at] and the one behind it.
  struct QueuedMerge {
    std::int32_t rank, result;
    std::size_t at;
  };
  // The lowest rank first, of equal ones the leftmost.
  struct Later {
    bool operator()(const QueuedMerge& a, const QueuedMerge& b) const {
      return std::tie(a.rank, a.at) > std::tie(b.rank, b.at);
    }
  };

  void add_outside(const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids) tokens_.push_back({.id = id});
  }

  void add(std::int32_t id, std::size_t begin, std::size_t end) {
    tokens_.push_back({id, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
  }

  static void move_to_source(BytePairToken& token, const AlignedText& text, std::size_t offset) {
    const auto moved = [&](std::int64_t at) {
      return static_cast<std::int64_t>(text.source(static_cast<std::size_t>(at) - offset) + offset);
    };
    token = {token.id, moved(token.begin), moved(token.end)};
  }

  void add_text(std::string_view text) {
    std::size_t at = 0;
    while (const auto match = tokenizer_.literal_.find(text, at)) {
      add_part(text.substr(at, match->begin - at), at);
      add(match->id, match->begin, match->end);
      at = match->end;
    }
    add_part(text.substr(at), at);
  }

  // A text between tokens that are matched as they stand. `offset`: where it begins.
  void add_part(std::string_view part, std::size_t offset) {
    if (!settings_.compose) {
      add_normalized(part, offset);
      return;
    }
    const AlignedText normal = composed(part);
    const std::size_t first = tokens_.size();
    add_normalized(normal.text(), offset);
    for (std::size_t i = first; i < tokens_.size(); ++i) move_to_source(tokens_[i], normal, offset);
  }

  void add_normalized(std::string_view text, std::size_t offset) {
    std::size_t at = 0;
    while (const auto match = tokenizer_.normalized_.find(text, at)) {
      add_pieces(text.substr(at, match->begin - at), offset + at);
      add(match->id, offset + match->begin, offset + match->end);
      at = match->end;
    }
    add_pieces(text.substr(at), offset + at);
  }

  void add_pieces(std::string_view text, std::size_t offset) {
    for (const TextPiece& piece : tokenizer_.pre_tokenizer_.split(text)) {
      const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
      const std::size_t begin = offset + piece.begin;
      if (!piece.space) {
        for (const auto& [id, from, to] : word(part).tokens) add(id, begin + from, begin + to);
        continue;
      }
      spaced_.assign(1, ' ').append(part);
      for (const auto& [id, from, to] : word(spaced_).tokens)
        add(id, begin + (from == 0 ? 0 : from - 1), begin + (to == 0 ? 0 : to - 1));
    }
  }

  const Word& word(std::string_view bytes) {
    if (bytes.size() > longest_cached_piece) {
      fill(uncached_, bytes);
      return uncached_;
    }
    if (cache_.size() >= largest_cache) cache_.clear();
    const auto [entry, fresh] = cache_.try_emplace(std::string(bytes));
    if (fresh) fill(entry->second, bytes);
    return entry->second;
  }

  void fill(Word& word, std::string_view bytes) {
    word.tokens.clear();
    if (settings_.ignore_merges) {
      if (const auto found = tokenizer_.ids_.find(bytes); found != tokenizer_.ids_.end()) {
        word.tokens.push_back({found->second, 0, bytes.size()});
        return;
      }
    }
    make_symbols(bytes);
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) enqueue(i);
    while (!queue_.empty()) {
      const QueuedMerge merge = queue_.top();
      queue_.pop();
      apply(merge);
    }
    for (const Symbol& symbol : symbols_)
      if (!symbol.joined) word.tokens.push_back({symbol.id, symbol.begin, symbol.end});
  }

  void make_symbols(std::string_view bytes) {
    symbols_.clear();
    bool unknown_before = false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::int32_t id = tokenizer_.byte_ids_[static_cast<unsigned char>(bytes[i])];
      const bool unknown = id < 0;
      if (unknown && unknown_before && settings_.fuse_unknown) {
        symbols_.back().end = i + 1;
      } else if (!unknown || settings_.unknown) {
        symbols_.push_back({.id = unknown ? *settings_.unknown : id, .begin = i, .end = i + 1});
        unknown_before = unknown;
      }
    }
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      symbols_[i].previous = static_cast<std::ptrdiff_t>(i) - 1;
      symbols_[i].next = i + 1 < symbols_.size() ? static_cast<std::ptrdiff_t>(i) + 1 : -1;
    }
  }

  Symbol& symbol(std::ptrdiff_t at) { return symbols_[static_cast<std::size_t>(at)]; }

  void enqueue(std::size_t at) {
    const Symbol& left = symbols_[at];
    if (left.next < 0) return;
    if (const RankedMerge* merge = tokenizer_.merge_of(left.id, symbol(left.next).id))
      queue_.push({merge->rank, merge->result, at});
  }

  void apply(const QueuedMerge& queued) {
    Symbol& left = symbols_[queued.at];
    if (left.joined || left.next < 0) return;
    Symbol& right = symbol(left.next);
    // The symbols may have changed since; the reference, too, compares what the merge gives.
    const RankedMerge* const merge = tokenizer_.merge_of(left.id, right.id);
    if (merge == nullptr || merge->result != queued.result) return;
    left.id = merge->result;
    left.end = right.end;
    left.next = right.next;
    right.joined = true;
    if (right.next >= 0) symbol(right.next).previous = static_cast<std::ptrdiff_t>(queued.at);
    if (left.previous >= 0) enqueue(static_cast<std::size_t>(left.previous));
    enqueue(queued.at);
  }

  const BytePair& tokenizer_;
  const BytePairSettings& settings_;
  std::vector<BytePairToken> tokens_;
  std::unordered_map<std::string, Word> cache_;
  Word uncached_;
  std::vector<Symbol> symbols_;
  std::priority_queue<QueuedMerge, std::vector<QueuedMerge>, Later> queue_;
  std::string spaced_;
};

BytePair::BytePair(BytePairSettings settings, const std::string& subject)
    : settings_(std::move(settings)), pre_tokenizer_(settings_.pre_tokenizer, subject) {
  const std::vector<BytePairSettings::Entry>& vocabulary = settings_.vocabulary;
  byte_ids_.assign(256, -1);
  ids_.reserve(vocabulary.size());
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    if (!vocabulary[i].from_text) continue;
    const std::string& bytes = vocabulary[i].bytes;
    ids_.emplace(bytes, static_cast<std::int32_t>(i));
    if (bytes.size() == 1)
      byte_ids_[static_cast<unsigned char>(bytes.front())] = static_cast<std::int32_t>(i);
  }
  merges_.reserve(settings_.merges.size());
  for (std::size_t i = 0; i < settings_.merges.size(); ++i) {
    const BytePairMerge& merge = settings_.merges[i];
    merges_[pair_key(merge.left, merge.right)] = {static_cast<std::int32_t>(i), merge.result};
  }
  settings_.merges = {};
  special_.assign(vocabulary.size(), false);
  std::vector<SpecialToken> literal, normalized;
  for (SpecialToken token : settings_.added) {
    if (token.special) special_[static_cast<std::size_t>(token.id)] = true;
    if (token.normalized && settings_.compose) token.text = composed(token.text).text();
    (token.normalized ? normalized : literal).push_back(std::move(token));
  }
  literal_ = SpecialTokenMatcher(std::move(literal));
  normalized_ = SpecialTokenMatcher(std::move(normalized));
}

const BytePair::RankedMerge* BytePair::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<BytePairToken> BytePair::encode(std::string_view text, bool special) const {
  return Encoder(*this).run(text, special);
}

std::string BytePair::bytes(int id) const {
  if (id < 0 || id > largest_id()) return {};
  return settings_.vocabulary[static_cast<std::size_t>(id)].bytes;
}

bool BytePair::special(int id) const {
  return id >= 0 && id <= largest_id() && special_[static_cast<std::size_t>(id)];
}

std::optional<int> BytePair::end() const {
  if (settings_.ends.empty()) return std::nullopt;
  return settings_.ends.front();
}

} // namespace hydrascope
