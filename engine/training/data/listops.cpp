#include "engine/training/data/listops.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

constexpr std::array<std::string_view, 4> operators{"[MIN", "[MAX", "[MED", "[SM"};
constexpr double share_of_lists = 0.25;

int value_of(const std::size_t operation, std::vector<int> values) {
  switch (operation) {
    case 0: return *std::ranges::min_element(values);
    case 1: return *std::ranges::max_element(values);
    case 2: {
      std::ranges::sort(values);
      const std::size_t middle = values.size() / 2;
      return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }
    default: return std::accumulate(values.begin(), values.end(), 0) % 10;
  }
}

// Writes one random expression, depth first.
class Writer {
public:
  Writer(const ListOpsShape& shape, const std::uint64_t key) : shape_(shape), key_(key) {}

  // Returns the value; −1 as soon as there are too many tokens.
  int write(const int depth) {
    if (depth >= shape_.depth || draw() >= share_of_lists) {
      const int digit = below(10);
      return add(std::to_string(digit)) ? digit : -1;
    }
    const int count = 2 + below(shape_.arguments - 1);
    const auto operation = static_cast<std::size_t>(below(static_cast<int>(operators.size())));
    if (!add(operators[operation])) return -1;
    std::vector<int> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(write(depth + 1));
      if (values.back() < 0) return -1;
    }
    return add("]") ? value_of(operation, std::move(values)) : -1;
  }

  std::string& text() { return text_; }
  int tokens() const { return tokens_; }

private:
  double draw() { return unit(mix({key_, next_++})); }
  int below(const int count) { return static_cast<int>(draw() * count); }
  bool add(const std::string_view token) {
    if (++tokens_ >= shape_.most) return false;
    if (!text_.empty()) text_ += ' ';
    text_ += token;
    return true;
  }

  const ListOpsShape& shape_;
  std::uint64_t key_, next_ = 0;
  std::string text_;
  int tokens_ = 0;
};

} // namespace

ListOpsExpression listops_expression(const ListOpsShape& shape, const std::uint64_t key) {
  if (shape.depth < 1 || shape.arguments < 2 || shape.least < 0 || shape.most < shape.least + 2)
    throw UsageError("--length",
                     fmt::format("of {} to {} tokens leaves no expression", shape.least, shape.most),
                     "write it as 500-2000");
  constexpr std::uint64_t attempts = 1'000'000;
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
    Writer writer(shape, mix({key, attempt}));
    const int value = writer.write(1);
    if (value >= 0 && writer.tokens() > shape.least) return {std::move(writer.text()), value};
  }
  throw UsageError("--length",
                   fmt::format("no expression of {} to {} tokens was found", shape.least, shape.most),
                   "choose a wider range");
}

ListOpsFiles listops_files(const ListOpsShape& shape, const ListOpsCounts& counts, const std::uint64_t seed) {
  const std::filesystem::path folder =
      cache_folder() / "listops" /
      fmt::format("{}-{}-depth{}-arguments{}-{}-{}-{}-seed{}", shape.least, shape.most, shape.depth,
                  shape.arguments, counts.training, counts.validation, counts.test, seed);
  const ListOpsFiles files{folder / "train.tsv", folder / "validation.tsv", folder / "test.tsv"};
  if (std::filesystem::exists(files.test)) return files; // the last one that is written
  create_folders(folder);
  std::unordered_set<std::string> written;
  std::uint64_t next = 0;
  for (const auto& [file, count] :
       {std::pair(files.training, counts.training), std::pair(files.validation, counts.validation),
        std::pair(files.test, counts.test)}) {
    std::string table;
    for (int i = 0; i < count;) {
      const ListOpsExpression expression = listops_expression(shape, mix({seed, 8, next++}));
      if (next > 20 * written.size() + 1000)
        throw UsageError("--length", "there are too few expressions of such a length",
                         "choose a wider range");
      if (!written.insert(expression.text).second) continue;
      table += expression.text;
      table += fmt::format("\t{}\n", expression.value);
      ++i;
    }
    write_file_atomically(file, table);
  }
  return files;
}

} // namespace hydrascope::training
