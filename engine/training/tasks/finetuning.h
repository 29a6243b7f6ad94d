// The tasks of fine-tuning, one for each objective. Training from nothing is the fine-tuning of all parts of
// a random model.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/loop/loop.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

class FinetuneTask : public TrainingTask {
public:
  virtual const PreparedModel& prepared() const = 0;
  virtual const std::vector<std::string>& notes() const = 0;
  // Whether it was stopped while the data was prepared; nothing else may be called then.
  virtual bool stopped() const { return false; }
};

// Throw Error, UsageError as finetune(); the request has to outlive the task.
std::unique_ptr<FinetuneTask> make_classification(const FinetuneRequest& request,
                                                  const TrainingObserver& observer,
                                                  const std::stop_token& stop, ModelStore& models);
std::unique_ptr<FinetuneTask> make_regression(const FinetuneRequest& request,
                                              const TrainingObserver& observer, const std::stop_token& stop,
                                              ModelStore& models);
std::unique_ptr<FinetuneTask> make_next_token_tuning(const FinetuneRequest& request,
                                                     const std::stop_token& stop, ModelStore& models);
// The one for the request's objective.
std::unique_ptr<FinetuneTask> make_finetuning(const FinetuneRequest& request,
                                              const TrainingObserver& observer, const std::stop_token& stop,
                                              ModelStore& models);

// What an adapter's record says whatever the objective: role, base, layers and command.
AdapterRecord record_of(const PreparedModel& prepared, const TrainedParts& parts, const NamedTensors& stored,
                        const std::string& command);

} // namespace hydrascope::training
