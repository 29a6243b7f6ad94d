// The parts of a result that hold whatever was asked for.
#pragma once

#include <vector>

#include "engine/run/run_plan.h"

namespace hydrascope {

// Softmax over (1,C) in double precision, best first.
std::vector<Prediction> predictions_of(const at::Tensor& logits, const ModelInfo& model);

// Each layer as it ran, with what an adapter was trained for.
std::vector<LayerRun> layer_runs(const Pass& pass, const std::vector<PassBlock>& blocks);

// Adapters for the schedule, and those whose feature maps a kernel of the schedule or a compared one used.
std::vector<AdapterInfo> adapters_used(const RunPlan& plan);

} // namespace hydrascope
