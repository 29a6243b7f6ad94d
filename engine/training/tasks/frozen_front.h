// The part of a model before the first layer that is trained.
#pragma once

#include "engine/run/pass.h"
#include "engine/training/data/augmentation.h"
#include "engine/training/loop/prepared_model.h"

namespace hydrascope::training {

class FrozenFront {
public:
  // With `bfloat16` products are done in it, under autocast.
  FrozenFront(const PreparedModel& prepared, int first, bool bfloat16);

  const Model& model() const { return *pass_.model.model; }
  // (B,N,D), without gradients: what enters block 0, and that after blocks from … first−1. Without `hidden`
  // the input is embedded first.
  at::Tensor embed(const ModelInput& input) const;
  at::Tensor through(const at::Tensor& hidden, const ModelInput& input, int from = 0) const;

private:
  Pass pass_; // through the blocks 0 … first−1
  bool bfloat16_ = false;
};

// The matrices of the blocks among these parameters, in bfloat16. A product with a float32 input is then not
// one of the packed float32 ones, and autocast does it in bfloat16 without converting the matrix each time;
// norms and the residual stream stay float32.
NamedTensors bfloat16_matrices(const NamedTensors& parameters);

// A version of a picture (augmented_copy), prepared for the model; image_size 0: the model's own.
ModelInput prepare_version(const Model& model, const Image& image, int copy, int image_size,
                           const Augmentation& augmentation, std::uint64_t key);

} // namespace hydrascope::training
