#include "engine/training/feature_cache.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/from_file.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/plain/error.h"
#include "engine/plain/file_lock.h"
#include "engine/plain/paths.h"
#include "engine/training/frozen_front.h"
#include "engine/training/random.h"

namespace hydrascope::training {
namespace {

using nlohmann::json;

// Changes when what is cached changes its meaning.
constexpr const char* cache_version = "features 2";

// Everything that hidden.layer of these pictures depends on.
std::string cache_key(const PreparedModel& prepared, const ImageFolder& pictures,
                      const FeatureRequest& request, const int layer) {
  json key = {{"version", cache_version},
              {"layer", layer},
              {"image_size", request.image_size},
              {"copies", request.copies},
              {"bfloat16", request.bfloat16}};
  if (request.copies > 1)
    key["augmentation"] = {request.seed, request.augmentation.smallest_crop,
                           request.augmentation.color_jitter, request.augmentation.flip};
  key["model"] = prepared.model->hash();
  // An adapter that changes later layers only leaves these features as they are.
  for (const auto& adapter : prepared.adapters)
    for (const auto& one : adapter.layers)
      if (one.layer < layer) {
        key["adapters"].push_back(adapter.hash);
        break;
      }
  for (int i = 0; i < layer; ++i)
    key["kernels"].push_back(prepared.schedule.layers[static_cast<std::size_t>(i)].text());
  for (const auto& picture : pictures.images)
    key["pictures"].push_back({std::filesystem::relative(picture.file, pictures.path).string(),
                               std::filesystem::file_size(picture.file),
                               std::filesystem::last_write_time(picture.file).time_since_epoch().count()});
  return sha256_of_text(key.dump());
}

constexpr const char* no_cache_remedy = "set XDG_CACHE_HOME to a folder that can be written";

// The files of a key, without their endings; the folder is made.
std::filesystem::path cache_file(const std::string& key) {
  const auto folder = cache_folder() / "features";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  if (!std::filesystem::is_directory(folder))
    throw Error(folder.string(), "cannot be created", no_cache_remedy);
  return folder / key;
}

// The mapped file and how far it is filled.
class FeatureFile {
public:
  FeatureFile(const std::string& key, const std::int64_t pictures)
      : usable(static_cast<std::size_t>(pictures), true),
        data_(cache_file(key) += ".half"),
        state_(cache_file(key) += ".json") {
    read_state(pictures);
  }

  // The number of tokens is known once the first picture went through the model.
  void map(const std::int64_t rows, const TokenLayout& shape, const std::int64_t width) {
    layout = shape;
    const std::int64_t tokens = layout.prefix + layout.rows * layout.columns;
    const std::int64_t count = rows * tokens * width;
    const int file = open(data_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) throw Error(data_.string(), std::strerror(errno), no_cache_remedy);
    // Writing to a mapped file that the disk has no room for would end the program.
    const int result = posix_fallocate(file, 0, count * 2);
    close(file);
    if (result != 0) {
      std::filesystem::remove(data_);
      throw Error(data_.string(),
                  fmt::format("no room for {:.1f} GB of features ({})", static_cast<double>(count) * 2e-9,
                              std::strerror(result)),
                  "free some space, set XDG_CACHE_HOME to another disk, or use fewer images or copies");
    }
    hidden =
        at::from_file(data_.string(), true, count, at::TensorOptions(at::kHalf)).view({rows, tokens, width});
    width_ = width;
  }

  void save_state() const {
    const json state = {{"done", done},
                        {"usable", usable},
                        {"notes", notes},
                        {"width", width_},
                        {"prefix", layout.prefix},
                        {"rows", layout.rows},
                        {"columns", layout.columns}};
    write_file_atomically(state_, state.dump());
  }

  std::int64_t done = 0; // pictures
  std::int64_t width() const { return width_; }
  std::vector<bool> usable;
  std::vector<std::string> notes;
  TokenLayout layout;
  at::Tensor hidden;

private:
  void read_state(const std::int64_t pictures) {
    if (!std::filesystem::exists(state_) || !std::filesystem::exists(data_)) return;
    try {
      const json state = json::parse(read_text_file(state_));
      auto marks = state.at("usable").get<std::vector<bool>>();
      if (static_cast<std::int64_t>(marks.size()) != pictures) return;
      notes = state.at("notes").get<std::vector<std::string>>();
      layout = {state.at("prefix"), state.at("rows"), state.at("columns")};
      width_ = state.at("width");
      usable = std::move(marks);
      done = state.at("done");
    } catch (const json::exception&) {
      done = 0; // it is a cache: what cannot be read is made again
    }
  }

  std::filesystem::path data_, state_;
  std::int64_t width_ = 0;
};

// Fills a feature file batch by batch.
class FeatureMaker {
public:
  FeatureMaker(const PreparedModel& prepared, const ImageFolder& pictures, const FeatureRequest& request,
               const TrainingObserver& observer)
      : front_(prepared, request.layer, request.bfloat16),
        pictures_(pictures),
        request_(request),
        observer_(observer) {}

  // Pictures file.done … last−1 from their files.
  void from_pictures(FeatureFile& file, const std::int64_t last) const {
    std::vector<at::Tensor> pixels;
    ModelInput input;
    for (std::int64_t i = file.done; i < last; ++i) {
      auto one = read(file, i);
      if (!one) continue;
      if (!pixels.empty() && one->pixels.sizes().slice(2) != pixels.front().sizes().slice(2))
        throw Error(picture(i).file.string(), "gives another size than the others",
                    "use --image-size with a model that crops to a square");
      pixels.push_back(one->pixels);
      input = std::move(*one);
    }
    if (pixels.empty()) return;
    input.pixels = at::cat(pixels);
    const at::Tensor hidden = front_.through(front_.embed(input), input);
    if (!file.hidden.defined()) file.map(rows(), input.layout, front_.model().info().width);
    std::int64_t row = 0;
    for (std::int64_t i = file.done; i < last; ++i) {
      if (!file.usable[static_cast<std::size_t>(i)]) continue;
      file.hidden.slice(0, i * request_.copies, (i + 1) * request_.copies)
          .copy_(hidden.slice(0, row, row + request_.copies));
      row += request_.copies;
    }
  }

