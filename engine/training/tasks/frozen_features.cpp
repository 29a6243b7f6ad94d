#include "engine/training/tasks/frozen_features.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/training/data/feature_file.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/autocast.h"

namespace hydrascope::training {
namespace {

std::shared_ptr<const Model> with_matrices_in(const at::ScalarType type,
                                              const std::shared_ptr<const Model>& model) {
  NamedTensors parameters;
  for (const auto& name : model->parameter_names()) parameters[name] = model->parameter(name);
  return model->with_parameters(matrices_in(type, parameters));
}

} // namespace

FrozenFront::FrozenFront(const PreparedModel& prepared, const int first, const at::ScalarType products)
    : products_(products) {
  auto model =
      products != at::kFloat && first > 0 ? with_matrices_in(products, prepared.model) : prepared.model;
  const auto& all = prepared.schedule.layers;
  std::vector<LayerKernel> kernels = layer_kernels(*model, {all.begin(), all.begin() + first});
  pass_ = plain_pass(std::move(model), std::move(kernels));
  pass_.observed = false;
}

at::Tensor FrozenFront::embed(const ModelInput& input) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(model().device(), products_);
  return model().embed(input);
}

at::Tensor FrozenFront::through(const at::Tensor& hidden, const ModelInput& input, const int from) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(model().device(), products_);
  Pass pass = pass_;
  pass.input.input = input;
  pass.first_layer = from;
  pass.hidden = hidden;
  return run_pass(pass).output;
}

ModelInput prepare_version(const Model& model, const Image& image, const int copy, const int image_size,
                           const Augmentation& augmentation, const std::uint64_t key) {
  const int side = image_size > 0 ? image_size : model.info().image_size;
  return prepare_picture(model, augmented_copy(image, copy, side, augmentation, key), image_size);
}

bool changes_weights_below(const int layer, const AdapterParts& parts) {
  return parts.embeddings || (!parts.layers.empty() && *parts.layers.begin() < layer);
}

namespace {

using nlohmann::json;

// Increased when the cached values change their meaning.
constexpr const char* cache_version = "features 3";

// Whether an adapter changes what enters this layer. Its metadata list the layers that it trained, but not
// the embeddings.
bool changes_input_of(const int layer, const AdapterParts& parts) {
  return changes_weights_below(layer, parts) || (!parts.maps.empty() && parts.maps.begin()->first < layer);
}

// Everything that hidden.layer of these pictures depends on.
std::string cache_key(const PreparedModel& prepared, const ImageFolder& pictures,
                      const FeatureRequest& request, const int layer) {
  json key = {{"version", cache_version},
              {"layer", layer},
              {"image_size", request.image_size},
              {"copies", request.copies},
              {"bfloat16", request.products == at::kBFloat16}};
  if (request.products == at::kHalf) key["float16"] = true;
  if (const at::Device device = prepared.model->device(); !device.is_cpu())
    key["device"] = c10::DeviceTypeName(device.type(), /*lower_case=*/true); // rounds otherwise
  if (request.copies > 1)
    key["augmentation"] = {request.seed, request.augmentation.smallest_crop,
                           request.augmentation.color_jitter, request.augmentation.flip};
  key["model"] = prepared.model->hash();
  // What the weights alone do not say: activations, norms, and how pictures are prepared.
  for (const char* const name : {"config.json", "preprocessor_config.json"})
    if (const auto file = prepared.model->info().folder / name; std::filesystem::exists(file))
      key[name] = sha256_of_file(file);
  for (const AppliedAdapter& adapter : prepared.adapters)
    if (changes_input_of(layer, adapter.parts)) key["adapters"].push_back(adapter.info.hash);
  for (int i = 0; i < layer; ++i)
    key["kernels"].push_back(prepared.schedule.layers[static_cast<std::size_t>(i)].text());
  for (const auto& picture : pictures.images)
    key["pictures"].push_back({std::filesystem::relative(picture.file, pictures.path).string(),
                               std::filesystem::file_size(picture.file),
                               std::filesystem::last_write_time(picture.file).time_since_epoch().count()});
  return sha256_of_text(text_of_json(key));
}

// Reports the progress of all processes after each batch of this one.
class FeatureProgress {
public:
  FeatureProgress(const TrainingObserver& observer, const std::int64_t filled, const std::int64_t pictures)
      : observer_(observer), pictures_(pictures), first_(filled) {}

