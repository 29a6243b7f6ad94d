#include "engine/run/inputs.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/base/tsv.h"

namespace hydrascope {
namespace {

constexpr std::size_t kKeptImages = 4;

void check_utf8(const std::string& text) {
  if (const auto invalid = first_invalid_utf8(text))
    throw UsageError("text", invalid_utf8_text(text, *invalid), "give it as UTF-8");
}

PreparedInput prepare_text(const AppliedModel& model, const TextInput& text) {
  if (model.model->info().input != InputKind::text)
    throw UsageError("text", fmt::format("the model {} takes pictures", model.model->info().name),
                     "give a picture, or choose a text model with --model");
  check_utf8(text.text);
  if (text.pair) check_utf8(*text.pair);
  PreparedInput prepared;
  prepared.input = model.model->prepare_text(text.text, text.pair);
  prepared.tokens = prepared.input.token_ids.size(1);
  prepared.key = fmt::format("text|{}|{}|{}", text.text.size(), text.text, text.pair.has_value());
  if (text.pair) prepared.key += '|' + *text.pair;
  return prepared;
}

} // namespace

const std::string& InputPreparer::hash_of(const std::shared_ptr<const Image>& image) {
  std::erase_if(image_hashes_, [](const auto& entry) { return entry.first.expired(); });
  for (const auto& [known, hash] : image_hashes_)
    if (known.lock() == image) return hash;
  const std::string_view bytes(reinterpret_cast<const char*>(image->rgb.data()), image->rgb.size());
  image_hashes_.emplace_back(image, sha256_of_text(bytes));
  return image_hashes_.back().second;
}

PreparedInput InputPreparer::prepare(const AppliedModel& model, const RunInput& input,
                                     std::optional<int> image_size) {
  if (const auto& capture = model.model->info().capture) {
    PreparedInput prepared;
    prepared.input = model.model->recorded_input();
    prepared.key = fmt::format("capture|{}|{}|{}", capture->hash, capture->part, capture->item);
    prepared.tokens = capture->tokens;
    if (const auto* picture = std::get_if<ImageInput>(&input); picture != nullptr && picture->image)
      prepared.input.crop = {0, 0, static_cast<double>(picture->image->width),
                             static_cast<double>(picture->image->height)};
    return prepared;
  }
  if (const auto* text = std::get_if<TextInput>(&input)) return prepare_text(model, *text);

  const ImageInput& picture = std::get<ImageInput>(input);
  const ModelInfo& info = model.model->info();
  if (info.input != InputKind::image)
    throw UsageError("picture", fmt::format("the model {} takes text", info.name),
                     "give a text, or choose a vision model with --model");
  if (!picture.image) throw UsageError("picture", "there is none", "open a picture");
  if (!image_size) image_size = model.adapter_image_size();

  const std::string key =
      fmt::format("image|{}|{}x{}|{}|{}|{}", hash_of(picture.image), picture.image->width,
                  picture.image->height, image_size.value_or(0), info.folder.string(), info.stamp);
  const auto known =
      std::find_if(images_.begin(), images_.end(), [&](const auto& kept) { return kept.key == key; });
  if (known != images_.end()) {
    std::rotate(known, known + 1, images_.end());
    return images_.back();
  }
  PreparedInput prepared;
  prepared.key = key;
  prepared.input = model.model->prepare_image(*picture.image, image_size);
  const TokenLayout& layout = prepared.input.layout;
  prepared.tokens = layout.prefix + layout.rows * layout.columns;
  if (images_.size() >= kKeptImages) images_.erase(images_.begin());
  images_.push_back(prepared);
  return prepared;
}

PreparedInput with_hidden_tokens(const Model& model, PreparedInput whole,
                                 const std::vector<std::int64_t>& tokens) {
  if (tokens.empty()) return whole;
  PreparedInput hidden = std::move(whole);
  hidden.input = model.with_hidden(std::move(hidden.input), tokens);
  hidden.key += fmt::format("|without {}", fmt::join(tokens, ","));
  return hidden;
}

std::vector<TokenInfo> token_infos(const ModelInfo& model, const ModelInput& input) {
  std::vector<TokenInfo> tokens;
  if (model.input == InputKind::text) {
    for (const TextToken& token : input.tokens) tokens.push_back({token.text, token.word, token.special});
    return tokens;
  }
  const auto prefix_text = [&](std::int64_t i) -> std::string {
    if (i == 0) return "[class]";
    return has_distillation_token(input.layout.prefix) ? "[distillation]" : fmt::format("[register {}]", i);
  };
  for (std::int64_t i = 0; i < input.layout.prefix; ++i) tokens.push_back({prefix_text(i), -1, true});
  for (std::int64_t row = 0; row < input.layout.rows; ++row)
    for (std::int64_t column = 0; column < input.layout.columns; ++column)
      tokens.push_back({fmt::format("row {}, column {}", row + 1, column + 1), -1, false});
  return tokens;
}

std::vector<std::string> read_texts(const std::filesystem::path& file, int column, bool header, int limit) {
  std::vector<std::string> texts;
  for (TextOrPair& one : read_pairs(file, column, 0, header, limit)) texts.push_back(std::move(one.text));
  return texts;
}

std::vector<TextOrPair> read_pairs(const std::filesystem::path& file, int column, int pair_column,
                                   bool header, int limit) {
  check_pair_column(column, pair_column);
  std::vector<TextOrPair> texts;
  for (const TsvLine& line : read_tsv(file)) {
    if (header && line.number == 1) continue;
    std::string text = column > 0 ? tsv_cell(line, column, file, "--column")
                                  : fmt::format("{}", fmt::join(line.cells, "\t"));
    if (text.find_first_not_of(' ') == std::string::npos) continue;
    TextOrPair& read = texts.emplace_back();
    read.text = std::move(text);
    if (pair_column > 0) read.second = tsv_cell(line, pair_column, file, "--pair-column");
    if (limit > 0 && static_cast<int>(texts.size()) >= limit) break;
  }
  return texts;
}

void check_pair_column(const int column, const int pair_column) {
  if (pair_column > 0 && (column == 0 || column == pair_column))
    throw UsageError("--pair-column",
                     column == 0 ? "needs the column of the first texts" : "is the column of the first texts",
                     "give --column as well, e.g. for MRPC --column 4 --pair-column 5");
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, int limit) {
  if (!std::filesystem::is_directory(folder))
    throw Error(folder.string(), "no such folder", "a model for images takes folders of pictures");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const std::size_t wanted = limit > 0 ? static_cast<std::size_t>(limit) : files.size();
  if (wanted >= files.size()) return files;
  std::vector<std::filesystem::path> some;
  for (std::size_t i = 0; i < wanted; ++i) some.push_back(files[i * files.size() / wanted]);
  return some;
}

TokenizedTexts tokenized(const Model& model, const std::vector<TextOrPair>& texts) {
  TokenizedTexts result;
  for (const TextOrPair& text : texts) {
    ModelInput& input = result.texts.emplace_back(model.prepare_text(text.text, text.second));
    input.tokens.clear();
    result.cut += input.note.empty() ? 0 : 1;
  }
  return result;
}

std::vector<TokenIds> token_ids_of(const std::vector<ModelInput>& texts) {
  std::vector<TokenIds> all;
  for (const ModelInput& text : texts) {
    const at::Tensor ids = text.token_ids.flatten().contiguous();
    const auto* const first = ids.const_data_ptr<std::int64_t>();
    all.emplace_back(first, first + ids.numel());
  }
  return all;
}

std::vector<TokenIds> joined_texts(const std::vector<TokenIds>& texts, std::int64_t length) {
  std::vector<TokenIds> pieces;
  if (texts.empty()) return pieces;
  const std::int64_t first = texts.front().front(), last = texts.front().back();
  TokenIds piece{first};
  const auto close = [&] {
    piece.push_back(last);
    pieces.push_back(std::exchange(piece, {first}));
  };
  for (const TokenIds& text : texts)
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      piece.push_back(text[i]);
      if (length > 0 && static_cast<std::int64_t>(piece.size()) + 1 >= length) close();
    }
  if (piece.size() > 1) close();
  return pieces;
}

