// Plain header: it is part of a run's result.
#pragma once

namespace hydrascope {

enum class HeadMetric {
  jensen_shannon, // mean over real rows, in nats: 0 … ln 2 (Clark et al. 2019, "What does BERT look at?",
                  // section 6, which sums instead)
  cosine,         // 1 − cosine of the flattened weights: 0 … 2, for weights that are no distributions
};

} // namespace hydrascope