  void report(const std::int64_t filled, std::string note = {}) const {
    if (!observer_) return;
    TrainingProgress progress;
    progress.phase = "features";
    progress.step = filled;
    progress.steps = pictures_;
    progress.note = std::move(note);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    progress.items_per_second = static_cast<double>(filled - first_) / std::max(1e-9, passed.count());
    observer_(progress);
  }

private:
  const TrainingObserver& observer_;
  std::int64_t pictures_, first_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The latest earlier layer whose features are complete.
struct EarlierFeatures {
  int layer = 0;
  FeatureFile file;
  at::Tensor hidden;
};

FeatureFile file_of(const PreparedModel& prepared, const ImageFolder& pictures, const FeatureRequest& request,
                    const int layer) {
  return {cache_key(prepared, pictures, request, layer), static_cast<std::int64_t>(pictures.images.size()),
          request.copies, request.pictures_a_piece};
}

std::optional<EarlierFeatures> earlier_features(const PreparedModel& prepared, const ImageFolder& pictures,
                                                const FeatureRequest& request) {
  for (int layer = request.layer - 1; layer > 0; --layer) {
    FeatureFile file = file_of(prepared, pictures, request, layer);
    if (!file.complete() || file.empty()) continue;
    at::Tensor hidden = file.map();
    return EarlierFeatures{layer, std::move(file), std::move(hidden)};
  }
  return std::nullopt;
}

// Computes pieces of the features, batch by batch.
class FeatureMaker {
public:
  FeatureMaker(const PreparedModel& prepared, const ImageFolder& pictures, const FeatureRequest& request,
               const FeatureProgress& progress, std::stop_token stop)
      : front_(prepared, request.layer, request.products),
        pictures_(pictures),
        request_(request),
        progress_(progress),
        stop_(std::move(stop)),
        earlier_(earlier_features(prepared, pictures, request)) {}

  // `filled`: pictures of other pieces. Throws Cancelled.
  void fill(FeatureFile::Piece& piece, const std::int64_t filled) const {
    const std::int64_t step = std::max(1, request_.batch / request_.copies);
    for (std::int64_t first = piece.first; first < piece.last; first += step) {
      const std::int64_t last = std::min(piece.last, first + step);
      if (earlier_)
        from_earlier(piece, first, last);
      else
        from_pictures(piece, first, last, filled + first - piece.first);
      progress_.report(filled + last - piece.first);
    }
  }

private:
  void throw_if_stopped() const {
    if (stop_.stop_requested()) throw Cancelled();
  }

  // compute(from, end) of the rows 0 … count − 1, a batch at a time; on the CPU. Throws Cancelled.
  template <typename Compute>
  at::Tensor in_batches(const std::int64_t count, const Compute& compute) const {
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < count; first += request_.batch) {
      throw_if_stopped();
      parts.push_back(compute(first, std::min(count, first + request_.batch)).to(at::kCPU));
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts);
  }

  // Computes pictures first … last−1 from their files.
  void from_pictures(FeatureFile::Piece& piece, const std::int64_t first, const std::int64_t last,
                     const std::int64_t filled) const {
    std::vector<at::Tensor> pixels;
    ModelInput input;
    for (std::int64_t i = first; i < last; ++i) {
      auto one = read(piece, i, filled);
      if (!one) continue;
      if (!pixels.empty() && one->pixels.sizes().slice(2) != pixels.front().sizes().slice(2))
        throw Error(picture(i).file.string(), "gives another size than the others",
                    "use --image-size with a model that crops to a square");
      pixels.push_back(one->pixels);
      input = std::move(*one);
    }
    if (pixels.empty()) return;
    const at::Tensor all = at::cat(pixels);
    const at::Tensor hidden = in_batches(all.size(0), [&](const std::int64_t from, const std::int64_t end) {
      ModelInput part = input;
      part.pixels = all.slice(0, from, end);
      return front_.through({}, placed(front_.model(), std::move(part)));
    });
    std::int64_t row = 0;
    for (std::int64_t i = first; i < last; ++i) {
      if (piece.skipped.contains(i)) continue;
      put(piece, i, hidden.slice(0, row, row + request_.copies), input.layout);
      row += request_.copies;
    }
  }