  // The same from the features of an earlier layer.
  void from_earlier(FeatureFile& file, const std::int64_t last, const int layer,
                    const FeatureFile& earlier) const {
    ModelInput input;
    input.layout = earlier.layout;
    if (!file.hidden.defined()) file.map(rows(), input.layout, front_.model().info().width);
    const std::int64_t from = file.done * request_.copies, to = last * request_.copies;
    const at::Tensor before = earlier.hidden.slice(0, from, to).to(at::kFloat);
    file.hidden.slice(0, from, to).copy_(front_.through(before, input, layer));
  }

private:
  std::int64_t rows() const { return static_cast<std::int64_t>(pictures_.images.size()) * request_.copies; }
  const LabelledImage& picture(const std::int64_t i) const {
    return pictures_.images[static_cast<std::size_t>(i)];
  }

  // The pixels of all copies of a picture; nothing if it cannot be read, which is noted.
  std::optional<ModelInput> read(FeatureFile& file, const std::int64_t i) const {
    try {
      const Image image = load_image(picture(i).file);
      std::vector<at::Tensor> pixels;
      ModelInput input;
      for (int copy = 0; copy < request_.copies; ++copy) {
        input = prepare_version(front_.model(), image, copy, request_.image_size, request_.augmentation,
                                mix({request_.seed, static_cast<std::uint64_t>(i)}));
        pixels.push_back(input.pixels);
      }
      input.pixels = at::cat(pixels);
      return input;
    } catch (const UsageError&) {
      throw; // a size that is not possible is no file's fault
    } catch (const Error& error) {
      file.usable[static_cast<std::size_t>(i)] = false;
      file.notes.push_back(fmt::format("skipped {}", error.what()));
      if (observer_) {
        TrainingProgress progress;
        progress.phase = "features";
        progress.step = i;
        progress.steps = static_cast<std::int64_t>(pictures_.images.size());
        progress.note = file.notes.back();
        observer_(progress);
      }
      return std::nullopt;
    }
  }

  FrozenFront front_;
  const ImageFolder& pictures_;
  const FeatureRequest& request_;
  const TrainingObserver& observer_;
};

struct EarlierFeatures {
  int layer = 0;
  FeatureFile file;
};

// The latest earlier layer whose features are complete.
std::optional<EarlierFeatures> earlier_features(const PreparedModel& prepared, const ImageFolder& pictures,
                                                const FeatureRequest& request) {
  const auto count = static_cast<std::int64_t>(pictures.images.size());
  for (int layer = request.layer - 1; layer > 0; --layer) {
    FeatureFile file(cache_key(prepared, pictures, request, layer), count);
    if (file.done != count || file.width() == 0) continue;
    file.map(count * request.copies, file.layout, file.width());
    return EarlierFeatures{layer, std::move(file)};
  }
  return std::nullopt;
}

} // namespace

Features cached_features(const PreparedModel& prepared, const ImageFolder& pictures,
                         const FeatureRequest& request, const TrainingObserver& observer,
                         const std::stop_token& stop) {
  const auto count = static_cast<std::int64_t>(pictures.images.size());
  const std::string key = cache_key(prepared, pictures, request, request.layer);
  // Another process that trains on the same pictures fills the file for both.
  const FileLock lock(cache_file(key) += ".lock", stop, no_cache_remedy);
  FeatureFile file(key, count);
  if (file.width() > 0) file.map(count * request.copies, file.layout, file.width());
  const auto earlier = file.done < count ? earlier_features(prepared, pictures, request) : std::nullopt;
  if (earlier) {
    file.usable = earlier->file.usable;
    file.notes = earlier->file.notes;
  }
  const FeatureMaker maker(prepared, pictures, request, observer);
  const auto begin = std::chrono::steady_clock::now();
  auto saved = begin;
  const std::int64_t first = file.done;
  while (file.done < count && !stop.stop_requested()) {
    const std::int64_t last =
        std::min<std::int64_t>(count, file.done + std::max(1, request.batch / request.copies));
    if (earlier)
      maker.from_earlier(file, last, earlier->layer, earlier->file);
    else
      maker.from_pictures(file, last);
    file.done = last;
    const auto now = std::chrono::steady_clock::now();
    if (now - saved > std::chrono::seconds(20)) {
      file.save_state();
      saved = now;
    }
    if (!observer) continue;
    TrainingProgress progress;
    progress.phase = "features";
    progress.step = file.done;
    progress.steps = count;
    progress.items_per_second = static_cast<double>(file.done - first) /
                                std::max(1e-9, std::chrono::duration<double>(now - begin).count());
    observer(progress);
  }
  if (file.done > first) file.save_state();
  Features features;
  features.complete = file.done == count;
  if (!file.hidden.defined() && features.complete)
    throw Error(pictures.path.string(), "none of its pictures can be read",
                file.notes.empty() ? std::string() : file.notes.front());
  features.hidden = file.hidden;
  features.usable = std::move(file.usable);
  features.layout = file.layout;
  features.notes = std::move(file.notes);
  return features;
}

} // namespace hydrascope::training
