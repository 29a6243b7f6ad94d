// How well the maps of a run explain it: the probability of a picture's class while patches are hidden in a
// map's order (deletion), and while they are shown in it, beginning with none (insertion; Petsiuk et al.
// 2018, "RISE", section 4.2). A hidden patch has the mean colour of the model's normalisation; RISE begins
// its insertion with a blurred picture instead.
#pragma once

#include <string>
#include <vector>

#include "engine/run/run.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/evaluate.h"

namespace hydrascope::training {

// What a map of a run says of each token (N): the larger, the more it matters.
struct TokenMap {
  std::string name;
  std::string what; // one line
  std::vector<float> values;
};

// Collects the curves of picture after picture. Refers to `prepared`; passes run in the placement's type.
class ExplanationCurves {
public:
  // Shares 0, 1/steps … 1 of the patches are hidden; passes run in batches.
  ExplanationCurves(const PreparedModel& prepared, const Placement& placement, int steps, int batch);

  // Of the same maps each time. `target`: the class whose probability is measured. `size`: of the picture, as
  // prepare_picture() takes it. Throws as the model.
  void add(const RunResult& run, std::vector<TokenMap> maps, const Image& picture, int size,
           std::int64_t target);

  std::int64_t items() const { return items_; }
  CurvesOutcome outcome() const; // of at least one picture

private:
  struct Areas {
    std::string name, what;
    std::vector<double> deletion, insertion; // one for each picture
  };
  // The target's probability with these tokens hidden, for each of the lists.
  std::vector<double> probabilities(const ModelInput& whole,
                                    const std::vector<std::vector<std::int64_t>>& hidden,
                                    std::int64_t target) const;

  const PreparedModel& prepared_;
  at::ScalarType type_; // of matrix products
  RunnableModel runnable_;
  int steps_;
  std::size_t batch_;
  std::int64_t items_ = 0;
  std::vector<Areas> areas_; // of the maps, then of the baselines
};

} // namespace hydrascope::training
