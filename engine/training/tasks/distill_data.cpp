#include "engine/training/tasks/distill_data.h"

#include <algorithm>
#include <iterator>

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "engine/base/capture.h"
#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/models/capture/capture_model.h"
#include "engine/run/inputs.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/data/sampling.h"
#include "engine/training/tasks/frozen_features.h"
#include "engine/training/tasks/running_text.h"

namespace hydrascope::training {
namespace {

class TextData final : public DistillData {
public:
  TextData(const PreparedModel& prepared, const DistillRequest& request) {
    const Model& model = *prepared.model;
    const ChunkLengths chunk = checked_chunk(request.chunk, model.info());
    check_pair_column(request.column, request.pair_column);
    if (request.copies > 1)
      throw UsageError("--copies", "makes random crops of pictures; these data are texts", "leave it out");
    for (const auto& file : request.data)
      // Tables and plain texts may be mixed.
      if (file.extension() == ".tsv" || chunk.most == 0)
        take_lines(model, request, file);
      else if (model.info().causal)
        for (const TokenIds& piece :
             pieces_of_files(model, {file}, chunk, request.limit, request.settings.execution.seed))
          texts_.push_back(text_batch({&piece}));
      else
        take_chunks(model, request, file);
    if (cut_ > 0)
      notes_.push_back(fmt::format("{} texts were cut at {} tokens", cut_, model.info().max_tokens));
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t length(const std::int64_t item) const override {
    return texts_[static_cast<std::size_t>(item)].token_ids.size(1);
  }
  std::string hash() const override {
    Digest digest(DigestKind::sha256);
    for (const ModelInput& text : texts_) {
      const at::Tensor ids = text.token_ids.contiguous();
      digest.add(fmt::format("{}\n", ids.numel()));
      digest.add({static_cast<const char*>(ids.const_data_ptr()), ids.nbytes()});
    }
    return digest.hexadecimal();
  }
  std::vector<std::string> notes() const override { return notes_; }

  ModelInput batch(const std::vector<std::int64_t>& items) const override {
    std::vector<const ModelInput*> texts;
    for (const std::int64_t item : items) texts.push_back(&texts_[static_cast<std::size_t>(item)]);
    return padded_batch(texts);
  }

private:
  void take_lines(const Model& model, const DistillRequest& request, const std::filesystem::path& file) {
    const bool table = file.extension() == ".tsv";
    TokenizedTexts read =
        tokenized(model, read_pairs(file, table ? request.column : 0, table ? request.pair_column : 0,
                                    table && request.header, request.limit));
    std::ranges::move(read.texts, std::back_inserter(texts_));
    cut_ += read.cut;
  }
  void take_chunks(const Model& model, const DistillRequest& request, const std::filesystem::path& file) {
    const TokenizedTexts texts = tokenized(model, read_pairs(file, 0, 0, false, request.limit));
    for (const TokenIds& piece : chunks(token_ids_of(texts.texts), request))
      texts_.push_back(text_batch({&piece}));
    cut_ += texts.cut;
  }

  // Pieces of the joined text, of the requested length or of lengths drawn uniformly on a logarithmic scale.
  static std::vector<TokenIds> chunks(const std::vector<TokenIds>& texts, const DistillRequest& request) {
    if (request.chunk.least == 0 || request.chunk.least == request.chunk.most)
      return joined_texts(texts, request.chunk.most);
    std::vector<TokenIds> pieces;
    const std::vector<TokenIds> joined = joined_texts(texts, 0);
    if (joined.empty()) return pieces; // no text has a token
    const TokenIds& all = joined.front();
    for (std::size_t begin = 1; begin + 1 < all.size();) {
      const double draw = unit(mix({request.settings.execution.seed, 6, begin}));
      const auto length = static_cast<std::size_t>(drawn_length(request.chunk, draw)) - 2;
      const std::size_t end = std::min(all.size() - 1, begin + length);
      TokenIds piece{all.front()};
      piece.insert(piece.end(), all.begin() + static_cast<std::ptrdiff_t>(begin),
                   all.begin() + static_cast<std::ptrdiff_t>(end));
      piece.push_back(all.back());
      pieces.push_back(std::move(piece));
      begin = end;
    }
    return pieces;
  }

  std::vector<ModelInput> texts_; // of one text or pair each
  std::int64_t cut_ = 0;
  std::vector<std::string> notes_;
};

class PictureData final : public DistillData {
public:
  PictureData(const PreparedModel& prepared, const DistillRequest& request, const std::stop_token& stop)
      : model_(*prepared.model), copies_(request.copies), seed_(request.settings.execution.seed) {
    size_ = request.settings.execution.image_size.value_or(model_.info().image_size);
    for (const auto& folder : request.data)
      for (const auto& file : files_below(folder, request.limit)) add(file, folder, stop);
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(pixels_.size()) / copies_; }
  std::int64_t copies() const override { return copies_; }
  std::int64_t length(std::int64_t) const override { return layout_.prefix + layout_.rows * layout_.columns; }
  std::string hash() const override { return sha256_of_text(list_); }
  std::vector<std::string> notes() const override { return notes_; }

