#include "engine/training/tasks/labelled_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/run/inputs.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/tasks/frozen_features.h"

namespace hydrascope::training {
namespace {

// The folder or table of a classification.
const std::filesystem::path& data_of(const FinetuneRequest& request) {
  if (request.data.size() != 1)
    throw UsageError("--data", request.data.empty() ? "nothing to train on" : "several folders or tables",
                     "name one folder or table");
  return request.data.front();
}

// Of names, sizes and times, class by class: pictures need not be read. Other files of the folder do not
// count; the training's own output may lie there. Generated pictures have no times that matter: they are made
// again where the cache was emptied.
std::string hash_of_pictures(const ImageFolder& pictures, const bool generated) {
  const auto line = generated ? listed_file : stamped_file;
  Digest digest(DigestKind::sha256);
  for (const LabelledImage& picture : pictures.images) digest.add(line(picture.file, pictures.path));
  return digest.hexadecimal();
}

std::string hash_of_texts(const std::vector<LabelledText>& texts) {
  Digest digest(DigestKind::sha256);
  for (const LabelledText& text : texts)
    digest.add(fmt::format("{}\t{}\t{}\n", text.text, text.pair.value_or(""), text.label));
  return digest.hexadecimal();
}

// Twelve digits of a hash of the items, given by hashes of theirs, and of the classes with their labels.
std::string hash_with_classes(std::string items, const ClassPlan& plan) {
  for (const std::string& folder : plan.folders) items += "\n" + folder;
  for (const AdapterInfo::Class& one : plan.classes) items += fmt::format("\n{}\t{}", one.id, one.label);
  return sha256_of_text(items).substr(0, 12);
}

// The folders or labels of few classes, the number of many.
std::string classes_text(const ClassPlan& plan) {
  constexpr std::size_t most_named = 10;
  return plan.folders.size() > most_named ? fmt::format("{} classes", plan.folders.size())
                                          : fmt::format("classes {}", fmt::join(plan.folders, ", "));
}

class PictureFeatures final : public LabelledData {
public:
  PictureFeatures(const PreparedModel& prepared, const FinetuneRequest& request,
                  const TrainingObserver& observer)
      : request_(request),
        data_(data_of(request)),
        embeds_(request.trained && request.trained->embeddings),
        device_(prepared.model->device()),
        image_size_(request.settings.execution.image_size.value_or(prepared.model->info().image_size)) {
    const auto labels =
        request.labels.empty() ? std::map<std::string, std::string>{} : read_labels(request.labels);
    plan_ = plan_classes(request.classes, class_folders(data_), prepared.classes, labels);
    if (!plan_.note.empty()) {
      notes_.push_back(plan_.note);
      report_note(observer, plan_.note);
    }
    train_.pictures = list_image_folder(data_, plan_.folders, request.images_per_class);
    held_out_.pictures =
        request.validation.empty()
            ? split_off(train_.pictures, request.settings.validation_share, request.settings.execution.seed)
            : list_image_folder(request.validation, plan_.folders, 0);
    hash_ = hash_with_classes(hash_of_pictures(train_.pictures, request.generated) +
                                  hash_of_pictures(held_out_.pictures, request.generated),
                              plan_);
  }

  // Returns false if stopped.
  bool compute(const PreparedModel& prepared, const int first, const at::ScalarType products,
               const TrainingObserver& observer, const std::stop_token& stop) {
    FeatureRequest features;
    features.layer = first;
    features.image_size = image_size_;
    features.augmentation = request_.augmentation;
    features.seed = request_.settings.execution.seed;
    features.products = products;
    if (request_.copies == 0 || embeds_) front_.emplace(prepared, first, products);
    for (Set* set : {&held_out_, &train_}) {
      set->copies = features.copies = set == &train_ ? request_.copies : 1;
      if (embeds_) set->copies = 0;
      if (set->copies == 0) {
        set->usable.resize(set->pictures.images.size());
        std::iota(set->usable.begin(), set->usable.end(), std::int64_t{0});
        continue;
      }
      set->features = cached_features(prepared, set->pictures, features, observer, stop);
      if (!set->features.complete) return false;
      for (std::size_t i = 0; i < set->features.usable.size(); ++i)
        if (set->features.usable[i]) set->usable.push_back(static_cast<std::int64_t>(i));
      notes_.insert(notes_.end(), set->features.notes.begin(), set->features.notes.end());
    }
    return true;
  }

