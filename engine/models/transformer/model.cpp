#include "engine/models/transformer/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/encoder.h"

namespace hydrascope {

ModelInput Model::prepare_image(const Image&, std::optional<int>) const {
  throw UsageError(info().name, "takes text, not pictures", "choose an image model with --model");
}

ModelInput Model::prepare_text(const std::string&, const std::optional<std::string>&) const {
  throw UsageError(info().name, "takes pictures, not text", "choose a text model with --model");
}

std::vector<std::int64_t> Model::text_ids(const std::string&) const {
  throw UsageError(info().name, "reads no running text", "choose a decoder with --model, such as smollm2");
}

std::unique_ptr<TokenStream> Model::token_stream() const {
  throw UsageError(info().name, "writes no text", "choose a decoder with --model, such as smollm2");
}

ModelInput Model::recorded_input() const {
  throw UsageError(info().name, "is a model, not a capture", "give it a picture or a text");
}

void check_can_hide(std::span<const std::int64_t> tokens, std::int64_t first, std::int64_t count) {
  for (const std::int64_t token : tokens) {
    if (token < 0 || token >= count)
      throw UsageError(fmt::format("hidden token {}", token), fmt::format("there are {} tokens", count),
                       fmt::format("choose one from {} to {}", first, count - 1));
    if (token < first)
      throw UsageError(fmt::format("hidden token {}", token), "the result is read from it",
                       fmt::format("choose one from {} to {}", first, count - 1));
  }
}

void Model::require_files() const {
  if (any_mapping_lost()) hydrascope::require_files(tensors());
}

std::string Model::output_label(const std::int64_t index) const {
  const auto position = static_cast<std::size_t>(index);
  return position < info().labels.size() ? info().labels[position] : fmt::format("class {}", index);
}

ModelInput Model::with_hidden(ModelInput input, std::span<const std::int64_t> tokens) const {
  if (!input.token_ids.defined()) throw UsageError(info().name, "cannot hide parts of a picture");
  check_can_hide(tokens, 1, input.token_ids.size(1));
  at::Tensor mask = input.mask.defined()
                        ? input.mask.clone()
                        : at::ones_like(input.token_ids, at::TensorOptions().dtype(at::kBool));
  for (const std::int64_t token : tokens) mask.select(1, token).fill_(false);
  input.mask = mask;
  return input;
}

} // namespace hydrascope
