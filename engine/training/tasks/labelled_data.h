// The data of fine-tuning: labelled pictures, with cached features of the frozen layers, or labelled texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

enum class Part { training, held_out };

// The input of the first trained layer, for some items.
struct LabelledBatch {
  at::Tensor hidden; // (B,N,D) float32 on the model's device; undefined if the embeddings are trained
  // Mask and layout, for texts the token ids, where the embeddings are trained pixels, on the model's device.
  ModelInput input;
};

class LabelledData {
public:
  virtual ~LabelledData() = default;
  virtual const ClassPlan& plan() const = 0;
  virtual std::int64_t items(Part part) const = 0;
  virtual std::int64_t label(Part part, std::int64_t item) const = 0;  // class
  virtual double number(Part part, std::int64_t item) const = 0;       // regression: its label
  virtual std::int64_t length(Part part, std::int64_t item) const = 0; // tokens
  // Everything random, such as the cached copy of each picture, depends on `key`.
  virtual LabelledBatch batch(Part part, const std::vector<std::int64_t>& items, std::uint64_t key) const = 0;
  // One line for the adapter's metadata: "train (200 classes, 60000 pictures)".
  virtual std::string summary() const = 0;
  virtual std::string items_name() const = 0; // "pictures", "texts"
  // What a resumed run must have in common, in words.
  virtual std::string configuration() const = 0;
  const std::vector<std::string>& notes() const { return notes_; }

protected:
  std::vector<std::string> notes_;
};

// Reads the data and, for pictures, computes the features of layers 0 … first−1 that are not cached yet; null
// if stopped. `first`: the first trained layer; `products`: the type of matrix products (autocast.h). Throws
// Error (labels of a regression that are no numbers), UsageError (nothing to train on, classes that the
// classifier does not know).
std::unique_ptr<LabelledData> make_labelled_data(const PreparedModel& prepared,
                                                 const FinetuneRequest& request, int first,
                                                 at::ScalarType products, const TrainingObserver& observer,
                                                 const std::stop_token& stop);

} // namespace hydrascope::training