  const ClassPlan& plan() const override { return plan_; }
  std::int64_t items(const Part part) const override {
    return static_cast<std::int64_t>(set(part).usable.size());
  }
  std::int64_t length(Part, std::int64_t) const override {
    if (!embeds_) return held_out_.features.hidden.size(1);
    if (tokens_ == 0) {
      const TokenLayout layout = versions_of(Part::held_out, {0}, 0).layout;
      tokens_ = layout.prefix + layout.rows * layout.columns;
    }
    return tokens_;
  }
  std::int64_t label(const Part part, const std::int64_t item) const override {
    const auto& picture = set(part).pictures.images[static_cast<std::size_t>(picture_of(part, item))];
    return plan_.targets[static_cast<std::size_t>(picture.label)];
  }
  double number(Part, std::int64_t) const override { return 0; } // folders are classes

  LabelledBatch batch(const Part part, const std::vector<std::int64_t>& items,
                      const std::uint64_t key) const override {
    LabelledBatch result;
    if (embeds_) {
      result.input = placed(front_->model(), versions_of(part, items, key));
      return result;
    }
    result.input.layout = held_out_.features.layout;
    const bool cached = set(part).copies > 0;
    result.hidden = cached ? set(part).features.hidden.index_select(0, rows_of(part, items, key))
                           : front_->embed(placed(front_->model(), versions_of(part, items, key)));
    if (part == Part::training && request_.patch_dropout > 0) {
      result.hidden = result.hidden.index_select(1, kept_tokens(key).to(result.hidden.device()));
      result.input.layout.rows = result.input.layout.columns = 0; // the kept tokens have no grid
    }
    result.hidden =
        cached ? result.hidden.to(device_).to(at::kFloat) : front_->through(result.hidden, result.input);
    return result;
  }

  std::string summary() const override {
    return fmt::format("{} ({} classes, {} pictures)", last_name(data_), plan_.folders.size(),
                       train_.usable.size());
  }
  std::string items_name() const override { return "pictures"; }
  std::string configuration() const override {
    const Augmentation& augmentation = request_.augmentation;
    return fmt::format("{} of hash {}, {} px, {} copies, crop {}, jitter {}{}, patch dropout {}",
                       classes_text(plan_), hash_, image_size_, request_.copies, augmentation.smallest_crop,
                       augmentation.color_jitter, augmentation.flip ? ", flip" : "", request_.patch_dropout);
  }

private:
  struct Set {
    ImageFolder pictures;
    Features features;
    std::vector<std::int64_t> usable; // pictures that could be read
    int copies = 1;
  };
  const Set& set(const Part part) const { return part == Part::training ? train_ : held_out_; }
  std::int64_t picture_of(const Part part, const std::int64_t item) const {
    return set(part).usable[static_cast<std::size_t>(item)];
  }

  // Rows of the cached features: a random copy of each picture.
  at::Tensor rows_of(const Part part, const Items& items, const std::uint64_t key) const {
    Items rows;
    const std::int64_t copies = set(part).copies;
    for (const std::int64_t item : items) {
      const double draw = unit(mix({key, static_cast<std::uint64_t>(item)}));
      rows.push_back(picture_of(part, item) * copies +
                     static_cast<std::int64_t>(draw * static_cast<double>(copies)));
    }
    return at::tensor(rows, at::kLong);
  }

  // Of training pictures new augmented versions, where --copies asks for these, else the pictures themselves.
  ModelInput versions_of(const Part part, const Items& items, const std::uint64_t key) const {
    const int copy = part == Part::training && request_.copies == 0 ? 1 : 0;
    std::vector<at::Tensor> pixels;
    ModelInput input;
    for (const std::int64_t item : items) {
      const auto& picture = set(part).pictures.images[static_cast<std::size_t>(picture_of(part, item))];
      input = prepare_version(front_->model(), load_image(picture.file), copy, image_size_,
                              request_.augmentation, mix({key, static_cast<std::uint64_t>(item)}));
      pixels.push_back(input.pixels);
    }
    input.pixels = at::cat(pixels);
    return input;
  }

