// Maps of an adapter that a distillation starts from.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/attention/interface/kernel.h"
#include "engine/models/model_info.h"

namespace hydrascope::training {

// Sets the parameters of each layer in place to those of an adapter, kernel.LAYER.KERNEL.NAME: of this
// kernel, or else of the one KERNEL whose names and shapes are the same in all layers. Throws UsageError if
// no kernel's or several kernels' fit, and as SafetensorsFile::open() and KernelTensors::adopt().
void set_start_maps(const std::filesystem::path& file, const KernelSpec& kernel, const ModelInfo& model,
                    const std::vector<KernelParameters>& layers);

} // namespace hydrascope::training
