// A model of a folder: its facts alone, or with its weights.
#include <c10/util/Exception.h>

#include "engine/base/error.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/encoder.h"
#include "engine/models/vision/image_processor.h"

namespace hydrascope {

ModelInfo read_model_info(const std::filesystem::path& folder) {
  const ModelConfig config = read_config(folder);
  ModelInfo info = info_of(config, folder);
  if (info.input == InputKind::image)
    if (const int size = read_image_processor(folder, config).output_size(); size > 0) info.image_size = size;
  return info;
}

std::shared_ptr<const Model> load_model(const std::filesystem::path& folder) {
  const ModelConfig config = read_config(folder);
  try {
    const Checkpoint checkpoint = read_checkpoint(folder);
    return config.family == "bert" ? make_bert(config, folder, checkpoint)
                                   : make_vision_transformer(config, folder, checkpoint);
  } catch (const c10::Error& error) {
    throw BrokenFile(folder.string(), error.what_without_backtrace(), "fetch the model's files again");
  }
}

} // namespace hydrascope
