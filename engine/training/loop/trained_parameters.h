// Which parameters a fine-tuning trains, as leaves of the gradient graph.
#pragma once

#include <optional>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/pass.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// The parts asked for, in ascending order; by default the head and the layers that the schedule replaces, or
// else the last four. Throws UsageError for a layer that the model does not have or that is named twice.
TrainedParts parts_to_train(const std::optional<TrainedParts>& asked, const Schedule& schedule);

// Throws UsageError for low-rank updates without a layer whose attention they could update.
void check_low_rank(const std::optional<LowRank>& low_rank, const TrainedParts& parts);

// The first trained layer of the model's `layers`: 0 with the embeddings, `layers` with the head alone.
int first_trained(const TrainedParts& parts, int layers);

// The parts in words, "layers 8,9 attention of 10 and head", for checkpoints and the user.
std::string text_of(const TrainedParts& parts);

// Float32 copies on the model's device that require gradients, by canonical name: all parameters of `layers`;
// W_q, W_k, W_v and W_o of `attention`; the trainable parameters of their kernels (kernel.LAYER.KERNEL.NAME);
// with `head` the final norm, the pooler and the classifier, which starts at zero if the plan makes a new
// one, of a decoder its own output weights. With low-rank updates the layers have factors (see add_factors),
// drawn by `seed`, instead of their parameters. Throws UsageError if a new classifier is needed but the head
// is not trained.
NamedTensors make_leaves(const PreparedModel& prepared, const TrainedParts& parts, const ClassPlan& plan,
                         const std::optional<LowRank>& low_rank, std::uint64_t seed);

// A model with these parameters and with those of its kernels in each layer.
struct RunnableModel {
  Pass pass; // through all of its blocks

  // The output of blocks first … L−1, of the tokens that the logits read. Without `hidden` the input is
  // embedded first. Both lie on the model's device. The outputs of all blocks but the last, (B,N,D), are
  // appended to `states`.
  at::Tensor output(const at::Tensor& hidden, const ModelInput& input, int first,
                    std::vector<at::Tensor>* states = nullptr) const;
  // The same, and the classifier: (B,C) float32.
  at::Tensor logits(const at::Tensor& hidden, const ModelInput& input, int first,
                    std::vector<at::Tensor>* states = nullptr) const;
};
RunnableModel runnable(const PreparedModel& prepared, const NamedTensors& parameters, const ClassPlan& plan);

// ---- Low-rank updates in place of whole weights (LoRA; Hu et al. 2022, section 4.1) ----
// W + (α / r)·B·A with A (r,in) and B (out,r). W is not changed; B starts at zero, so that training starts
// from the model itself.

// Adds both factors of a weight (out,in) as leaves WEIGHT.lora_A and WEIGHT.lora_B. A is uniform in ±1/√in,
// as in the authors' program, and depends on `key` alone.
void add_factors(NamedTensors& leaves, const std::string& weight, const at::Tensor& value,
                 const LowRank& update, std::uint64_t key);

// The parameters with every pair of factors replaced by the updated weight, float32.
NamedTensors with_updates(const Model& model, const NamedTensors& parameters, const LowRank& update);

} // namespace hydrascope::training
