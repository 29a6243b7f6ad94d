// How well numbers follow others, such as predictions follow labels. Plain header.
#pragma once

#include <span>
#include <vector>

namespace hydrascope {

// Pearson's product-moment correlation, −1 to 1: Σ(x − x̄)(y − ȳ) / √(Σ(x − x̄)² · Σ(y − ȳ)²) (Pearson 1895,
// "Note on regression and inheritance in the case of two parents"). 0 if one of both is constant, as no order
// follows from it; NaN if a number is. Both have the same length.
double pearson_correlation(std::span<const double> x, std::span<const double> y);

// The rank of each value, from 1 for the smallest; equal values have the mean of their ranks.
std::vector<double> ranks(std::span<const double> values);

// Spearman's rank correlation, −1 to 1: Pearson's of the ranks (Spearman 1904, "The proof and measurement of
// association between two things"), ties averaged. 0 if one of both is constant.
double spearman_correlation(std::span<const double> x, std::span<const double> y);

} // namespace hydrascope