  // The tokens that patch dropout keeps in a step, ascending: the prefix and a random set of the patches, the
  // same for all pictures of the batch in all processes.
  at::Tensor kept_tokens(const std::uint64_t key) const {
    const auto [prefix, rows, columns] = held_out_.features.layout;
    const std::int64_t patches = rows * columns;
    const auto kept =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(patches) * (1 - request_.patch_dropout)));
    Items tokens = shuffled(patches, mix({key, 7}));
    tokens.resize(static_cast<std::size_t>(kept));
    for (std::int64_t& token : tokens) token += prefix;
    for (std::int64_t token = 0; token < prefix; ++token) tokens.push_back(token);
    std::ranges::sort(tokens);
    return at::tensor(tokens, at::kLong);
  }

  FinetuneRequest request_;
  const std::filesystem::path& data_;
  bool embeds_; // the embeddings are trained: nothing is cached
  at::Device device_;
  int image_size_ = 0;
  std::optional<FrozenFront> front_; // without cached copies
  mutable std::int64_t tokens_ = 0;  // of a picture, once asked for
  ClassPlan plan_;
  Set train_, held_out_;
  std::string hash_; // of both, and of the classes
};

class LabelledTexts final : public LabelledData {
public:
  LabelledTexts(const PreparedModel& prepared, const FinetuneRequest& request, const int first,
                const at::ScalarType products)
      : request_(request), prepared_(prepared), front_(prepared, first, products) {
    auto train = read_labelled_texts(data_of(request), request.columns, request.header, request.limit);
    std::vector<LabelledText> held_out;
    if (request.validation.empty()) {
      const ItemSplit split =
          split_items(static_cast<std::int64_t>(train.size()), request.settings.validation_share,
                      mix({request.settings.execution.seed, 1}));
      std::vector<LabelledText> rest;
      for (const std::int64_t item : split.held_out)
        held_out.push_back(std::move(train[static_cast<std::size_t>(item)]));
      for (const std::int64_t item : split.training)
        rest.push_back(std::move(train[static_cast<std::size_t>(item)]));
      train = std::move(rest);
    } else {
      held_out = read_labelled_texts(request.validation, request.columns, request.header, 0);
    }
    if (regresses()) {
      plan_ = plan_number(prepared.classes);
      take_numbers(train, data_of(request), train_);
      take_numbers(held_out, request.validation.empty() ? data_of(request) : request.validation, held_out_);
    } else {
      plan_ = planned(train, held_out);
      if (!plan_.note.empty()) notes_.push_back(plan_.note);
      take(train, train_);
      take(held_out, held_out_);
    }
    if (train_.empty() || held_out_.empty())
      throw UsageError("--data", "needs two texts or more: one to train on and one held out",
                       "name another file");
    hash_ = hash_with_classes(hash_of_texts(train) + hash_of_texts(held_out), plan_);
    if (cut_ > 0)
      notes_.push_back(
          fmt::format("{} texts were cut at {} tokens", cut_, prepared.model->info().max_tokens));
  }

  const ClassPlan& plan() const override { return plan_; }
  std::int64_t items(const Part part) const override {
    return static_cast<std::int64_t>(examples(part).size());
  }
  std::int64_t label(const Part part, const std::int64_t item) const override {
    return example(part, item).label;
  }
  double number(const Part part, const std::int64_t item) const override {
    return example(part, item).number;
  }
  std::int64_t length(const Part part, const std::int64_t item) const override {
    return example(part, item).input.token_ids.size(1);
  }

  LabelledBatch batch(const Part part, const std::vector<std::int64_t>& items, std::uint64_t) const override {
    std::vector<const ModelInput*> inputs;
    for (const std::int64_t item : items) inputs.push_back(&example(part, item).input);
    LabelledBatch result;
    result.input = placed(*prepared_.model, padded_batch(inputs));
    if (request_.trained && request_.trained->embeddings) return result;
    result.hidden = front_.through({}, result.input);
    return result;
  }

