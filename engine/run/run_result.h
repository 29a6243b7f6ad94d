// The parts of a result that are put together from what the passes delivered.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "engine/run/run_plan.h"

namespace hydrascope {

// Softmax over (1,C) in double precision, best first.
std::vector<Prediction> predictions_of(const at::Tensor& logits, const ModelInfo& model);

// Each layer as it ran, with what an adapter was trained for.
std::vector<LayerRun> layer_runs(const Pass& pass, const std::vector<PassBlock>& blocks);

// Adapters for the schedule, and those whose feature maps a kernel of the schedule or a compared one used.
std::vector<AdapterInfo> adapters_used(const RunPlan& plan);

// In the order asked.
std::vector<HeadTable> head_tables(const RunPlan& plan, std::span<const HeadTableAsk> asks);

// Weights in the order they were asked for.
std::vector<WeightsResult> weights_in_order(RunPlan& plan);
std::vector<VectorsResult> vectors_in_order(RunPlan& plan);
std::vector<TileResult> tiles_in_order(RunPlan& plan);

// Puts g of the query token, (1,H,N,d) by layer, into the vectors that were asked for with it.
void add_gradients(Readings& readings, const std::map<int, at::Tensor>& gradient_of);

} // namespace hydrascope
