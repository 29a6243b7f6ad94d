#include "app/document/common_options.h"

#include "engine/base/error.h"

namespace hydrascope::app {

std::filesystem::path model_folder(const CommonOptions& options, InputKind input) {
  if (!options.model.empty()) return resolve_model(options.model);
  return resolve_model(input == InputKind::image ? "vit-small" : "minilm");
}

RunRequest make_request(const CommonOptions& options, InputKind input) {
  if (options.no_adapter && !options.adapters.empty())
    throw UsageError("--no-adapter", "cannot be combined with --adapter", "leave one of them out");
  RunRequest request;
  request.model_folder = model_folder(options, input);
  request.adapters.automatic = !options.no_adapter && options.adapters.empty();
  request.adapters.files.assign(options.adapters.begin(), options.adapters.end());
  request.schedule = options.schedule;
  request.execution = options.execution;
  if (options.image_size > 0) request.execution.image_size = options.image_size;
  return request;
}

} // namespace hydrascope::app
