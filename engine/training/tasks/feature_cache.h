// What enters the first trained layer, computed once per picture and kept on disk: a memory-mapped float16
// file in the cache folder, named by everything that it depends on. All processes that train on the same
// pictures fill it together, and a later run goes on where they stopped.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/data/augmentation.h"
#include "engine/training/data/image_folder.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

struct FeatureRequest {
  int layer = 0;      // hidden.layer is kept: what enters this block
  int image_size = 0; // 0: the model's
  int copies = 1;     // versions of each picture: itself, then augmented ones
  Augmentation augmentation;
  int batch = 16;
  int pictures_a_piece = 64; // computed before they are kept, by one process
  bool bfloat16 = false;     // matrix products in bfloat16
  std::uint64_t seed = 0;
};

struct Features {
  at::Tensor hidden; // (pictures × copies, N, D) float16, mapped; copy c of picture i is row i · copies + c
  std::vector<bool> usable; // per picture: false for those that could not be read
  TokenLayout layout;
  std::vector<std::string> notes; // one per picture that was skipped
  bool complete = true;           // false if it was stopped
};

// Starts from the cached features of an earlier layer where they exist and hold for this schedule and
// adapters, too. Throws Error (disk full, no picture can be read).
Features cached_features(const PreparedModel& prepared, const ImageFolder& pictures,
                         const FeatureRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop);

} // namespace hydrascope::training
