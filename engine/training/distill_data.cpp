#include "engine/training/distill_data.h"

#include <algorithm>
#include <sstream>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/plain/error.h"
#include "engine/plain/paths.h"
#include "engine/training/image_folder.h"

namespace hydrascope::training {
namespace {

std::vector<std::int64_t> to_vector(const at::Tensor& ids) {
  const at::Tensor flat = ids.flatten().contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

// Long sequences out of short ones: the words of all lines one after another, cut to `length` tokens, each
// piece with its own first and last special token.
std::vector<std::vector<std::int64_t>> joined(const std::vector<std::vector<std::int64_t>>& lines,
                                              const int length) {
  std::vector<std::vector<std::int64_t>> chunks;
  if (lines.empty()) return chunks;
  const std::int64_t first = lines.front().front(), last = lines.front().back();
  std::vector<std::int64_t> chunk{first};
  const auto close = [&] {
    chunk.push_back(last);
    chunks.push_back(std::exchange(chunk, {first}));
  };
  for (const auto& line : lines)
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      chunk.push_back(line[i]);
      if (static_cast<int>(chunk.size()) + 1 >= length) close();
    }
  if (chunk.size() > 1) close();
  return chunks;
}

class TextData final : public DistillData {
public:
  TextData(const PreparedModel& prepared, const DistillRequest& request) {
    const Model& model = *prepared.model;
    std::int64_t cut = 0;
    for (const auto& file : request.data)
      for (const auto& text : read_texts(file, request.column, request.header, request.limit)) {
        const ModelInput input = model.prepare_text(text);
        texts_.push_back(to_vector(input.token_ids));
        cut += input.note.empty() ? 0 : 1;
      }
    if (cut > 0)
      notes_.push_back(fmt::format("{} texts were cut at {} tokens", cut, model.info().max_tokens));
    if (request.chunk > 0) {
      if (request.chunk < 4 || request.chunk > model.info().max_tokens)
        throw UsageError("--chunk", fmt::format("must lie between 4 and {}", model.info().max_tokens),
                         "choose another");
      texts_ = joined(texts_, request.chunk);
    }
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t length(const std::int64_t item) const override {
    return static_cast<std::int64_t>(texts_[static_cast<std::size_t>(item)].size());
  }
  std::vector<std::string> notes() const override { return notes_; }

  ModelInput batch(const std::vector<std::int64_t>& items) const override {
    std::int64_t longest = 0;
    for (const std::int64_t item : items) longest = std::max(longest, length(item));
    const auto rows = static_cast<std::int64_t>(items.size());
    ModelInput input;
    input.token_ids = at::zeros({rows, longest}, at::kLong);
    input.token_types = at::zeros({rows, longest}, at::kLong);
    input.mask = at::zeros({rows, longest}, at::kBool);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto& text = texts_[static_cast<std::size_t>(items[static_cast<std::size_t>(row)])];
      const auto count = static_cast<std::int64_t>(text.size());
      input.token_ids[row].slice(0, 0, count).copy_(at::tensor(text, at::kLong));
      input.mask[row].slice(0, 0, count).fill_(true);
    }
    return input;
  }

private:
  std::vector<std::vector<std::int64_t>> texts_; // token ids with the special tokens
  std::vector<std::string> notes_;
};

class PictureData final : public DistillData {
public:
  PictureData(const PreparedModel& prepared, const DistillRequest& request) : model_(*prepared.model) {
    size_ = request.execution.image_size.value_or(model_.info().image_size);
    for (const auto& folder : request.data) {
      if (!std::filesystem::is_directory(folder))
        throw Error(folder.string(), "no such folder",
                    "distilling a model for images takes folders of pictures");
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      // --limit takes pictures evenly from the whole, which may be sorted by class.
      const std::size_t wanted = request.limit > 0 ? static_cast<std::size_t>(request.limit) : files.size();
      for (std::size_t i = 0; i < std::min(wanted, files.size()); ++i)
        add(files[i * files.size() / std::min(wanted, files.size())]);
    }
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

std::vector<std::string> read_texts(const std::filesystem::path& file, const int column, const bool header,
                                    const int limit) {
  std::string whole = read_text_file(file);
  if (whole.starts_with("\xef\xbb\xbf")) whole.erase(0, 3);
  const bool table = file.extension() == ".tsv" && column > 0;
  std::istringstream lines(whole);
  std::vector<std::string> texts;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (header && number == 1 && file.extension() == ".tsv") continue;
    if (table) {
      std::istringstream cells(line);
      std::string cell;
      for (int i = 0; i < column; ++i)
        if (!std::getline(cells, cell, '\t'))
          throw Error(file.string(), fmt::format("line {} has no column {}", number, column),
                      "choose another --column");
      line = cell;
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    texts.push_back(line);
    if (limit > 0 && static_cast<int>(texts.size()) >= limit) break;
  }
  return texts;
}

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
