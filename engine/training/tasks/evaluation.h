// What the evaluations of pictures, texts and maps share: the model, the classes, the counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/data/class_counts.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/tasks/evaluate.h"

namespace hydrascope::training {

class Evaluation {
public:
  // Throws UsageError: a model without classifier.
  Evaluation(const Placement& placement, const EvaluateRequest& request, const TrainingObserver& observer,
             const std::stop_token& stop, std::shared_ptr<ModelStore> models);

  const Placement& placement() const { return placement_; }
  const EvaluateRequest& request() const { return request_; }
  const PreparedModel& prepared() const { return prepared_; }
  const std::shared_ptr<ModelStore>& models() const { return models_; }

  // The classes with these names. Throws UsageError listing the names without a class; `what` they are called
  // there.
  std::vector<std::int64_t> classes_of(const std::vector<std::string>& names, const std::string& what) const;

  // Whether this name is that of the class.
  bool names_class(const std::string& name, std::int64_t target) const;
  const std::stop_token& stop() const { return stop_; }

  void count(std::int64_t target, std::span<const std::int64_t> best) { counts_.add(target, best); }
  // The same for a batch of logits (B,C). Throws Error if they are not finite.
  void count(const std::vector<std::int64_t>& targets, const at::Tensor& batch);
  // The same for predicted numbers (B,1) and their labels.
  void count_numbers(const std::vector<double>& labels, const at::Tensor& batch);
  void note(std::string text);
  // Reports progress. Throws Cancelled if a stop was requested.
  void progress(std::int64_t done, std::int64_t all);

  // Throws Error if nothing was counted.
  EvaluateOutcome outcome() const;

private:
  Placement placement_;
  const EvaluateRequest& request_;
  const TrainingObserver& observer_;
  const std::stop_token& stop_;
  std::shared_ptr<ModelStore> models_;
  PreparedModel prepared_;
  ClassCounts counts_;
  std::vector<double> predicted_, labels_; // numbers
  std::vector<std::string> notes_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The pictures that the request names; `label` is the class, not the sub-folder. Throws Error, UsageError.
std::vector<LabelledImage> labelled_pictures(const Evaluation& evaluation);

EvaluateOutcome evaluate_pictures(Evaluation& evaluation);
EvaluateOutcome evaluate_texts(Evaluation& evaluation);
// Runs picture by picture, for the maps and the predictions of each.
EvaluateOutcome evaluate_maps(Evaluation& evaluation);

} // namespace hydrascope::training
