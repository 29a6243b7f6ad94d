#include "engine/run/run_input.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope {
namespace {

constexpr std::size_t kKeptImages = 4;

PreparedInput prepare_text(const AppliedModel& model, const TextInput& text) {
  if (model.model->info().input != InputKind::text)
    throw UsageError("text", fmt::format("the model {} takes pictures", model.model->info().name),
                     "give a picture, or choose a text model with --model");
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
  if (const auto* text = std::get_if<TextInput>(&input)) return prepare_text(model, *text);

  const ImageInput& picture = std::get<ImageInput>(input);
  const ModelInfo& info = model.model->info();
  if (info.input != InputKind::image)
    throw UsageError("picture", fmt::format("the model {} takes text", info.name),
                     "give a text, or choose a vision model with --model");
  if (!picture.image) throw UsageError("picture", "there is none", "open a picture");
  if (!image_size) image_size = model.adapter_image_size();

  const std::string key = fmt::format("image|{}|{}x{}|{}|{}", hash_of(picture.image), picture.image->width,
                                      picture.image->height, image_size.value_or(0), info.folder.string());
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
  static constexpr std::string_view kPrefixNames[] = {"[class]", "[distillation]"};
  for (std::int64_t i = 0; i < input.layout.prefix; ++i)
    tokens.push_back({i < 2 ? std::string(kPrefixNames[i]) : fmt::format("[register {}]", i - 1), -1, true});
  for (std::int64_t row = 0; row < input.layout.rows; ++row)
    for (std::int64_t column = 0; column < input.layout.columns; ++column)
      tokens.push_back({fmt::format("row {}, column {}", row + 1, column + 1), -1, false});
  return tokens;
}

} // namespace hydrascope