  // Computes them from the features of an earlier layer.
  void from_earlier(FeatureFile::Piece& piece, const std::int64_t first, const std::int64_t last) const {
    ModelInput input;
    input.layout = earlier_->file.layout();
    const at::Tensor before = earlier_->hidden.slice(0, first * request_.copies, last * request_.copies);
    const at::Tensor hidden =
        in_batches(before.size(0), [&](const std::int64_t from, const std::int64_t end) {
          const at::Tensor part = before.slice(0, from, end).to(front_.model().device()).to(at::kFloat);
          return front_.through(part, input, earlier_->layer);
        });
    put(piece, first, hidden, input.layout);
    const auto& skipped = earlier_->file.skipped();
    piece.skipped.insert(skipped.lower_bound(first), skipped.lower_bound(last));
  }

  // Stores `hidden`, on the CPU, of all copies of consecutive pictures from `first` on, in the piece.
  void put(FeatureFile::Piece& piece, const std::int64_t first, const at::Tensor& hidden,
           const TokenLayout& layout) const {
    if (!piece.hidden.defined()) {
      const std::int64_t rows = (piece.last - piece.first) * request_.copies;
      piece.hidden = at::zeros({rows, hidden.size(1), hidden.size(2)}, at::TensorOptions(at::kHalf));
      piece.layout = layout;
    }
    piece.hidden.narrow(0, (first - piece.first) * request_.copies, hidden.size(0)).copy_(hidden);
  }

  const LabelledImage& picture(const std::int64_t i) const {
    return pictures_.images[static_cast<std::size_t>(i)];
  }

  // The pixels of all copies of a picture; nullopt, with a note, if its bytes are no picture. Throws Error if
  // they cannot be read, which another time they may: the cache would leave the picture out for ever.
  std::optional<ModelInput> read(FeatureFile::Piece& piece, const std::int64_t i,
                                 const std::int64_t filled) const {
    const std::string file = picture(i).file.string(), bytes = read_text_file(file);
    try {
      const Image image = decode_image(bytes, file);
      std::vector<at::Tensor> pixels;
      ModelInput input;
      for (int copy = 0; copy < request_.copies; ++copy) {
        throw_if_stopped();
        input = prepare_version(front_.model(), image, copy, request_.image_size, request_.augmentation,
                                mix({request_.seed, static_cast<std::uint64_t>(i)}));
        pixels.push_back(input.pixels);
      }
      input.pixels = at::cat(pixels);
      return input;
    } catch (const UsageError&) {
      throw; // an impossible size is not an error of the file
    } catch (const Error& error) {
      piece.skipped[i] = fmt::format("skipped {}", error.what());
      progress_.report(filled, piece.skipped[i]);
      return std::nullopt;
    }
  }

  FrozenFront front_;
  const ImageFolder& pictures_;
  const FeatureRequest& request_;
  const FeatureProgress& progress_;
  std::stop_token stop_;
  std::optional<EarlierFeatures> earlier_;
};

// Returns false if stopped.
bool fill(FeatureFile& file, const PreparedModel& prepared, const ImageFolder& pictures,
          const FeatureRequest& request, const TrainingObserver& observer, const std::stop_token& stop) {
  if (file.complete()) return true;
  const FeatureProgress progress(observer, file.filled(), static_cast<std::int64_t>(pictures.images.size()));
  const FeatureMaker maker(prepared, pictures, request, progress, stop);
  try {
    while (!stop.stop_requested()) {
      if (auto piece = file.take()) {
        maker.fill(*piece, file.filled());
        file.store(*piece, stop);
      } else {
        if (file.complete()) return true;
        sleep_for(std::chrono::milliseconds(100), stop); // other processes have the rest
      }
    }
  } catch (const Cancelled&) {
    return false; // in the midst of a piece
  }
  return false;
}

} // namespace

Features cached_features(const PreparedModel& prepared, const ImageFolder& pictures,
                         const FeatureRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop) {
  FeatureFile file = file_of(prepared, pictures, request, request.layer);
  Features features;
  features.complete = fill(file, prepared, pictures, request, observer, stop);
  features.usable.assign(pictures.images.size(), true);
  for (const auto& [picture, note] : file.skipped()) {
    features.usable[static_cast<std::size_t>(picture)] = false;
    features.notes.push_back(note);
  }
  if (!features.complete) return features;
  if (file.empty())
    throw Error(pictures.path.string(), "none of its pictures can be read",
                features.notes.empty() ? std::string() : features.notes.front());
  features.hidden = file.map();
  features.layout = file.layout();
  return features;
}

} // namespace hydrascope::training
