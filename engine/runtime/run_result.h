// The parts of a result that are put together from what the passes delivered.
#pragma once

#include <map>
#include <vector>

#include "engine/runtime/run_plan.h"

namespace hydrascope {

// Softmax over (1,C) in double precision, best first.
std::vector<Prediction> predictions_of(const at::Tensor& logits, const ModelInfo& model);

// Each layer as it ran, with what an adapter was trained for.
std::vector<LayerRun> layer_runs(const Pass& pass, const std::vector<PassBlock>& blocks);

// Adapters for the schedule, and those whose feature maps a kernel of the schedule or a compared one used.
std::vector<AdapterInfo> adapters_used(const RunPlan& plan);

std::vector<HeadTable> in_place_tables(const RunPlan& plan, const Asks& asks);
std::vector<HeadTable> teacher_forced_tables(const PlannedPass& teacher);
// (L,H,3) of the schedule's own kernels.
Array in_place_change(const RunPlan& plan);

// Weights in the order they were asked for.
std::vector<WeightsResult> weights_in_order(RunPlan& plan);
std::vector<VectorsResult> vectors_in_order(RunPlan& plan);
std::vector<TileResult> tiles_in_order(RunPlan& plan);

// Puts g of the query token, (1,H,N,d) by layer, into the vectors that were asked for with it.
void add_gradients(Readings& readings, const std::map<int, at::Tensor>& gradient_of);

} // namespace hydrascope
