// The deletion curve: the target while more and more tokens are hidden in the order of a focus map. If the
// map marks the tokens that the model depends on, the target falls faster in the map's order than in a random
// one (Samek et al. 2017, "Evaluating the visualization of what a deep neural network has learned", region
// perturbation; Petsiuk et al. 2018, "RISE", section 4.2, the deletion metric). Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/run/quantity.h"

namespace hydrascope {

struct DeletionResult;

struct DeletionKey {
  using Result = DeletionResult;

  int layer = 0;          // whose focus map orders the tokens
  int steps = 10;         // shares 0, 1/steps … 1 of the candidate tokens are hidden
  std::uint64_t seed = 0; // of the random order

  bool operator==(const DeletionKey&) const = default;
};

// The curve of one order; a number for each step.
struct DeletionCurve {
  std::vector<double> values;        // of the target
  std::vector<double> probabilities; // of the target's class; empty where it is not a class
  double area = 0; // under the probabilities, else the values, over the share hidden (trapezoids)
};

struct DeletionResult {
  DeletionKey key;
  std::string target;                            // in words; its class stays that of the whole input
  std::vector<std::int64_t> hidden;              // how many tokens at each step
  std::vector<double> shares;                    // of the candidate tokens
  DeletionCurve most_first, least_first, random; // the map's order, its reverse, a random one
};

const Quantity& quantity_of(const DeletionKey& key);

// The target with these tokens hidden.
struct HiddenTarget {
  double value = 0;
  std::optional<double> probability;
};
using DeletionProbe = std::function<HiddenTarget(std::vector<std::int64_t> hidden)>;

// The number of steps possible with this many candidates, and the number of calls of the probe for them: the
// first and the last step are the same in every order.
int deletion_steps(int steps, std::int64_t candidates);
int deletion_passes(int steps, std::int64_t candidates);

// Hides the `candidates` in the order of `contributions` (N), largest first; `whole` is the target with none
// of them hidden. The probe receives tokens in ascending order. Throws UsageError for less than one step or
// no candidates, and as the probe does.
DeletionResult deletion_curves(const DeletionKey& key, std::span<const float> contributions,
                               std::span<const std::int64_t> candidates, const HiddenTarget& whole,
                               const DeletionProbe& probe);

} // namespace hydrascope
