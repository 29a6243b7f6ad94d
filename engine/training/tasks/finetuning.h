// The tasks of fine-tuning, one for each objective. Training from nothing is the fine-tuning of all parts of
// a random model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/run.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// What the objectives share: the model, its trained parameters, and AdamW with a warm-up and a cosine.
class FinetuneTask : public TrainingTask {
public:
  const PreparedModel& prepared() const { return prepared_; }
  virtual const std::vector<std::string>& notes() const = 0;
  // Whether it was stopped while the data was prepared; nothing else may be called then.
  virtual bool stopped() const { return false; }

  const NamedTensors& leaves() const override { return leaves_; }
  double weight_decay() const override { return request_.weight_decay; }
  double clip_norm() const override { return 1.0; }
  bool scales_loss() const override { return products_ == at::kHalf; }
  double learning_rate(std::int64_t step, std::int64_t total) const override;
  void describe(const std::vector<double>& /*shown*/, TrainingProgress& /*progress*/) const override {}

protected:
  // Prepares the model and checks which of its parameters are to be trained. Each objective makes the leaves.
  FinetuneTask(const FinetuneRequest& request, std::stop_token stop, ModelStore& models);

  // The parameters with the low-rank updates among them applied.
  NamedTensors weights_of(NamedTensors parameters) const;
  // The tensors of an adapter, with the maps of layers that were not trained: without the adapters that
  // brought them these layers would run with others.
  NamedTensors with_given_maps(NamedTensors tensors) const;
  // The weights of the leaves, detached from the graph, with matrices in the type of the products.
  NamedTensors constant_weights() const;
  // The model with these parameters and the classifier of `plan`.
  RunnableModel runnable_with(const NamedTensors& parameters, const ClassPlan& plan) const;
  // Calls `work` with batches of the held-out items 0 … count − 1, of similar length, until a stop is
  // requested.
  void visit_held_out(std::int64_t count, const ItemLength& length,
                      const std::function<void(const Items& batch)>& work) const;
  // Parts of configuration(). The model, its kernels and which of its parameters are trained.
  std::string model_text() const;
  // Epochs, batch, optimizer, seed and the type of products; not the learning rate, which may change.
  std::string steps_text() const;
  // What an adapter's record says whatever the objective. `stored`: its tensors; `data`: a summary of them.
  AdapterRecord record_of(const NamedTensors& stored, const std::string& data, const Checkpoint& state,
                          const HeldOut& held_out) const;

  const FinetuneRequest& request_;
  const TrainingSettings& settings_;
  std::stop_token stop_;
  ThreadCount threads_;
  Placement placement_;
  at::ScalarType products_; // of the matrix products
  PreparedModel prepared_;
  TrainedParts parts_;
  int first_; // the first trained layer
  std::string data_hash_;
  NamedTensors leaves_;
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

} // namespace hydrascope::training