  std::string summary() const override {
    const std::string labels = regresses() ? "numbers" : fmt::format("{} classes", plan_.folders.size());
    return fmt::format("{} ({}, {} texts)", last_name(data_of(request_)), labels, train_.size());
  }
  std::string items_name() const override { return "texts"; }
  std::string configuration() const override {
    const LabelledColumns& columns = request_.columns;
    return fmt::format("{} of hash {}, columns {}, {} and {}, {}", last_name(data_of(request_)), hash_,
                       columns.text, columns.pair, columns.label,
                       regresses() ? "numbers" : classes_text(plan_));
  }

private:
  struct Example {
    ModelInput input; // B = 1
    std::int64_t label = 0;
    double number = 0; // regression
  };
  bool regresses() const { return request_.objective == Objective::regression; }
  const std::vector<Example>& examples(const Part part) const {
    return part == Part::training ? train_ : held_out_;
  }
  const Example& example(const Part part, const std::int64_t item) const {
    return examples(part)[static_cast<std::size_t>(item)];
  }

  ClassPlan planned(const std::vector<LabelledText>& train, const std::vector<LabelledText>& held_out) const {
    std::set<std::string> labels;
    for (const auto* part : {&train, &held_out})
      for (const LabelledText& text : *part) labels.insert(text.label);
    return plan_classes(
        request_.classes, {labels.begin(), labels.end()}, prepared_.classes,
        request_.labels.empty() ? std::map<std::string, std::string>{} : read_labels(request_.labels));
  }

  Example tokenized_example(const LabelledText& text) {
    Example example;
    example.input = prepared_.model->prepare_text(text.text, text.pair);
    example.input.tokens.clear();
    cut_ += example.input.note.empty() ? 0 : 1;
    return example;
  }

  // Appends the texts whose label is used, tokenized.
  void take(const std::vector<LabelledText>& texts, std::vector<Example>& into) {
    for (const LabelledText& text : texts) {
      const auto found = std::ranges::find(plan_.folders, text.label);
      if (found == plan_.folders.end()) continue;
      into.push_back(tokenized_example(text));
      into.back().label = plan_.targets[static_cast<std::size_t>(found - plan_.folders.begin())];
    }
  }

  void take_numbers(const std::vector<LabelledText>& texts, const std::filesystem::path& file,
                    std::vector<Example>& into) {
    const std::vector<double> numbers = label_numbers(texts, file);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      into.push_back(tokenized_example(texts[i]));
      into.back().number = numbers[i];
    }
  }

  FinetuneRequest request_;
  const PreparedModel& prepared_;
  FrozenFront front_;
  ClassPlan plan_;
  std::vector<Example> train_, held_out_;
  std::string hash_; // of both, and of the classes
  std::int64_t cut_ = 0;
};

} // namespace

std::unique_ptr<LabelledData> make_labelled_data(const PreparedModel& prepared,
                                                 const FinetuneRequest& request, const int first,
                                                 const at::ScalarType products,
                                                 const TrainingObserver& observer,
                                                 const std::stop_token& stop) {
  if (prepared.model->info().input == InputKind::text) {
    if (const std::filesystem::path& data = data_of(request); std::filesystem::is_directory(data))
      throw UsageError("--data " + data.string(), "is a folder, but the model takes texts",
                       "name a tab-separated table, or another --model");
    auto texts = std::make_unique<LabelledTexts>(prepared, request, first, products);
    for (const auto& note : texts->notes()) report_note(observer, note);
    return texts;
  }
  if (request.copies < 0 || request.copies > most_copies)
    throw UsageError("--copies", fmt::format("must lie between 0 and {}", most_copies), "name fewer");
  if (request.trained && request.trained->embeddings && (request.mixup > 0 || request.patch_dropout > 0))
    throw UsageError("--train-layers embeddings", "are not trained with --mixup or --patch-dropout",
                     "leave these out");
  auto pictures = std::make_unique<PictureFeatures>(prepared, request, observer);
  try {
    if (!pictures->compute(prepared, first, products, observer, stop)) return nullptr;
  } catch (const Cancelled&) {
    return nullptr;
  }
  return pictures;
}

} // namespace hydrascope::training