  ModelInput batch(const std::vector<std::int64_t>& versions) const override {
    std::vector<at::Tensor> parts;
    for (const std::int64_t version : versions)
      parts.push_back(pixels_[static_cast<std::size_t>(version)].to(at::kFloat));
    ModelInput input;
    input.pixels = at::cat(parts);
    input.layout = layout_;
    return input;
  }

private:
  void add(const std::filesystem::path& file, const std::filesystem::path& folder,
           const std::stop_token& stop) {
    try {
      const std::string listed = stamped_file(file, folder);
      const Image image = load_image(file);
      const auto item = static_cast<std::uint64_t>(items());
      std::vector<at::Tensor> versions;
      for (int copy = 0; copy < copies_; ++copy) {
        if (stop.stop_requested()) throw Cancelled();
        const ModelInput input = prepare_version(model_, image, copy, size_, {}, mix({seed_, 7, item}));
        const at::Tensor& first = !pixels_.empty() ? pixels_.front()
                                  : copy > 0       ? versions.front()
                                                   : input.pixels;
        if (input.pixels.sizes() != first.sizes())
          throw Error(file.string(), "gives another size than the others",
                      "use a model that crops to a square");
        versions.push_back(input.pixels.to(at::kHalf)); // thousands of pictures stay in memory
        layout_ = input.layout;
      }
      pixels_.insert(pixels_.end(), versions.begin(), versions.end());
      list_ += listed;
    } catch (const UsageError&) {
      throw;
    } catch (const ForeignFile&) {
      return; // such as the label lists among many data sets' pictures
    } catch (const Error& error) {
      notes_.push_back(fmt::format("skipped {}", error.what()));
    }
  }

  const Model& model_;
  int size_ = 0, copies_ = 1;
  std::uint64_t seed_ = 0;
  TokenLayout layout_;
  std::vector<at::Tensor> pixels_; // of every version, picture by picture: (1,3,H,W) float16
  std::string list_;               // of the pictures that were read
  std::vector<std::string> notes_;
};

// The lines of a capture's files, by which a change of numbers outside its sample is noticed.
std::string stamps_of(const std::filesystem::path& capture) {
  if (!std::filesystem::is_directory(capture)) return stamped_file(capture, capture.parent_path());
  std::string lines;
  const Capture opened = Capture::open(capture);
  for (const SafetensorsFile& file : opened.files()) lines += stamped_file(file.path(), capture);
  return lines;
}

// Every sequence of captures of one model.
class CaptureData final : public DistillData {
public:
  CaptureData(const PreparedModel& prepared, const DistillRequest& request)
      : device_(prepared.model->device()),
        sequences_(capture_sequences(request.data, prepared.model->info())) {
    if (request.limit > 0 && sequences_.size() > static_cast<std::size_t>(request.limit))
      sequences_.resize(static_cast<std::size_t>(request.limit));
    const bool by_stamps = names_folder(request);
    std::filesystem::path file; // of the sequence before
    for (const auto& sequence : sequences_) {
      const CaptureInfo capture = *read_capture_info(sequence).capture;
      if (by_stamps && capture.file != file) hashes_ += stamps_of(capture.file);
      file = capture.file;
      hashes_ += fmt::format("{} {} {}\n", capture.hash, capture.part, capture.item);
      lengths_.push_back(capture.queries > 0 ? capture.queries : capture.tokens);
    }
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(sequences_.size()); }
  std::int64_t length(const std::int64_t item) const override {
    return lengths_[static_cast<std::size_t>(item)];
  }
  ModelInput batch(const std::vector<std::int64_t>& items) const override {
    return capture_of(items.front())->recorded_input();
  }
  std::shared_ptr<const Model> capture_of(const std::int64_t item) const override {
    return placed_capture(load_capture(sequences_[static_cast<std::size_t>(item)]), device_, at::kFloat);
  }
  std::string hash() const override { return sha256_of_text(hashes_); }
  std::vector<std::string> notes() const override {
    if (items() > 1) return {};
    return {"the capture holds one sequence: the maps are trained and measured on the same"};
  }

private:
  at::Device device_;
  std::vector<std::filesystem::path> sequences_;
  std::vector<std::int64_t> lengths_;
  std::string hashes_; // of the sequences, a line each, and lines of their files
};

} // namespace

bool names_folder(const DistillRequest& request) {
  return std::ranges::any_of(request.data, [](const std::filesystem::path& one) {
    return std::filesystem::is_directory(capture_path(one));
  });
}

std::unique_ptr<DistillData> make_distill_data(const PreparedModel& prepared, const DistillRequest& request,
                                               const std::stop_token& stop) {
  if (request.data.empty()) throw UsageError("--data", "nothing to train on", "name a file");
  if (request.copies < 1 || request.copies > most_copies)
    throw UsageError("--copies", fmt::format("must lie between 1 and {}", most_copies),
                     "leave it out to train on each picture as it is");
  if (prepared.model->info().capture) {
    if (request.copies > 1) throw UsageError("--copies", "a capture has no pictures to crop", "leave it out");
    return std::make_unique<CaptureData>(prepared, request);
  }
  std::unique_ptr<DistillData> data;
  if (prepared.model->info().input == InputKind::text)
    data = std::make_unique<TextData>(prepared, request);
  else
    data = std::make_unique<PictureData>(prepared, request, stop);
  if (data->items() < 2)
    throw UsageError("--data", "needs two items or more: one to train on and one held out",
                     "name another file");
  return data;
}

} // namespace hydrascope::training
