// The layers before the first trained one, and the cache of what they compute.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/pass.h"
#include "engine/training/data/augmentation.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// The frozen layers of a model.
class FrozenFront {
public:
  // Layers 0 … first−1, with their matrix products in this type (autocast.h).
  FrozenFront(const PreparedModel& prepared, int first, at::ScalarType products);

  const Model& model() const { return *pass_.model.model; }
  // (B,N,D), without gradients: the embedded input, and the output of blocks from … first−1. Without `hidden`
  // the input is embedded first. All on the model's device.
  at::Tensor embed(const ModelInput& input) const;
  at::Tensor through(const at::Tensor& hidden, const ModelInput& input, int from = 0) const;

private:
  Pass pass_; // through the blocks 0 … first−1
  at::ScalarType products_;
};

// A version of a picture (augmented_copy) prepared for the model; image_size 0: the model's own.
ModelInput prepare_version(const Model& model, const Image& image, int copy, int image_size,
                           const Augmentation& augmentation, std::uint64_t key);

// Whether an adapter has weights of the embeddings or of a layer before this one; maps of kernels are none.
bool changes_weights_below(int layer, const AdapterParts& parts);

// ---- The cache ----
// A memory-mapped float16 file in the cache folder (engine/training/data/feature_file.h). All processes that
// train on the same pictures fill it together, and a later run continues where they stopped.

struct FeatureRequest {
  int layer = 0;      // the features are the input of this block
  int image_size = 0; // 0: the model's
  int copies = 1;     // versions of each picture: itself, then augmented ones
  Augmentation augmentation;
  int batch = 16;
  int pictures_a_piece = 64;            // computed by one process and stored at once
  at::ScalarType products = at::kFloat; // type of the matrix products
  std::uint64_t seed = 0;
};

struct Features {
  at::Tensor hidden; // (pictures × copies, N, D) float16, mapped; copy c of picture i is row i · copies + c
  std::vector<bool> usable; // per picture: false for those that could not be decoded
  TokenLayout layout;
  std::vector<std::string> notes; // one per picture that was skipped
  bool complete = true;           // false if stopped
};

// Computes the features that are not cached, starting from cached features of an earlier layer if they are
// valid for this schedule and these adapters. Throws Error (disk full, a file cannot be read, no picture can
// be decoded); what was stored until then stays.
Features cached_features(const PreparedModel& prepared, const ImageFolder& pictures,
                         const FeatureRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop);

} // namespace hydrascope::training
