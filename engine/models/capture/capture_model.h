// A capture in a model's place: its blocks give kernels the recorded q, k and v of each layer, whatever ran
// before, and nothing else is known of the model.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "engine/models/model_info.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {

// What `named` (capture_address(), engine/base/capture.h) shows: a sequence of a part of the capture. Throws
// UsageError (no such part or sequence) and as Capture::open.
ModelInfo read_capture_info(const std::filesystem::path& named);
std::shared_ptr<const Model> load_capture(const std::filesystem::path& named);

// Every sequence of these captures, or of those in these folders, as load_capture() takes it: of the part
// with the layers of `like`. Throws UsageError for a capture of other layers, or a path that names none.
std::vector<std::filesystem::path> capture_sequences(const std::vector<std::filesystem::path>& named,
                                                     const ModelInfo& like);

// The same capture, whose tensors blocks place on the device in this type.
std::shared_ptr<const Model> placed_capture(const std::shared_ptr<const Model>& capture, c10::Device device,
                                            c10::ScalarType dtype);

// The recorded output of a layer's attention, (1,H,N,d) as the kernels' outputs have it; undefined if there
// is none.
at::Tensor recorded_output(const Model& capture, int layer);

} // namespace hydrascope
