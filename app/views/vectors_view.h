// The vectors behind one weight, feature by feature: q, k, φ(q), φ(k) and their products, or the global
// vector of a Hydra kernel with its gate. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// One vector, a number per feature.
struct FeatureStrip {
  std::string name;    // "φ(q)"
  std::string meaning; // one sentence
  std::vector<double> values;
  std::string sum; // "q·k = 3.2"; empty if the sum has no meaning
};

struct VectorsView {
  std::vector<FeatureStrip> strips;
  std::vector<std::string> notes; // how the weight follows from the sums; rescaling
  bool global = false;            // a Hydra kernel: strips of D features, each with a map of its own
};

// The vectors of the pair `vectors.query` and `key`; the row's sum is over the keys that the query sees().
VectorsView vectors_view(const RunResult& run, const VectorsResult& vectors, std::int64_t key);

// A − B of the vectors that both have with the same number of features; a note names the others.
VectorsView vectors_difference(const VectorsView& a, const VectorsView& b);

// The contribution of each token to one feature f of a Hydra kernel's global vector, φ(K)_t,f · V_t,f: (1,N)
// for a sentence, (rows,columns) of patches for a picture. The contributions add up to the vector's entry.
HeatMapPanel filling_panel(const RunResult& run, const VectorsResult& vectors, int feature);
// φ(Q)_f φ(K)_fᵀ, (N,N): one of the D rank-one matrices of a Hydra layer.
HeatMapPanel rank_one_panel(const RunResult& run, const VectorsResult& vectors, int feature);

// The strips as lines.
Figure vectors_figure(const RunResult& run, const VectorsResult& vectors, const VectorsView& view,
                      std::int64_t key);

} // namespace hydrascope::app