TokenIds running_text(const Model& model, const std::filesystem::path& file, const std::int64_t characters) {
  constexpr std::size_t most_bytes_each = 4; // of UTF-8
  std::string text = characters > 0
                         ? read_beginning(file, most_bytes_each * static_cast<std::size_t>(characters))
                         : read_text_file(file, any_size);
  std::size_t end = 0;
  for (std::int64_t count = 0; count < characters && end < text.size(); ++count)
    end += code_point_at(text, end).length;
  if (characters > 0) text.resize(end);
  if (const auto invalid = first_invalid_utf8(text))
    throw Error(file.string(), invalid_utf8_line_text(text, *invalid), "save the file as UTF-8");
  return model.text_ids(text);
}

std::vector<TokenIds> pieces_of(const TokenIds& text, const std::int64_t length) {
  std::vector<TokenIds> pieces;
  for (auto first = text.begin(); first != text.end();) {
    const auto end = first + std::min(static_cast<std::ptrdiff_t>(length), text.end() - first);
    pieces.emplace_back(first, end);
    first = end;
  }
  return pieces;
}

namespace {

// Zeros of shape (texts, longest), with a mask if the texts differ in length.
ModelInput empty_batch(std::int64_t texts, std::int64_t shortest, std::int64_t longest) {
  ModelInput input;
  input.token_ids = at::zeros({texts, longest}, at::kLong);
  input.token_types = at::zeros({texts, longest}, at::kLong);
  if (shortest < longest) input.mask = at::zeros({texts, longest}, at::kBool);
  return input;
}

} // namespace

ModelInput text_batch(const std::vector<const TokenIds*>& texts) {
  const auto [shortest, longest] =
      std::ranges::minmax(texts, {}, [](const TokenIds* text) { return text->size(); });
  const auto rows = static_cast<std::int64_t>(texts.size());
  ModelInput input = empty_batch(rows, static_cast<std::int64_t>(shortest->size()),
                                 static_cast<std::int64_t>(longest->size()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const TokenIds& text = *texts[static_cast<std::size_t>(row)];
    const auto count = static_cast<std::int64_t>(text.size());
    input.token_ids[row].slice(0, 0, count).copy_(at::tensor(text, at::kLong));
    if (input.mask.defined()) input.mask[row].slice(0, 0, count).fill_(true);
  }
  return input;
}

ModelInput padded_batch(const std::vector<const ModelInput*>& texts) {
  const auto [shortest, longest] =
      std::ranges::minmax(texts, {}, [](const ModelInput* text) { return text->token_ids.size(1); });
  const auto rows = static_cast<std::int64_t>(texts.size());
  ModelInput input = empty_batch(rows, shortest->token_ids.size(1), longest->token_ids.size(1));
  for (std::int64_t row = 0; row < rows; ++row) {
    const ModelInput& text = *texts[static_cast<std::size_t>(row)];
    const std::int64_t count = text.token_ids.size(1);
    input.token_ids[row].slice(0, 0, count).copy_(text.token_ids[0]);
    if (text.token_types.defined()) input.token_types[row].slice(0, 0, count).copy_(text.token_types[0]);
    if (input.mask.defined()) input.mask[row].slice(0, 0, count).fill_(true);
  }
  return input;
}

} // namespace hydrascope
