// Which parameters a fine-tuning trains, as leaves of the gradient graph.
#pragma once

#include <vector>

#include "engine/run/pass.h"
#include "engine/training/data/class_plan.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// What to train: what was asked for, in ascending order, else the layers that the schedule replaces, else the
// last four, with the head. Throws UsageError for a layer that the model does not have, and for one asked for
// twice.
TrainedParts parts_to_train(const std::optional<TrainedParts>& asked, const Schedule& schedule);

// The first of the model's `layers` that is trained: 0 with the embeddings, `layers` with the head alone.
int first_trained(const TrainedParts& parts, int layers);

// "8-11, attention of 10-11 and head" in words, as a checkpoint and the user are told.
std::string text_of(const TrainedParts& parts);

// Copies in float32 that require gradients, by canonical name: everything in `layers`, W_q, W_k, W_v and W_o
// of `attention`, the trainable parameters of their kernels (kernel.LAYER.KERNEL.NAME), and with `head` the
// final LayerNorm, the pooler and the classifier, which starts at zero where the plan makes a new one. With
// low-rank updates their factors (low_rank.h), drawn by `seed`, in place of what the layers hold. Throws
// UsageError where a new classifier is not among the parts.
NamedTensors make_leaves(const PreparedModel& prepared, const TrainedParts& parts, const ClassPlan& plan,
                         const std::optional<LowRank>& low_rank, std::uint64_t seed);

// A model that runs with these parameters, and what its kernels take in each layer.
struct RunnableModel {
  Pass pass; // through all of its blocks

  // Blocks first … L−1 and the classifier: (B,C) float32. Without `hidden` the input is embedded first.
  // `states` takes what each block but the last puts out, (B,N,D).
  at::Tensor logits(const at::Tensor& hidden, const ModelInput& input, int first,
                    std::vector<at::Tensor>* states = nullptr) const;
};
RunnableModel runnable(const PreparedModel& prepared, const NamedTensors& parameters, const ClassPlan& plan);

} // namespace hydrascope::training
