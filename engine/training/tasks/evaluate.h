// Accuracy of a model's classifier on labelled data, the correlation of predicted numbers with labels, and
// the pointing game of a model's maps. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/model_store.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/training.h"

namespace hydrascope {

// Data is a folder with a sub-folder of pictures per class, for text models a tab-separated table.
// Sub-folders and labels are matched with the ids of the classifier's classes, else with their labels, else,
// for classes without an id, with their numbers (the keys of config.json's id2label). The labels of a model
// with one output are numbers.
struct EvaluateRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleChoice schedule;
  std::filesystem::path data;
  int limit = 0; // pictures: this many, taken evenly from all; texts: the first ones; 0: all
  // Pictures.
  std::vector<std::string> classes; // sub-folders to use; empty: all
  int images_per_class = 0;         // 0: all
  std::filesystem::path boxes;      // TSV with header image, class, x0, y0, x1, y1; empty: no pointing game
  int curve_steps = 0;              // of deletion and insertion curves; 0: none
  // Texts.
  LabelledColumns columns;
  bool header = false; // the first line of the table is skipped

  int batch = 16;
  ExecutionOptions execution;
};

// The pointing game (engine/measure/pointing.h) on the pictures that have a box of their own class.
struct PointingOutcome {
  struct Method {
    std::string name; // focus, rollout, attention, centre, chance
    double share = 0; // of the maps whose maximum lies in a box
    std::string what; // a description, one line
  };
  std::int64_t items = 0;
  std::vector<Method> methods;
  std::int64_t empty_focus_maps = 0; // without a positive contribution; they count as misses
};

struct MeanWithError {
  double mean = 0;
  double standard_error = 0; // of the mean, over the items; 0 with one
};

// Deletion and insertion curves (explanation_curves.h): areas under the probability of the true class.
struct CurvesOutcome {
  struct Method {
    std::string name; // focus, rollout, attention, centre, random
    std::string what; // a description, one line
    MeanWithError deletion, insertion;
  };
  // `of` − `from`, picture by picture: what the pictures have in common does not count as spread.
  struct Difference {
    std::string of, from;
    MeanWithError deletion, insertion;
  };
  std::int64_t items = 0;
  std::vector<Method> methods;
  std::vector<Difference> differences; // of each method and each after it
};

struct EvaluateOutcome {
  std::int64_t items = 0;
  std::int64_t classes = 0;   // of the classifier; 1: it predicts a number
  double top1 = 0, top5 = 0;  // shares from 0 to 1; of numbers 0
  double constant_answer = 0; // the top-1 of always answering the commonest class; of numbers 0
  // Texts: Matthews correlation; F1 of class 1 where there are two classes, else the mean over the classes
  // that occur or are predicted ("macro"), as `f1_of` says.
  std::optional<double> matthews, f1;
  std::string f1_of;
  // Predicted numbers: their correlations with the labels (engine/measure/correlation.h), and the mean
  // squared error in the labels' unit.
  std::optional<double> pearson, spearman, squared_error;
  std::optional<PointingOutcome> pointing;
  std::optional<CurvesOutcome> curves;
  std::string model_hash;
  std::vector<AdapterInfo> adapters;
  std::vector<std::string> notes; // skipped files, cut texts, measures that do not apply
};

// Throws Error (labels that are no numbers, where the model predicts one), UsageError (sub-folders or labels
// that match no class, listing all; a model without a classifier; boxes for a text model).
EvaluateOutcome evaluate(const EvaluateRequest& request, const TrainingObserver& observer = {},
                         const std::stop_token& stop = {},
                         const std::shared_ptr<ModelStore>& models = make_model_store());
// The same in a given placement, whatever the request's device and dtype.
EvaluateOutcome evaluate_in(const Placement& placement, const EvaluateRequest& request,
                            const TrainingObserver& observer = {}, const std::stop_token& stop = {},
                            const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
