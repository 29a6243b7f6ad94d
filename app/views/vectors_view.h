// What stands behind one weight, feature by feature: q, k, φ(q), φ(k) and their products, or a Hydra kernel's
// global vector with the gate over it. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// One vector, a number for every feature.
struct FeatureStrip {
  std::string name;    // "φ(q)"
  std::string meaning; // one sentence
  std::vector<double> values;
  std::string sum; // "q·k = 3.2"; empty where the sum means nothing
};

struct VectorsView {
  std::vector<FeatureStrip> strips;
  std::vector<std::string> notes; // how the sums become the weight, what was rescaled
  bool global = false;            // a Hydra kernel: the strips are of D features, and each can be looked into
};

// Of the pair of `vectors.query` and `key`.
VectorsView vectors_view(const RunResult& run, const VectorsResult& vectors, std::int64_t key);

// A − B of the vectors that both have and that have equally many features; a note names the others.
VectorsView vectors_difference(const VectorsView& a, const VectorsView& b);

// Which tokens fill feature `feature` of a Hydra kernel's global vector: φ(K)_t,f · V_t,f, (1,N) for a
// sentence or, for a picture, (rows,columns) of its patches. They sum to the vector's entry.
HeatMapPanel filling_panel(const RunResult& run, const VectorsResult& vectors, int feature);
// φ(Q)_f φ(K)_fᵀ, (N,N): one of the D matrices of rank one that a Hydra layer has.
HeatMapPanel rank_one_panel(const RunResult& run, const VectorsResult& vectors, int feature);

// The strips as lines over the features.
Figure vectors_figure(const RunResult& run, const VectorsResult& vectors, const VectorsView& view,
                      std::int64_t key);

} // namespace hydrascope::app
