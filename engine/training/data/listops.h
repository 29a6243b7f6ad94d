// ListOps of the Long Range Arena (Nangia and Bowman 2018; Tay et al. 2021): nested lists of digits under
// MIN, MAX, MED (the median, rounded down) and SM (the sum modulo 10), whose value is to be told. Plain
// header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hydrascope::training {

// An expression is a digit, or a list with probability 1/4, of 2 to `arguments` expressions; at `depth` only
// digits are left. Of these those are taken that have more than `least` and less than `most` tokens: digits,
// "[MAX" and the like, "]".
struct ListOpsShape {
  int depth = 10, arguments = 10;
  int least = 500, most = 2000;
};

struct ListOpsExpression {
  std::string text; // tokens, a blank between two
  int value = 0;    // 0 … 9
};

// Depends on `key` alone. Throws UsageError if there is hardly any expression of such a length.
ListOpsExpression listops_expression(const ListOpsShape& shape, std::uint64_t key);

struct ListOpsFiles {
  std::filesystem::path training, validation, test; // *.tsv: text, value
};
struct ListOpsCounts {
  int training = 96'000, validation = 2'000, test = 2'000;
};
// Files below the cache folder, which are written unless they are there. No expression occurs twice in them.
// Throws Error (disk full).
ListOpsFiles listops_files(const ListOpsShape& shape, const ListOpsCounts& counts, std::uint64_t seed);

} // namespace hydrascope::training
