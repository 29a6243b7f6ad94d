#include "engine/training/tasks/recall_data.h"

#include <algorithm>

#include "engine/training/data/random.h"

namespace hydrascope::training {
namespace {

// What a number of a sequence is drawn for.
enum Purpose : std::uint64_t { a_value, a_key, the_last_key };

std::size_t below(const std::size_t count, const std::uint64_t bits) {
  return static_cast<std::size_t>(unit(bits) * static_cast<double>(count));
}

} // namespace

RecallSequence recall_sequence(const RecallTask& task, const std::uint64_t seed, const RecallPart part,
                               const std::int64_t index) {
  const std::uint64_t own =
      mix({seed, 0x7265'63616c6cULL, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(index)});
  const auto keys = static_cast<std::size_t>(task.keys), values = static_cast<std::size_t>(task.values);
  std::vector<std::size_t> value_of(keys);
  for (std::size_t key = 0; key < keys; ++key) value_of[key] = keys + below(values, mix({own, a_value, key}));

  RecallSequence sequence;
  std::vector<std::size_t> occurred; // keys, in the order of their first occurrence
  const auto append = [&](const std::size_t key) {
    sequence.tokens.push_back(static_cast<std::int64_t>(key));
    if (std::ranges::find(occurred, key) == occurred.end())
      occurred.push_back(key);
    else
      sequence.recalled.push_back(static_cast<std::int64_t>(sequence.tokens.size()));
    sequence.tokens.push_back(static_cast<std::int64_t>(value_of[key]));
  };
  const auto pairs = static_cast<std::size_t>(task.tokens) / 2 - 1;
  for (std::size_t pair = 0; pair < pairs; ++pair) append(below(keys, mix({own, a_key, pair})));
  append(occurred[below(occurred.size(), mix({own, the_last_key}))]);
  return sequence;
}

} // namespace hydrascope::training
