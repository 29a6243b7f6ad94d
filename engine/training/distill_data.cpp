#include "engine/training/distill_data.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/runtime/data_files.h"
#include "engine/runtime/token_texts.h"
#include "engine/training/image_folder.h"

namespace hydrascope::training {
namespace {

class TextData final : public DistillData {
public:
  TextData(const PreparedModel& prepared, const DistillRequest& request) {
    const Model& model = *prepared.model;
    std::int64_t cut = 0;
    for (const auto& file : request.data) {
      // Tables and plain texts may stand side by side.
      const bool table = file.extension() == ".tsv";
      const TokenTexts texts = tokenized(
          model, read_texts(file, table ? request.column : 0, table && request.header, request.limit));
      texts_.insert(texts_.end(), texts.texts.begin(), texts.texts.end());
      cut += texts.cut;
    }
    if (cut > 0)
      notes_.push_back(fmt::format("{} texts were cut at {} tokens", cut, model.info().max_tokens));
    if (request.chunk > 0) {
      if (request.chunk < 4 || request.chunk > model.info().max_tokens)
        throw UsageError("--chunk", fmt::format("must lie between 4 and {}", model.info().max_tokens),
                         "choose another");
      texts_ = joined_texts(texts_, request.chunk);
    }
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t length(const std::int64_t item) const override {
    return static_cast<std::int64_t>(texts_[static_cast<std::size_t>(item)].size());
  }
  std::vector<std::string> notes() const override { return notes_; }

  ModelInput batch(const std::vector<std::int64_t>& items) const override {
    std::vector<const TokenIds*> texts;
    for (const std::int64_t item : items) texts.push_back(&texts_[static_cast<std::size_t>(item)]);
    return text_batch(texts);
  }

private:
  std::vector<TokenIds> texts_;
  std::vector<std::string> notes_;
};

class PictureData final : public DistillData {
public:
  PictureData(const PreparedModel& prepared, const DistillRequest& request) : model_(*prepared.model) {
    size_ = request.execution.image_size.value_or(model_.info().image_size);
    for (const auto& folder : request.data)
      for (const auto& file : files_below(folder, request.limit)) add(file);
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(pixels_.size()); }
  std::int64_t length(std::int64_t) const override { return 0; }
  std::vector<std::string> notes() const override { return notes_; }

  ModelInput batch(const std::vector<std::int64_t>& items) const override {
    std::vector<at::Tensor> parts;
    for (const std::int64_t item : items)
      parts.push_back(pixels_[static_cast<std::size_t>(item)].to(at::kFloat));
    ModelInput input;
    input.pixels = at::cat(parts);
    input.layout = layout_;
    return input;
  }

private:
  void add(const std::filesystem::path& file) {
    try {
      const ModelInput input = prepare_picture(model_, load_image(file), size_);
      if (!pixels_.empty() && input.pixels.sizes() != pixels_.front().sizes())
        throw Error(file.string(), "gives another size than the others",
                    "use a model that crops to a square");
      pixels_.push_back(input.pixels.to(at::kHalf)); // thousands of pictures stay in memory
      layout_ = input.layout;
    } catch (const UsageError&) {
      throw;
    } catch (const ForeignFile&) {
      return; // label lists and the like lie among the pictures of many data sets
    } catch (const Error& error) {
      notes_.push_back(fmt::format("skipped {}", error.what()));
    }
  }

  const Model& model_;
  int size_ = 0;
  TokenLayout layout_;
  std::vector<at::Tensor> pixels_; // (1,3,H,W) float16
  std::vector<std::string> notes_;
};

} // namespace

std::unique_ptr<DistillData> make_distill_data(const PreparedModel& prepared, const DistillRequest& request) {
  if (request.data.empty()) throw UsageError("--data", "nothing to train on", "name a file");
  std::unique_ptr<DistillData> data;
  if (prepared.model->info().input == InputKind::text)
    data = std::make_unique<TextData>(prepared, request);
  else
    data = std::make_unique<PictureData>(prepared, request);
  if (data->items() < 2)
    throw UsageError("--data", "needs two items or more: one to train on and one held out",
                     "name another file");
  return data;
}

} // namespace hydrascope::training
